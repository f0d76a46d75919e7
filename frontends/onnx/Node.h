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
  int64_t *activeDropouts = nullptr; ///< how many dropouts are on so far
  /// Roles::isNormalisedByBatch.
  std::function<std::optional<bool>(llvm::StringRef runningMean, bool asWritten)> isNormalisedByBatch;
  Step *step = nullptr; ///< that the node is part of
};

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_NODE_H
