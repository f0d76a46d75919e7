//===- Proto.h - reading ONNX files -----------------------------*- C++ -*-===//
//
// Everything that touches bytes of an ONNX file: parsing with limits, and
// reading tensors (inline or from external data files) with every length
// checked. Exceptions of libonnx and protobuf end here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_ONNX_PROTO_H
#define TESSERA_FRONTENDS_ONNX_PROTO_H

#include "frontends/common/HostTensor.h"

#include "onnx/onnx_pb.h"

#include "llvm/Support/Error.h"

#include <string>

namespace tessera::onnx_import {

/// Reads a model: binary protobuf, or ONNX text format if the name ends in `.onnxtxt`.
llvm::Expected<std::unique_ptr<onnx::ModelProto>> readModel(const std::string &path);
/// The same from memory.
llvm::Expected<std::unique_ptr<onnx::ModelProto>> parseModel(llvm::StringRef bytes, bool text);

/// The element type of an ONNX data type, or null if there is none in the train dialect.
mlir::Type elementType(mlir::MLIRContext *context, int32_t onnxType);
/// The name of an ONNX data type, for messages.
std::string dataTypeName(int32_t onnxType);

/// The type of a tensor of the file, after checking its dimensions.
llvm::Expected<mlir::RankedTensorType> protoType(mlir::MLIRContext *context, const onnx::TensorProto &tensor);
/// The values of a tensor of the file. External data is looked up in `folder`.
llvm::Expected<frontend::HostTensor> readTensor(mlir::MLIRContext *context, const onnx::TensorProto &tensor,
                                                const std::string &folder);

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_PROTO_H
