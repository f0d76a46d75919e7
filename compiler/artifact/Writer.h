//===- Writer.h - exec programs to artifact files ---------------*- C++ -*-===//
//
// The last step of a compilation: a module with a planned exec program, and the code of its kernels, becomes one file.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_ARTIFACT_WRITER_H
#define TESSERA_COMPILER_ARTIFACT_WRITER_H

#include "runtime/artifact/artifact_generated.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// What an artifact says about itself besides the program. All lists keep their order.
struct ArtifactMetadata {
  using Entries = std::vector<std::pair<std::string, std::string>>;
  std::string producer;
  std::string target;                                ///< "cpu:<llvm cpu name>:<features>" or "sm_90"
  Entries optimizer;                                 ///< for people: kind, beta1, lr, …
  bool hasPerplexity = false;                        ///< the exponential of an evaluation's loss is one
  artifact::LearningRateT learningRate;              ///< written if the step takes a learning rate
  std::optional<artifact::SequenceChoiceT> sequence; ///< with a sequence axis larger than 1
  std::optional<artifact::ModelFileT> modelFile;     ///< where parameters begin, if it has values of them
  Entries model;                                     ///< source, batch, sequence, …
  Entries ir;                                        ///< (phase, text), with --embed-ir
};

/// All kernels for a GPU: PTX, machine code if there was an assembler, and how each kernel is launched.
struct ArtifactGpuCode {
  struct Launch {
    uint32_t blocks = 0, threadsX = 0, threadsY = 0;
  };
  std::string ptx, cubin;
  llvm::StringMap<Launch> launches;
};

/// By kernel: bytes, at most 16, to which the address of each buffer is a multiple in every launch and iteration and on
/// every rank.
mlir::FailureOr<llvm::StringMap<llvm::SmallVector<int64_t>>> kernelAlignments(mlir::ModuleOp module);

/// The bytes of the artifact for the module's exec program and the shared object that holds its kernels, or their code
/// for a GPU. Equal arguments give equal bytes.
mlir::FailureOr<std::string> serializeArtifact(mlir::ModuleOp module, llvm::StringRef sharedObject,
                                               const ArtifactMetadata &metadata, const ArtifactGpuCode *gpu = nullptr);

/// Writes the artifact to `path`, wholly or not at all: a file that was there before is replaced at the end.
llvm::LogicalResult writeArtifact(mlir::ModuleOp module, llvm::StringRef sharedObject, const ArtifactMetadata &metadata,
                                  llvm::StringRef path, const ArtifactGpuCode *gpu = nullptr);

} // namespace tessera

#endif // TESSERA_COMPILER_ARTIFACT_WRITER_H
