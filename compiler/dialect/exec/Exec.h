//===- Exec.h - the exec dialect --------------------------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_EXEC_EXEC_H
#define TESSERA_COMPILER_DIALECT_EXEC_EXEC_H

#include "compiler/dialect/dist/Dist.h"

#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"

#include "compiler/dialect/exec/ExecDialect.h.inc"
#include "compiler/dialect/exec/ExecEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/exec/ExecAttrs.h.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/exec/ExecOps.h.inc"

namespace tessera::exec {

/// Streams that instructions run on; the numbers are those of the artifact. Behind these four there are a stream of
/// gathers and one of reductions for each further axis of the mesh.
enum Stream : int64_t { kComputeStream = 0, kGatherStream = 1, kReduceStream = 2, kCopyStream = 3, kNumStreams = 16 };

/// The stream of collectives over `axes`. Those over the axis that state is split along share two, a gather and a
/// reduction stream, with those that have it among others; each other axis has two of its own, so that sums over
/// replicas or of activations do not stand behind those of gradients. Axes that are too many share the last two. Maxima
/// over the axes of gradients, which computing waits for (of 8-bit floats), have one stream more.
int64_t collectiveStream(dist::MeshAttr mesh, mlir::ArrayAttr axes, bool reduces, bool isMaximum = false);
/// Whether a stream takes reductions, or gathers; nothing for those of computation and copies.
std::optional<bool> streamReduces(int64_t stream);
/// The axis that a stream belongs to; empty for streams of computation and copies.
llvm::StringRef streamAxis(dist::MeshAttr mesh, int64_t stream);

/// True for the ops that become an instruction of the artifact, `loop` included.
bool isInstruction(mlir::Operation *op);
/// The buffers that an instruction reads and writes, without those inside a loop's body.
llvm::SmallVector<mlir::Value> readBuffers(mlir::Operation *instruction);
llvm::SmallVector<mlir::Value> writtenBuffers(mlir::Operation *instruction);
/// The stream of an instruction (a loop is on the compute stream).
int64_t streamOf(mlir::Operation *instruction);

/// The kind of a collective as the instruction's, and back.
CollectiveKind instructionKind(dist::CollectiveKind kind);
dist::CollectiveKind collectiveKind(CollectiveOp op);

/// Whether an epilogue reads a bias or a pre-activation.
bool takesBias(Epilogue epilogue);
bool takesPreActivation(Epilogue epilogue);
/// Whether it writes a pre-activation, or the gradient of a bias.
bool givesPreActivation(Epilogue epilogue);
bool givesBiasGrad(Epilogue epilogue);
/// Whether the bias gradient is a sum of an operand; the product itself is then as without an epilogue.
bool sumsOperand(Epilogue epilogue);

/// Bytes of one element in a buffer; booleans take a byte.
int64_t elementBytes(mlir::Type elementType);
/// Bytes from a view's first to one past its last element, in all iterations of a loop of `iterations` and at all
/// positions of a group of `ranks`.
int64_t spannedBytes(BufferOp buffer, int64_t iterations, int64_t ranks);
/// Strides in elements.
llvm::SmallVector<int64_t> stridesOf(mlir::MemRefType type);
/// True if the elements lie in row-major order without gaps.
bool isContiguous(mlir::MemRefType type);

} // namespace tessera::exec

#endif // TESSERA_COMPILER_DIALECT_EXEC_EXEC_H
