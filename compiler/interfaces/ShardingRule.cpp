#include "compiler/interfaces/Interfaces.h"

using namespace mlir;

namespace tessera {

int64_t ShardingRule::addFactor(int64_t size, FactorKind kind) {
  factors.push_back({size, kind});
  return static_cast<int64_t>(factors.size()) - 1;
}

FailureOr<SmallVector<Value>> cloneWithLocalTypes(Operation *op, OpBuilder &builder, ValueRange operands,
                                                  TypeRange resultTypes) {
  assert(op->getNumRegions() == 0 && "ops with regions are localised by the pass itself");
  OperationState state(op->getLoc(), op->getName(), operands, resultTypes, op->getAttrs());
  return SmallVector<Value>(builder.create(state)->getResults());
}

} // namespace tessera
