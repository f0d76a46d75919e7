//===- Node.h - what an op handler sees of one ONNX node --------*- C++ -*-===//
//
// Handlers read inputs, constants and attributes and set outputs through this
// class only.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_ONNX_NODE_H
#define TESSERA_FRONTENDS_ONNX_NODE_H

#include "frontends/common/Step.h"

#include "onnx/onnx_pb.h"

#include <functional>

namespace tessera::onnx_import {

using namespace frontend; // what frontends share is written like the importer's own

class Node : public Call {
public:
  Node(const onnx::NodeProto &proto, int opset, train::Build build, std::vector<Entry> inputs)
      : Call(build, std::move(inputs), proto.output_size()), proto(proto), opset(opset) {}

  bool wants(int output) const { return output < proto.output_size() && !proto.output(output).empty(); }

  // --- Attributes ---
  const onnx::AttributeProto *attribute(llvm::StringRef name) const;
  int64_t attr(llvm::StringRef name, int64_t fallback) const;
  double attrFloat(llvm::StringRef name, double fallback) const;
  std::string attrString(llvm::StringRef name, llvm::StringRef fallback) const;
  std::optional<llvm::SmallVector<int64_t>> attrInts(llvm::StringRef name) const;

  const onnx::NodeProto &proto;
  const int opset;
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
