//===- VerifyPhases.cpp - marks agree with the phases ---------------------===//

#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/simplify/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_VERIFYPHASES
#include "passes/simplify/Passes.h.inc"

namespace {

struct VerifyPhases : impl::VerifyPhasesBase<VerifyPhases> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!train::isStepFunction(func))
      return;
    const train::PhaseAnalysis phases(func);
    auto result = func.walk([&](Operation *op) -> WalkResult {
      if (train::isMarkedBackward(op) && phases.getPhase(op) == train::StepPhase::Forward &&
          !op->hasTrait<OpTrait::ConstantLike>())
        return op->emitOpError() << "is marked as backward, but the loss or an output needs it";
      return success();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace tessera
