//===- Node.h - what an op handler sees of one ONNX node --------*- C++ -*-===//
//
// Handlers read inputs, constants and attributes and set outputs through this
// class only. A handler that returns `fail(...)` leaves the reason for the
// report; it must not have crashed before, whatever the file says.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_ONNX_NODE_H
#define TESSERA_FRONTENDS_ONNX_NODE_H

#include "compiler/dialect/train/Builders.h"
#include "frontends/onnx/HostTensor.h"

#include "onnx/onnx_pb.h"

#include "llvm/ADT/MapVector.h"

#include <functional>

namespace tessera::onnx_import {

/// What a name of the graph stands for: nothing yet, a value of the function, a constant (with a value once one was
/// needed), or a sequence of such.
struct Entry {
  mlir::Value value;
  Constant constant;
  std::shared_ptr<std::vector<Entry>> sequence;
  bool broken = false; ///< its node was reported; nodes that use it are skipped

  bool exists() const { return value || constant || sequence || broken; }
};

/// A table that lookups give no gradient in one row.
struct PaddedTable {
  int64_t row = 0;
  bool placed = false; ///< a lookup was found
};

class Node {
public:
  Node(const onnx::NodeProto &proto, int opset, train::Build build, std::vector<Entry> inputs)
      : b(build), proto(proto), opset(opset), inputs(std::move(inputs)), outputs(proto.output_size()) {}

  mlir::LogicalResult fail(const llvm::Twine &why) {
    reason = why.str();
    return mlir::failure();
  }

  // --- Inputs ---
  int inputCount() const { return static_cast<int>(inputs.size()); }
  bool has(int i) const { return i < inputCount() && inputs[i].exists(); }
  bool wants(int output) const { return output < proto.output_size() && !proto.output(output).empty(); }
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

  // --- Attributes ---
  const onnx::AttributeProto *attribute(llvm::StringRef name) const;
  int64_t attr(llvm::StringRef name, int64_t fallback) const;
  double attrFloat(llvm::StringRef name, double fallback) const;
  std::string attrString(llvm::StringRef name, llvm::StringRef fallback) const;
  std::optional<llvm::SmallVector<int64_t>> attrInts(llvm::StringRef name) const;

  // --- Helpers ---
  /// `axis` counted from the front, or nullopt if it is not in [-rank, rank).
  static std::optional<int64_t> axisOf(int64_t axis, int64_t rank) {
    if (axis < -rank || axis >= rank)
      return std::nullopt;
    return axis < 0 ? axis + rank : axis;
  }
  /// Sorted axes without duplicates; nullopt if one is out of range or occurs twice.
  static std::optional<llvm::SmallVector<int64_t>> axesOf(llvm::ArrayRef<int64_t> axes, int64_t rank);
  /// NumPy's common shape, or nullopt.
  static std::optional<llvm::SmallVector<int64_t>> broadcastShape(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);
  static std::string shapeText(llvm::ArrayRef<int64_t> shape);

  // --- Outputs ---
  mlir::LogicalResult set(mlir::Value value, int i = 0);
  mlir::LogicalResult set(HostTensor constant, int i = 0);
  mlir::LogicalResult set(Entry entry, int i = 0);

  train::Build b;
  const onnx::NodeProto &proto;
  const int opset;
  std::vector<Entry> inputs, outputs;
  std::string reason;
  std::string folder;                ///< of the model, for external data
  std::function<mlir::Value()> seed; ///< the step's seed argument, made on first use
  int64_t *randomStreams = nullptr;  ///< how many random tensors there are so far
  int64_t *runningPairs = nullptr;   ///< how many normalisations have running statistics that training leaves alone
  int64_t *activeDropouts = nullptr; ///< how many dropouts are on so far
  /// Roles::isNormalisedByBatch.
  std::function<std::optional<bool>(llvm::StringRef runningMean, bool asWritten)> isNormalisedByBatch;
  llvm::MapVector<mlir::Value, PaddedTable> *padding = nullptr; ///< by argument
};

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_NODE_H
