//===- Call.h - what an op handler sees of one node -------------*- C++ -*-===//
//
// Handlers read arguments by the names of the operator's schema and set results
// through this class only.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_CALL_H
#define TESSERA_FRONTENDS_PT2_CALL_H

#include "frontends/common/Step.h"
#include "frontends/pt2/Program.h"

#include "llvm/ADT/StringMap.h"

namespace tessera::pt2 {

using frontend::axisOf;
using frontend::broadcastShape;
using frontend::countElements;
using frontend::Entry;
using frontend::HostTensor;
using frontend::shapeText;

/// An argument of a call: tensors and sizes that are inputs, or what the node itself says.
struct Given {
  enum class Kind { Tensor, Number, Plain };
  Kind kind = Kind::Plain;
  bool isList = false;
  size_t first = 0, count = 0; ///< of the call's inputs; None is an input that does not exist
  const Argument *plain = nullptr;
};

/// The MLIR type of an element; null if there is none.
mlir::Type elementOf(mlir::MLIRContext *context, ScalarType type);
/// The MLIR type of the real part of a complex number; null for any other type.
mlir::Type partElementOf(mlir::MLIRContext *context, ScalarType type);
bool isComplexType(ScalarType type);
/// Whether it is one of integers or booleans.
bool isIntegerType(ScalarType type);

/// Where the elements of a tensor lie in the memory that it may share with others, in elements.
struct Placement {
  llvm::SmallVector<int64_t> strides;
  int64_t offset = 0;
};

class Call : public frontend::Call {
public:
  Call(const Node &node, train::Build build, std::vector<Entry> inputs, llvm::StringMap<Given> given, size_t results,
       frontend::Step &step)
      : frontend::Call(build, std::move(inputs), results), node(node), step(step), given(std::move(given)) {}

  using frontend::Call::element;
  using frontend::Call::has;
  using frontend::Call::isFloat;
  using frontend::Call::rank;
  using frontend::Call::set;
  using frontend::Call::shape;
  using frontend::Call::type;

  // --- Tensors ---
  /// Whether an argument is there and is not None.
  bool has(llvm::StringRef name) const;
  /// Whether it is not None, also where what it names was not imported since nothing depends on it.
  bool names(llvm::StringRef name) const;
  /// Whether it is a tensor: for one that is, the functions below.
  bool isTensor(llvm::StringRef name) const;
  mlir::Value value(llvm::StringRef name) { return input(at(name)); }
  /// The tensor if there is one, else null.
  mlir::Value optional(llvm::StringRef name) { return isTensor(name) ? value(name) : mlir::Value(); }
  mlir::RankedTensorType type(llvm::StringRef name) const { return type(at(name)); }
  llvm::ArrayRef<int64_t> shape(llvm::StringRef name) const { return shape(at(name)); }
  int64_t rank(llvm::StringRef name) const { return rank(at(name)); }
  mlir::Type element(llvm::StringRef name) const { return element(at(name)); }
  bool isFloat(llvm::StringRef name) const { return isFloat(at(name)); }
  const HostTensor *known(llvm::StringRef name) const { return constant(at(name)); }
  /// Where among the inputs the tensors of a list are; None among them does not exist.
  std::optional<llvm::SmallVector<int>> list(llvm::StringRef name) const;
  /// Where the program says that a tensor lies, for the sizes that were chosen; nothing where it does not.
  std::optional<Placement> placement(llvm::StringRef name) const;
  /// Where among the inputs a tensor is.
  int at(llvm::StringRef name) const { return static_cast<int>(given.find(name)->second.first); }

  // --- Numbers ---
  /// Nothing also for integers that a double does not hold.
  std::optional<double> number(llvm::StringRef name) const;
  /// These take the fallback for an argument that is left out. Where it is given and cannot be read, the call fails
  /// whatever the handler does (notRead).
  double numberOr(llvm::StringRef name, double fallback) const { return valueOr(name, number(name), fallback); }
  std::optional<int64_t> integer(llvm::StringRef name) const;
  int64_t integerOr(llvm::StringRef name, int64_t fallback) const { return valueOr(name, integer(name), fallback); }
  bool flag(llvm::StringRef name, bool fallback) const;
  /// A list of sizes; a single number counts as a list of one.
  std::optional<llvm::SmallVector<int64_t>> ints(llvm::StringRef name) const;
  /// A list of floats.
  std::optional<llvm::SmallVector<double>> floats(llvm::StringRef name) const;
  std::string text(llvm::StringRef name, llvm::StringRef fallback) const;
  /// Lets an argument be this instead of what the node says; `value` outlives the call.
  void replace(llvm::StringRef name, const Argument &value) { given[name] = {Given::Kind::Plain, false, 0, 0, &value}; }
  /// Whether a number is one of floats in Python.
  bool isFloatNumber(llvm::StringRef name) const;
  /// Dimensions, sorted; nullopt if one is out of range or occurs twice.
  std::optional<llvm::SmallVector<int64_t>> axes(llvm::StringRef name, int64_t rank) const;
  /// One number for each of `rank` dimensions, also where one stands for all; nothing if one is below `least`.
  std::optional<llvm::SmallVector<int64_t, 3>> spatial(llvm::StringRef name, size_t rank, int64_t least,
                                                       int64_t fallback) const;

  // --- Complex numbers (OpsComplex.cpp) ---
  // Rows of complexOps() alone see any: shapes and values of the functions above are then those of the parts.
  bool isComplex(llvm::StringRef name) const { return isTensor(name) && inputs[at(name)].isComplex; }
  /// Whether the program says that result i is complex.
  bool givesComplex(size_t i = 0) const { return i < isComplexResult.size() && isComplexResult[i]; }
  mlir::LogicalResult setComplex(mlir::Value pairs, int i = 0);

  /// A number as a tensor without dimensions. Fails where the type does not hold it.
  mlir::FailureOr<mlir::Value> splat(mlir::Type element, double value);

  // --- Results ---
  /// The element type that the program says result i has, of complex numbers that of the parts; null if it has none
  /// that is supported.
  mlir::Type resultElement(size_t i = 0) const { return i < resultElements.size() ? resultElements[i] : mlir::Type(); }
  /// Whether something reads result i.
  bool wants(size_t i) const { return i < isRead.size() && isRead[i]; }
  mlir::LogicalResult setNumber(double value);
  mlir::LogicalResult setList(llvm::ArrayRef<mlir::Value> values);
  /// What an argument that is a buffer holds after the call.
  void setNext(llvm::StringRef argument, mlir::Value value) { next.emplace_back(argument, value); }
  std::vector<std::pair<llvm::StringRef, mlir::Value>> takeNext() { return std::exchange(next, {}); }
  /// Runs a row's handler on the call; fails, too, where an argument was given that it could not read.
  mlir::LogicalResult run(mlir::LogicalResult (*handler)(Call &));

  const Node &node;
  frontend::Step &step;
  llvm::SmallVector<mlir::Type> resultElements;
  llvm::SmallVector<bool> isRead, isComplexResult;         ///< of each result
  const Graph *graph = nullptr;                            ///< what the program says of tensors
  const std::map<std::string, int64_t> *symbols = nullptr; ///< the sizes that were chosen
  llvm::StringMap<llvm::StringRef> bufferNames;            ///< the module's names of arguments that are its buffers
  bool isNormalisedByBatch = false;                        ///< of a batch normalisation: by its own mean and variance

private:
  const Given *find(llvm::StringRef name) const;
  template <typename T> T valueOr(llvm::StringRef name, std::optional<T> value, T fallback) const {
    if (!value && has(name))
      unread = name.str();
    return value.value_or(fallback);
  }
  std::optional<double> numberAt(size_t input) const;

  llvm::StringMap<Given> given;
  std::vector<std::pair<llvm::StringRef, mlir::Value>> next;
  mutable std::string unread;
};

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_CALL_H
