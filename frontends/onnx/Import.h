//===- Import.h - ONNX models to train IR -----------------------*- C++ -*-===//
//
// The ONNX frontend's only public header.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_ONNX_IMPORT_H
#define TESSERA_FRONTENDS_ONNX_IMPORT_H

#include "frontends/Frontend.h"

namespace tessera {

/// Reads an ONNX model (binary, or ONNX text if the name ends in `.onnxtxt`) as a module with a function @step in the
/// train dialect; the module's `train.tensors` says what became of each initializer. The values of parameters are not
/// read. Errors go to the context's diagnostics, all unsupported nodes at once; the result is then null.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(const std::string &path, const ImportOptions &options,
                                             mlir::MLIRContext &context);

/// The same from bytes in memory, without external data.
mlir::OwningOpRef<mlir::ModuleOp> importOnnxBytes(llvm::StringRef bytes, bool text, const ImportOptions &options,
                                                  mlir::MLIRContext &context);

/// Whether a file begins as an ONNX model in binary form does: with a field of one.
bool isOnnx(llvm::StringRef start);

/// One row of the importer's op table.
struct OnnxOpSupport {
  std::string domain; ///< empty: the default domain
  std::string name;
  int minOpset, maxOpset;
};
/// Every op that the importer knows, sorted by domain and name.
std::vector<OnnxOpSupport> supportedOnnxOps();

} // namespace tessera

#endif // TESSERA_FRONTENDS_ONNX_IMPORT_H
