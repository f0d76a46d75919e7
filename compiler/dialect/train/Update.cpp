//===- Update.cpp - what optimizer updates have in common -----------------===//

#include "compiler/dialect/train/Update.h"

#include "compiler/dialect/train/Train.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::train {

Value getUpdateGradient(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AdamwUpdateOp, SgdUpdateOp>([](auto update) { return update.getGrad(); })
      .Default(Value());
}

std::optional<MutableOperandRange> getUpdateApply(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<MutableOperandRange>>(op)
      .Case<AdamwUpdateOp, SgdUpdateOp>([](auto update) { return update.getApplyMutable(); })
      .Default(std::nullopt);
}

} // namespace tessera::train
