//===- Frontend.h - the kinds of files that models come in ------*- C++ -*-===//
//
// What the driver knows of frontends: one row each, found by a file's name, or
// by its first bytes, and the options that all imports take. A new frontend is
// a folder and a row of the table in Frontend.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_FRONTEND_H
#define TESSERA_FRONTENDS_FRONTEND_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace tessera {

struct ImportOptions {
  std::map<std::string, int64_t> dims; ///< sizes of symbolic dimensions by name
  int64_t batch = 0;                   ///< size of what counts samples, symbolic dimension 0 of the inputs; 0: as in
                                       ///< the file or `dims`
  int64_t sequence = 0;                ///< size of what counts positions, symbolic dimension 1; 0: likewise
  bool isPartOfBatch = false;          ///< of several micro-batches: what depends on `batch` as a number is refused
  std::vector<std::string> dimRoles;   ///< where it is not so: "<input>:<dimension>=<batch|sequence|none>[,…]"

  // What the file's tensors are, as regular expressions of their names. What none of them decides is up to the file:
  // the record of python -m tessera export, or the exporter's graph signature.
  std::string parameters;              ///< trained
  std::string constants;               ///< constants of the step; before the other two
  std::string frozen;                  ///< parameters that take no gradient; before `parameters`
  std::string tied;                    ///< parameters that several modules share on purpose
  std::vector<std::string> paddingIdx; ///< "<regex>=<row>": tables whose lookups of that row take no gradient
  std::string batchNorm;               ///< train | inference: what BatchNormalization normalises by; empty: as recorded
};

/// One kind of file.
struct Frontend {
  llvm::StringLiteral name;                     ///< for messages
  llvm::ArrayRef<llvm::StringLiteral> suffixes; ///< of the names of such files
  /// Whether a file of another name is of this kind, by its first bytes: at most kStartBytes.
  bool (*recognises)(llvm::StringRef start);
  /// Reads a model as a module with a function @step in the train dialect; the module's `train.tensors` says what
  /// became of each tensor of the file. The values of parameters are not read. Errors go to the context's diagnostics;
  /// the result is then null.
  mlir::OwningOpRef<mlir::ModuleOp> (*import)(const std::string &path, const ImportOptions &options,
                                              mlir::MLIRContext &context);
  /// Whether a number in a file follows from a size only where the file says how. Else a tracer may have left a number
  /// of the batch that it saw.
  bool keepsSizes;
};

inline constexpr size_t kStartBytes = 16;

/// The frontend of a file, by its name or else by its first bytes; null if it is of no kind that is known.
const Frontend *frontendOf(llvm::StringRef path);
/// The kinds and the suffixes of their files, for messages.
std::string frontendKinds();

} // namespace tessera

#endif // TESSERA_FRONTENDS_FRONTEND_H
