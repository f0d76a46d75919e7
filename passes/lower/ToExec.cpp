//===- ToExec.cpp - the lowered step to an exec program -------------------===//
//
// See Passes.td. The work is done by BufferAssignment (which memory) and Emitter (which instructions).
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Signature.h"
#include "passes/lower/Emitter.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_TOEXEC
#include "passes/lower/Passes.h.inc"

namespace {

struct ToExec : impl::ToExecBase<ToExec> {
  using ToExecBase::ToExecBase;

  void runOnOperation() override {
    for (func::FuncOp func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (func.isDeclaration())
        continue;
      if (failed(train::checkTensorFunction(func)))
        return signalPassFailure();
      lower::BufferAssignment assignment(func);
      FailureOr<exec::ProgramOp> program = lower::Emitter(func, assignment).emit();
      if (failed(program))
        return signalPassFailure();
      if (keepStep)
        func->moveBefore(&program->getBody().front(), program->getBody().front().begin());
      else
        func.erase();
    }
  }
};

} // namespace
} // namespace tessera
