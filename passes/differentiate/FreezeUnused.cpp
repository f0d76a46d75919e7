//===- FreezeUnused.cpp - freezes parameters that have no gradient --------===//

#include "compiler/dialect/train/Signature.h"
#include "passes/differentiate/Activity.h"
#include "passes/differentiate/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_FREEZEUNUSED
#include "passes/differentiate/Passes.h.inc"

namespace {

struct FreezeUnused : impl::FreezeUnusedBase<FreezeUnused> {
  using FreezeUnusedBase::FreezeUnusedBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isStepFunction(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp func) {
    FailureOr<Activity> activity = Activity::ofStep(func);
    if (failed(activity))
      return failure();
    if (!activity->getParameters().empty() && !activity->isActive(activity->getLoss())) {
      func.emitWarning("the loss does not depend on any parameter");
      return success();
    }
    const NamedAttribute frozen = train::getRoleAttr(func.getContext(), train::ArgRole::Frozen);
    for (Value param : activity->getParameters()) {
      if (activity->isActive(param))
        continue;
      unsigned index = cast<BlockArgument>(param).getArgNumber();
      emitWarning(param.getLoc()) << "no gradient of the loss reaches parameter '" << train::getArgName(func, index)
                                  << "': it stays as it is, as in PyTorch";
      func.setArgAttr(index, frozen.getName(), frozen.getValue());
    }
    return success();
  }
};

} // namespace
} // namespace tessera
