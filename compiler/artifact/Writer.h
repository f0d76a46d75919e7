//===- Writer.h - exec programs to artifact files ---------------*- C++ -*-===//
//
// The last step of a compilation: a module with a planned exec program, and the code of its kernels, becomes one file.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_ARTIFACT_WRITER_H
#define TESSERA_COMPILER_ARTIFACT_WRITER_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// What an artifact says about itself besides the program. All lists keep their order.
struct ArtifactMetadata {
  using Entries = std::vector<std::pair<std::string, std::string>>;
  std::string producer;
  std::string target; ///< "cpu:<llvm cpu name>:<features>"
  Entries optimizer;  ///< kind, beta1, lr, …
  Entries model;      ///< source, batch, sequence, …
  Entries ir;         ///< (phase, text), with --embed-ir
};

/// The bytes of the artifact for the module's exec program and the shared object that holds its kernels. Equal
/// arguments give equal bytes.
mlir::FailureOr<std::string> serializeArtifact(mlir::ModuleOp module, llvm::StringRef sharedObject,
                                               const ArtifactMetadata &metadata);

/// Writes the artifact to `path`, wholly or not at all: a file that was there before is replaced at the end.
llvm::LogicalResult writeArtifact(mlir::ModuleOp module, llvm::StringRef sharedObject, const ArtifactMetadata &metadata,
                                  llvm::StringRef path);

} // namespace tessera

#endif // TESSERA_COMPILER_ARTIFACT_WRITER_H
