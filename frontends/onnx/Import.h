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
  int64_t batch = 0;                   ///< size of what counts samples, symbolic dimension 0 of the inputs; 0: as in
                                       ///< the file or `dims`
  int64_t sequence = 0;                ///< size of what counts positions, symbolic dimension 1; 0: likewise
  std::vector<std::string> dimRoles;   ///< where it is not so: "<input>:<dimension>=<batch|sequence|none>[,…]"

  // What the file's tensors are, as regular expressions of their names. What none of them decides is up to the file:
  // the record of tools/export_torch.py, or the exporter's graph signature.
  std::string parameters;              ///< trained
  std::string constants;               ///< constants of the step; before the other two
  std::string frozen;                  ///< parameters that take no gradient; before `parameters`
  std::string tied;                    ///< parameters that several modules share on purpose
  std::vector<std::string> paddingIdx; ///< "<regex>=<row>": tables whose lookups of that row take no gradient
  std::string batchNorm;               ///< train | inference: what BatchNormalization normalises by; empty: as recorded
};

/// Reads an ONNX model (binary, or ONNX text if the name ends in `.onnxtxt`) as a module with a function @step in the
/// train dialect; the module's `train.tensors` says what became of each initializer. The values of parameters are not
/// read. Errors go to the context's diagnostics, all unsupported nodes at once; the result is then null.
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
