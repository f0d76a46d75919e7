//===- Evaluator.h - values of train ops, element by element ----*- C++ -*-===//
//
// Evaluates the value of a fusion's body at one position, on demand and with memory of what is known already. The same
// walk serves the analysis (no code is made; it records reads, missing cuts and what cannot be done) and the emission.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_EVALUATOR_H
#define TESSERA_PASSES_LOWER_CODEGEN_EVALUATOR_H

#include "compiler/dialect/train/Train.h"
#include "passes/lower/codegen/Index.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <tuple>

namespace tessera::codegen {

/// Ops that a kernel evaluates of all positions together that it unrolls, at the most.
constexpr unsigned kMaxUnrolledVisits = 1 << 14;

/// The ops of one kernel: a fusion's body, or a set of ops that may become one.
struct KernelBody {
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::Value> outputs;
  /// In program order.
  llvm::SmallVector<mlir::Operation *> ops;

  static KernelBody ofRegion(mlir::Region &region);
};

/// A position in a tensor; the form that is missing is computed when asked for.
struct Position {
  Index linear;
  std::optional<llvm::SmallVector<Index>> indices;

  /// The element of `value` at `indices`.
  static Position at(llvm::SmallVector<Index> indices, mlir::Value value);
};

struct Scalar {
  mlir::Value value;
  unsigned level = 0;
};

/// Where the loops of the kernel stand, and how its buffers are read.
class Emission {
public:
  virtual ~Emission() = default;
  /// A builder that inserts at the end of what is open at loop depth `level`.
  virtual mlir::OpBuilder &at(unsigned level) = 0;
  /// An integer constant at the kernel's start; the builder stays where it is.
  virtual mlir::Value constant(int64_t value, mlir::Type type) = 0;
  virtual mlir::Value load(mlir::Value input, mlir::Value linear, unsigned level) = 0;
  /// An element of an input that was read before.
  virtual std::optional<Scalar> held(mlir::Value input, const Index &linear) = 0;
  /// Element `linear` of a table known at compile time.
  virtual mlir::Value loadConstant(train::ConstantOp op, mlir::Value linear, unsigned level) = 0;
  /// The finished reduction at the kept digits' position.
  virtual Scalar reduced(mlir::Operation *op) = 0;
  /// A value that an earlier pass kept in a buffer.
  virtual std::optional<Scalar> kept(mlir::Value value, const Index &linear) = 0;
  virtual void computed(mlir::Value value, const Index &linear, Scalar scalar) = 0;
  /// Opens a branch one level deeper (it becomes the deepest); `closeBranch` joins the values of both.
  virtual unsigned openBranch(mlir::Value condition, mlir::Type type) = 0;
  virtual void otherwise(Scalar value) = 0;
  virtual Scalar closeBranch(Scalar value) = 0;
  virtual unsigned depth() const = 0;
};

/// What the analysis learns.
struct Observations {
  std::optional<Cut> cut;
  std::string problem;
  unsigned visits = 0;
  /// Called for each read of an input.
  std::function<void(mlir::Value, const Index &)> onRead;
  std::function<void(mlir::Value, const Index &)> onVisit;
  bool failed() const { return cut || !problem.empty(); }
};

class Evaluator {
public:
  Evaluator(const KernelBody &body, Space &space, mlir::Location loc);

  Observations seen;
  /// Null during analysis.
  Emission *emission = nullptr;
  /// The position, among the kept digits, at which reductions are known; other ones for some.
  Index keptIdentity;
  llvm::DenseMap<mlir::Operation *, Index> ownIdentity;
  /// Whether to ask for cuts before dividing at run time.
  bool exactOnly = true;
  /// Whether an index is the sum of its terms and then its constant, so that neighbours share all but that.
  bool constantLast = false;
  /// Which of several positions the digits that vary stand for: what was computed of one is remembered apart.
  unsigned instance = 0;

  Scalar evaluate(mlir::Value value, const Index &linear);
  Scalar evaluate(mlir::Value value, Position position);
  mlir::Value materialize(const Index &index, unsigned &level);
  /// The index along `dim` at `linear` of `value`.
  Scalar along(mlir::Value value, const Index &linear, int64_t dim);
  /// Forgets what was computed at loop depth `level` or deeper.
  void forget(unsigned level);

private:
  using Key = std::tuple<const void *, Index, unsigned>;
  Scalar compute(mlir::Operation *op, Position &position);
  Scalar elementwise(mlir::Operation *op, Position &position);
  Scalar concat(train::ConcatOp op, Position &position);
  Scalar pad(train::PadOp op, Position &position);
  Scalar updateSlice(train::DynamicUpdateSliceOp op, Position &position);
  Scalar gather(train::GatherRowsOp op, Position &position);
  Scalar random(train::RngUniformOp op, Position &position);
  Scalar roundStochastically(train::StochasticRoundOp op, Position &position);
  Scalar constant(train::ConstantOp op, Position &position);
  Scalar iota(train::IotaOp op, Position &position);
  /// `then` if all `conditions` hold, else `other`.
  Scalar guarded(llvm::ArrayRef<Scalar> conditions, mlir::Type type, llvm::function_ref<Scalar(unsigned)> then,
                 llvm::function_ref<Scalar()> other);
  /// `start`, clamped so that a box of `size` lies in [0, `extent`), as a digit.
  Index clampedStart(mlir::Value start, int64_t extent, int64_t size);
  llvm::ArrayRef<Index> indices(Position &position, mlir::Value value);
  std::pair<Index, Index> divide(const Index &index, int64_t divisor);
  Index opaque(int64_t size, Scalar value);
  Scalar indexScalar(const Index &index);
  Scalar integer(int64_t value, mlir::Type type);
  void fail(mlir::Operation *op, llvm::Twine why);
  Key keyOf(mlir::Value value, const Index &linear) const;

  const KernelBody &body;
  Space &space;
  mlir::Location loc;
  llvm::DenseSet<mlir::Value> inputs;
  llvm::DenseSet<mlir::Operation *> members;
  std::map<Key, Scalar> memory;
  unsigned nesting = 0;
};

/// Bytes of an element in memory.
int64_t bytesOf(mlir::Type elementType);
/// The type in which an element is held while it is computed.
mlir::Type scalarType(mlir::Type elementType);
/// One elementwise op on scalars; null if there is no code for it.
mlir::Value emitScalar(mlir::OpBuilder &builder, mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands);
mlir::Value emitConvert(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type from,
                        mlir::Type to);
mlir::Value emitConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType, mlir::Attribute value);
mlir::Value emitConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType, double value);
/// The type in which a reduction accumulates, with its sign.
mlir::Type accumulatedType(mlir::Operation *reduction);
/// `accumulator (kind) value` of numbers of the type `element`; their own type does not tell the sign of integers.
mlir::Value emitCombine(mlir::OpBuilder &builder, mlir::Location loc, train::ReduceKind kind, mlir::Type element,
                        mlir::Value accumulator, mlir::Value value);
mlir::Value emitNeutral(mlir::OpBuilder &builder, mlir::Location loc, train::ReduceKind kind, mlir::Type element);
/// Whether `a` is greater than `b`, both of the type `element`; not if one is no number.
mlir::Value emitGreater(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type element, mlir::Value a, mlir::Value b);
/// Output word number `output` of Philox 4x32-10 of key `seed` and counter (`index`, `stream`).
mlir::Value emitPhilox(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value seed, mlir::Value index,
                       int64_t stream, unsigned output);
/// The upper 24 bits of a word as a float in [0, 1).
mlir::Value emitUniform(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value word);
/// `x` (f32) in bf16, rounded by half of a random word.
mlir::Value emitStochasticRound(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value word,
                                bool upperHalf);
/// Whether there is scalar code for this op.
bool isElementwise(mlir::Operation *op);
/// Whether recomputing this op costs more than reading its value.
bool isExpensive(mlir::Operation *op);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_EVALUATOR_H
