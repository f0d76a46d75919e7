//===- Import.h - ONNX models to train IR -----------------------*- C++ -*-===//
//
// The ONNX frontend's only public header.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_ONNX_IMPORT_H
#define TESSERA_FRONTENDS_ONNX_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace tessera {

struct OnnxImportOptions {
  std::map<std::string, int64_t> dims; ///< sizes of symbolic dimensions by name
  int64_t batch = 0;                   ///< size of symbolic dimension 0 of the inputs; 0: as in the file or `dims`
  int64_t sequence = 0;                ///< size of symbolic dimension 1 of the inputs; 0: as in the file or `dims`
  std::string frozen;                  ///< regular expression: parameters that take no gradient
};

/// Reads an ONNX model (binary, or ONNX text if the name ends in `.onnxtxt`) as a module with a function @step in the
/// train dialect. Every floating-point initializer of rank 1 or more becomes an argument; its values are not read.
/// Errors go to the context's diagnostics, all unsupported nodes at once; the result is then null.
mlir::OwningOpRef<mlir::ModuleOp> importOnnx(const std::string &path, const OnnxImportOptions &options,
                                             mlir::MLIRContext &context);

/// The same from bytes in memory, without external data.
mlir::OwningOpRef<mlir::ModuleOp> importOnnxBytes(llvm::StringRef bytes, bool text, const OnnxImportOptions &options,
                                                  mlir::MLIRContext &context);

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
