//===- DropStep.cpp - erases the step that a program was proved against ---===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Passes.h"
#include "passes/lower/ValueNumbering.h"

namespace tessera {
#define GEN_PASS_DEF_DROPSTEP
#include "passes/lower/Passes.h.inc"

namespace {

struct DropStep : impl::DropStepBase<DropStep> {
  void runOnOperation() override {
    if (mlir::func::FuncOp step = lower::stepOf(getOperation()))
      step.erase();
    else
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace tessera
