//===- Metadata.h - what an ONNX file says beside its graph -----*- C++ -*-===//
//
// The record of python -m tessera export, and what torch's dynamo exporter notes on
// values and nodes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_ONNX_METADATA_H
#define TESSERA_FRONTENDS_ONNX_METADATA_H

#include "frontends/common/Roles.h"

#include "onnx/onnx_pb.h"

namespace tessera::onnx_import {

/// The file's record; nothing if it has none. A record that is malformed, or of another version, is an error.
llvm::Expected<std::optional<frontend::ModelRecord>> readRecord(const onnx::ModelProto &model);

/// The kinds of torch.export's graph signature by value name; empty if the exporter left none.
llvm::StringMap<frontend::SignatureKind> readSignature(const onnx::GraphProto &graph);

/// The module call that a node comes from: the exporter's note, else the node's name up to its last '/'; else the whole
/// name, or its first output.
std::string scopeOf(const onnx::NodeProto &node);

/// The PyTorch op that a node stands for or is a part of, without "aten.": the dynamo exporter's note, if there is one.
std::optional<std::string> torchOpOf(const onnx::NodeProto &node);

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_METADATA_H
