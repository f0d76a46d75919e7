//===- ValueProof.h - the state of a proof about values ---------*- C++ -*-===//
//
// Shared by ValueNumbering.cpp, which walks the step and the program, and ValueNumberingOps.cpp, which knows the
// instructions.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_VALUEPROOF_H
#define TESSERA_PASSES_LOWER_VALUEPROOF_H

#include "passes/lower/MemoryContents.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::lower {

/// The proof for one rank.
class ValueProof {
public:
  ValueProof(exec::ProgramOp program, mlir::func::FuncOp step, dist::MeshAttr mesh, int64_t rank)
      : program(program), step(step), values(mesh, rank), memory(values) {}
  mlir::LogicalResult run();

  /// A read of elements that are not followed.
  using Unproved = std::pair<mlir::Operation *, mlir::Value>;
  llvm::ArrayRef<Unproved> getUnproved() const { return unproved.getArrayRef(); }

private:
  /// What a buffer should hold, and the first thing that it holds instead; nothing, if its memory was not written.
  struct Difference {
    unsigned expected;
    int64_t element;
    std::optional<unsigned> found;
    int64_t foundElement;
  };

  mlir::LogicalResult runBlock(mlir::Block &body);
  mlir::LogicalResult runLoop(exec::RepeatOp repeat, mlir::Operation *instruction);
  /// Carries out what is left in a block: copies and fills.
  mlir::LogicalResult finishBlock();
  mlir::LogicalResult verifyResults(mlir::func::ReturnOp returned);
  mlir::LogicalResult bindArgument(exec::ArgumentOp argument);
  /// Carries out copies and fills up to the next instruction that computes something; null at the end of the block, and
  /// after an error.
  mlir::Operation *nextInstruction();

  /// The instruction computes the results of `op` from its operands, where memory holds those.
  mlir::LogicalResult verifyInstruction(mlir::Operation *op, mlir::Operation *instruction);
  mlir::LogicalResult verifyLaunch(exec::FusionOp fusion, exec::LaunchOp launch);
  mlir::LogicalResult verifyProbes(exec::FusionOp fusion);
  mlir::LogicalResult verifyGemm(mlir::Operation *op, exec::GemmOp gemm);
  mlir::LogicalResult verifyConv(mlir::Operation *op, exec::ConvOp conv);
  mlir::LogicalResult verifyAttention(train::AttentionOp op, exec::AttentionOp attention);
  mlir::LogicalResult verifyAttentionGrad(train::AttentionGradOp op, exec::AttentionGradOp attention);
  mlir::LogicalResult verifyCollective(mlir::Operation *op, exec::CollectiveOp collective);
  /// Reads all operands, then writes all results, of a call that reads nothing where it writes.
  mlir::LogicalResult verifyCall(mlir::Operation *op, mlir::Operation *instruction, mlir::ValueRange inputs,
                                 mlir::ValueRange outputs);

  /// What is known of both sides; `isProved` if that is all of the buffer, and the same.
  struct Comparison {
    std::optional<Difference> difference;
    bool isProved = false;
  };
  Comparison compare(mlir::Value buffer, const Content &expected, int64_t iteration) const;
  mlir::LogicalResult verifyRead(mlir::Operation *op, mlir::Value buffer, const Content &expected);
  /// The buffer holds the operand; if that is a loop's number, in every iteration of the loop.
  mlir::LogicalResult verifyOperand(mlir::Operation *op, mlir::Value buffer, mlir::Value operand);
  mlir::LogicalResult report(mlir::Operation *op, mlir::Value buffer, const Difference &difference);
  /// Nothing of what is read is written, unless all of it may be.
  mlir::LogicalResult verifyApart(mlir::Operation *op, mlir::Value read, mlir::Value written, bool mayBeOne);
  /// The buffer receives a value that is computed here.
  void define(mlir::Value value, mlir::Value buffer);
  mlir::InFlightDiagnostic bug(mlir::Operation *op);

  exec::ProgramOp program;
  mlir::func::FuncOp step;
  ValueContents values;
  MemoryContents memory;

  mlir::Block::iterator at, end; ///< the next instruction
  int64_t iteration = 0;
  bool hasFailed = false;
  llvm::SmallSetVector<Unproved, 4> unproved;
  llvm::SmallVector<exec::ArgumentOp> arguments;
  llvm::SmallVector<exec::ResultOp> results;
  llvm::SmallVector<exec::ProbeOp> probes; ///< since the last instruction that computes something
};

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_VALUEPROOF_H
