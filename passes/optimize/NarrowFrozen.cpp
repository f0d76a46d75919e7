//===- NarrowFrozen.cpp - frozen parameters are held in bf16 --------------===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/optimize/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_NARROWFROZEN
#include "passes/optimize/Passes.h.inc"

namespace {

struct NarrowFrozen : impl::NarrowFrozenBase<NarrowFrozen> {
  using NarrowFrozenBase::NarrowFrozenBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isStepFunction(func) && failed(run(func)))
      signalPassFailure();
  }

  /// Widens `arg` before the first op of a phase that reads it.
  void widen(BlockArgument arg, Type wide, bool backward) {
    Operation *first = nullptr;
    auto isOfPhase = [&](Operation *op) { return train::isMarkedBackward(op) == backward; };
    for (Operation *user : arg.getUsers()) {
      Operation *ancestor = arg.getOwner()->findAncestorOpInBlock(*user);
      if (isOfPhase(user) && (!first || ancestor->isBeforeInBlock(first)))
        first = ancestor;
    }
    if (!first)
      return;
    train::MarkBackward listener;
    OpBuilder builder(first, backward ? &listener : nullptr);
    auto widened = train::ConvertOp::create(builder, arg.getLoc(), wide, arg);
    arg.replaceUsesWithIf(widened,
                          [&](OpOperand &use) { return use.getOwner() != widened && isOfPhase(use.getOwner()); });
  }

  LogicalResult run(func::FuncOp func) {
    train::completeBackwardMarks(func);
    bool isUsed = false;
    for (unsigned index : train::getArgsWithRole(func, train::ArgRole::Frozen)) {
      BlockArgument arg = func.getArgument(index);
      RankedTensorType wide = train::tensorType(arg);
      if (!train::isFlattened(func, index) || !wide.getElementType().isF32() || train::isComputedInF32(func, index))
        continue;
      func.removeArgAttr(index, train::kComputeType); // what becomes 8 bits does so from bf16
      arg.setType(wide.clone(BFloat16Type::get(func.getContext())));
      func.setArgAttr(index, train::kModelType, TypeAttr::get(wide.getElementType()));
      for (bool backward : {false, true})
        widen(arg, wide, backward);
      isUsed = true;
    }
    if (!isUsed)
      return func.emitError(
          "--frozen-dtype bf16: there is no frozen parameter that is f32, may begin with any value (no "
          "buffer), and is not kept in f32 (--keep-f32)");
    func.setFunctionType(
        FunctionType::get(func.getContext(), func.getBody().front().getArgumentTypes(), func.getResultTypes()));
    return success();
  }
};

} // namespace
} // namespace tessera
