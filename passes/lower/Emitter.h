//===- Emitter.h - instructions from lowered tensors ------------*- C++ -*-===//
//
// Writes the exec program of a lowered step: slots and buffers for what BufferAssignment decided, one instruction per
// op that computes, the copies that could not be avoided, and the events between streams.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_EMITTER_H
#define TESSERA_PASSES_LOWER_EMITTER_H

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/exec/Exec.h"
#include "passes/lower/BufferAssignment.h"
#include "passes/lower/LibraryLayouts.h"
#include "passes/lower/Streams.h"

namespace tessera::lower {

class Emitter {
public:
  Emitter(mlir::func::FuncOp func, const BufferAssignment &assignment);
  /// Builds the program before the function. Failure means that a diagnostic was emitted.
  mlir::FailureOr<exec::ProgramOp> emit();

private:
  // Memory.
  mlir::Value slot(unsigned storage);
  mlir::Value temporary(mlir::RankedTensorType type, llvm::StringRef name, exec::MemoryClass memoryClass,
                        exec::ArenaKind arena, mlir::Location loc);
  mlir::Value buffer(mlir::Value slot, const Layout &layout, mlir::Type elementType);
  mlir::Value bufferOf(const View &view);
  mlir::Value bufferOf(mlir::Value tensor) { return bufferOf(*assignment.lookup(tensor)); }
  /// The operand's own view if `use` can read it, else that of a row-major copy, made here and kept for later readers.
  struct Source {
    mlir::Value slot;
    Layout layout;
  };
  Source source(mlir::OpOperand &use);
  mlir::Value sourceBuffer(mlir::OpOperand &use);
  Source copyOf(mlir::Value tensor, mlir::Location loc, llvm::StringRef why);

  // Instructions.
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitFusion(exec::FusionOp op);
  mlir::LogicalResult emitConstant(train::ConstantOp op);
  mlir::LogicalResult emitConcat(train::ConcatOp op);
  mlir::LogicalResult emitGemm(mlir::Operation *op);
  template <typename Op>
  mlir::LogicalResult emitConv(Op op, exec::ConvKind kind, mlir::Value x, mlir::Value w, mlir::Value y);
  mlir::LogicalResult emitAttention(train::AttentionOp op);
  mlir::LogicalResult emitAttentionGrad(train::AttentionGradOp op);
  mlir::LogicalResult emitCollective(dist::CollectiveOpInterface op);
  mlir::LogicalResult emitCopyStart(dist::CopyStartOp op);
  mlir::LogicalResult emitDone(dist::DoneOp op);
  mlir::LogicalResult emitRepeat(exec::RepeatOp op);
  mlir::LogicalResult emitReturn(mlir::func::ReturnOp op);
  void emitArguments();
  void emitCopy(mlir::Value from, mlir::Value to, mlir::Location loc);
  /// Fills or copies a tensor into the buffer that is to hold it.
  mlir::LogicalResult move(mlir::Value tensor, mlir::Value to, mlir::Location loc, llvm::StringRef why);
  /// Moves several tensors at once: none is overwritten before it has been read.
  mlir::LogicalResult moveAll(llvm::ArrayRef<std::pair<mlir::Value, View>> moves, mlir::Location loc,
                              llvm::StringRef why);

  template <typename Op, typename... Args> Op instruction(mlir::Location loc, int64_t stream, Args &&...args) {
    Op op = Op::create(code, loc, std::forward<Args>(args)..., stream);
    streams.issue(stream);
    return op;
  }

  mlir::func::FuncOp func;
  const BufferAssignment &assignment;
  exec::ProgramOp program;
  mlir::OpBuilder memory, code;
  Streams streams;
  llvm::DenseMap<unsigned, mlir::Value> slots;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> buffers; ///< of a slot
  llvm::DenseMap<std::pair<mlir::Value, mlir::Block *>, Source> copies;
  llvm::DenseMap<mlir::Value, Streams::Mark> futures;
};

/// Names of the program's arenas.
llvm::StringRef arenaName(exec::ArenaKind kind);

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_EMITTER_H
