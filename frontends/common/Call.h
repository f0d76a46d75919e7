//===- Call.h - the inputs and results of one op of a file ------*- C++ -*-===//
//
// What the import of an op sees of it that is the same in all files: inputs,
// constants among them, results. What a frontend's ops have beside that
// (attributes) is in a class derived from it. An import that returns `fail(...)`
// leaves the reason for the report; it must not have crashed before, whatever
// the file says.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_CALL_H
#define TESSERA_FRONTENDS_COMMON_CALL_H

#include "compiler/dialect/train/Builders.h"
#include "frontends/common/HostTensor.h"
#include "frontends/common/Shape.h"

namespace tessera::frontend {

/// What a name of the graph stands for: nothing yet, a value of the function, a constant (with a value once one was
/// needed), or a sequence of such.
struct Entry {
  mlir::Value value;
  Constant constant;
  std::shared_ptr<std::vector<Entry>> sequence;
  bool broken = false; ///< its node was reported; nodes that use it are skipped
  /// Complex numbers: real and imaginary part are a last dimension of size 2, which their framework's shape does not
  /// have.
  bool isComplex = false;
  /// Of a tensor whose number of elements depends on data: it is those along the first dimension of the value for which
  /// this vector of booleans is true, in their order. The others may be anything.
  mlir::Value mask;

  bool exists() const { return value || constant || sequence || broken; }
};

class Call {
public:
  Call(train::Build build, std::vector<Entry> inputs, size_t numOutputs)
      : b(build), inputs(std::move(inputs)), outputs(numOutputs) {}

  mlir::LogicalResult fail(const llvm::Twine &why) {
    reason = why.str();
    return mlir::failure();
  }

  // --- Inputs ---
  int inputCount() const { return static_cast<int>(inputs.size()); }
  bool has(int i) const { return i < inputCount() && inputs[i].exists(); }
  mlir::Value input(int i);
  mlir::RankedTensorType type(int i) const;
  llvm::ArrayRef<int64_t> shape(int i) const { return type(i).getShape(); }
  int64_t rank(int i) const { return type(i).getRank(); }
  mlir::Type element(int i) const { return type(i).getElementType(); }
  bool isFloat(int i) const { return llvm::isa<mlir::FloatType>(element(i)); }
  const HostTensor *constant(int i) const { return has(i) ? inputs[i].constant.get() : nullptr; }
  /// The input broadcast to a shape that it can be broadcast to.
  mlir::Value inputTo(int i, llvm::ArrayRef<int64_t> shape);
  /// A constant vector (or scalar) of integers.
  std::optional<llvm::SmallVector<int64_t>> ints(int i) const;
  std::optional<double> scalar(int i) const;

  // --- Outputs ---
  mlir::LogicalResult set(mlir::Value value, int i = 0);
  mlir::LogicalResult set(HostTensor constant, int i = 0);
  mlir::LogicalResult set(Entry entry, int i = 0);

  train::Build b;
  std::vector<Entry> inputs, outputs;
  std::string reason;
};

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_CALL_H
