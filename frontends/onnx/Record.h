//===- Record.h - what a file says about its tensors ------------*- C++ -*-===//
//
// Two sources, both written by whoever exported the model: the record of tools/export_torch.py (metadata `tessera`,
// JSON; docs/onnx.md has its format), and the graph signature that torch's dynamo exporter leaves on its values.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_ONNX_RECORD_H
#define TESSERA_FRONTENDS_ONNX_RECORD_H

#include "onnx/onnx_pb.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace tessera::onnx_import {

/// One tensor that the exported module registers.
struct RecordedTensor {
  std::string name;
  llvm::SmallVector<int64_t> shape;
  bool isParameter = false;          ///< else a buffer
  bool trained = false;              ///< the parameter's requires_grad
  bool unused = false;               ///< no output depends on it: it may be absent from the graph
  std::optional<int64_t> paddingIdx; ///< lookups of this row take no gradient
};

/// The record of tools/export_torch.py.
struct ModelRecord {
  std::string exporter;                ///< for messages
  std::vector<RecordedTensor> tensors; ///< in the order of the record
  llvm::StringMap<size_t> byName;      ///< into `tensors`
  llvm::StringMap<bool> batchNorms;    ///< running mean's name -> the module used the batch's statistics
  int64_t activeDropouts = 0;          ///< calls of dropout with a rate above 0 in one forward pass
  int64_t clearedDropouts = 0;         ///< rates that the export tool set to 0

  const RecordedTensor *find(llvm::StringRef name) const {
    auto found = byName.find(name);
    return found == byName.end() ? nullptr : &tensors[found->second];
  }
};

/// The file's record; nothing if it has none. A record that is malformed, or of another version, is an error.
llvm::Expected<std::optional<ModelRecord>> readRecord(const onnx::ModelProto &model);

/// What torch.export's graph signature calls a value.
enum class SignatureKind { Parameter, Buffer, Constant };
/// The signature's kinds by value name; empty if the exporter left none.
llvm::StringMap<SignatureKind> readSignature(const onnx::GraphProto &graph);

/// The module call that a node comes from: the exporter's note, else the node's name up to its last '/'; else the whole
/// name, or its first output.
std::string scopeOf(const onnx::NodeProto &node);

/// The PyTorch op that a node stands for or is a part of, without "aten.": the dynamo exporter's note, if there is one.
std::optional<std::string> torchOpOf(const onnx::NodeProto &node);

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_RECORD_H
