//===- Call.h - what an op handler sees of one node -------------*- C++ -*-===//
//
// Handlers read arguments by the names of the operator's schema and set results
// through this class only. A handler that returns `fail(...)` leaves the reason
// for the report; it must not have crashed before, whatever the file says.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_CALL_H
#define TESSERA_FRONTENDS_PT2_CALL_H

#include "compiler/dialect/train/Builders.h"
#include "frontends/common/HostTensor.h"
#include "frontends/common/Shape.h"
#include "frontends/pt2/Program.h"

#include "llvm/ADT/StringMap.h"

#include <functional>

namespace tessera::pt2 {

using frontend::axisOf;
using frontend::broadcastShape;
using frontend::Constant;
using frontend::HostTensor;
using frontend::shapeText;

/// What a name of the graph stands for: a value of the function, a constant (with a value once one was needed), or a
/// number (a size, a flag).
struct Entry {
  mlir::Value value;
  Constant constant;
  std::optional<double> number;
  bool broken = false; ///< its node was reported; nodes that use it are skipped
  bool unused = false; ///< a statistic that nothing in the step depends on

  bool isTensor() const { return value || constant; }
};

/// An argument of a call, with names looked up: tensors (empty entries are None), or a plain value.
struct Given {
  std::vector<Entry> tensors;
  bool isList = false;
  const Argument *plain = nullptr;
};

/// The MLIR type of an element; null if there is none.
mlir::Type elementOf(mlir::MLIRContext *context, ScalarType type);

class Call {
public:
  Call(const Node &node, train::Build build) : b(build), node(node), outputs(node.outputs.size()) {}

  mlir::LogicalResult fail(const llvm::Twine &why) {
    reason = why.str();
    return mlir::failure();
  }

  // --- Tensors ---
  /// Whether an argument is there and is not None.
  bool has(llvm::StringRef name) const;
  /// A tensor, also a Python number where an operator takes both. Null if it is neither; see `check`.
  mlir::Value value(llvm::StringRef name);
  mlir::Value value(Entry &entry);
  mlir::RankedTensorType type(llvm::StringRef name) const;
  llvm::ArrayRef<int64_t> shape(llvm::StringRef name) const { return type(name).getShape(); }
  int64_t rank(llvm::StringRef name) const { return type(name).getRank(); }
  mlir::Type element(llvm::StringRef name) const { return type(name).getElementType(); }
  bool isFloat(llvm::StringRef name) const { return llvm::isa<mlir::FloatType>(element(name)); }
  bool isTensor(llvm::StringRef name) const;
  const HostTensor *constant(llvm::StringRef name) const;
  std::vector<Entry> *list(llvm::StringRef name);
  mlir::RankedTensorType typeOf(const Entry &entry) const;

  // --- Numbers ---
  std::optional<double> number(llvm::StringRef name) const;
  double numberOr(llvm::StringRef name, double fallback) const { return number(name).value_or(fallback); }
  std::optional<int64_t> integer(llvm::StringRef name) const;
  int64_t integerOr(llvm::StringRef name, int64_t fallback) const { return integer(name).value_or(fallback); }
  bool flag(llvm::StringRef name, bool fallback) const;
  /// A list of sizes; a single number counts as a list of one.
  std::optional<llvm::SmallVector<int64_t>> ints(llvm::StringRef name) const;
  std::string text(llvm::StringRef name, llvm::StringRef fallback) const;
  /// The element type that `dtype` names; null if there is none.
  mlir::Type dtype(llvm::StringRef name = "dtype") const;
  /// Whether a number is written as a float in Python.
  bool isFloatNumber(llvm::StringRef name) const;

  // --- Results ---
  /// The element type and the shape that the program says result i has; a size is -1 where it is symbolic.
  mlir::Type resultElement(int i = 0) const;
  mlir::LogicalResult set(mlir::Value value, int i = 0);
  mlir::LogicalResult set(Entry entry, int i = 0);
  mlir::LogicalResult setList(std::vector<mlir::Value> values);

  std::optional<llvm::SmallVector<int64_t>> axes(llvm::StringRef name, int64_t rank) const;

  train::Build b;
  const Node &node;
  llvm::StringMap<Given> given;
  std::vector<std::vector<Entry>> outputs; ///< of each argument of `outputs` its tensors
  std::vector<bool> isListOutput;
  std::string reason;
  std::function<mlir::Value()> seed;                           ///< the step's seed, made on first use
  std::function<const TensorMeta *(const std::string &)> meta; ///< of a value of the graph
  int64_t *randomStreams = nullptr, *runningPairs = nullptr;

private:
  const Given *find(llvm::StringRef name) const;
};

using Handler = mlir::LogicalResult (*)(Call &);

/// One row of the table of operators.
struct OpRow {
  llvm::StringLiteral target; ///< "aten.linear.default"
  Handler handler;
  const char *needs = "self"; ///< names of tensors that must be there, by commas
};

const OpRow *findOp(llvm::StringRef target);
/// Names of all operators, sorted.
std::vector<std::string> opNames();
/// All rows of one source file.
llvm::ArrayRef<OpRow> convolutionOps();
llvm::ArrayRef<OpRow> elementwiseOps();
llvm::ArrayRef<OpRow> indexOps();
llvm::ArrayRef<OpRow> leafOps();
llvm::ArrayRef<OpRow> lossOps();
llvm::ArrayRef<OpRow> neuralOps();
llvm::ArrayRef<OpRow> productOps();
llvm::ArrayRef<OpRow> reduceOps();
llvm::ArrayRef<OpRow> shapeOps();

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_CALL_H
