#include "compiler/interfaces/Interfaces.h"

using namespace mlir;

namespace tessera {

int64_t ShardingRule::addFactor(int64_t size, FactorKind kind) {
  factors.push_back({size, kind});
  return static_cast<int64_t>(factors.size()) - 1;
}

ArrayRef<bool> ShardingRule::passes(dist::ReductionKind kind) const {
  switch (kind) {
  case dist::ReductionKind::Sum:
    return linear;
  case dist::ReductionKind::Max:
    return maxima;
  case dist::ReductionKind::Min:
    return minima;
  }
  llvm_unreachable("unknown reduction");
}

std::optional<dist::ReductionKind> ShardingRule::reductionOf(unsigned result, int64_t factor) const {
  for (const Reduction &reduction : reductions[result])
    if (reduction.factor == factor)
      return reduction.kind;
  return std::nullopt;
}

bool ShardingRule::isComplete() const {
  for (const TensorFactors &operand : operands)
    for (const auto &dim : operand)
      for (int64_t factor : dim) {
        if (factors[factor].kind != FactorKind::PassThrough)
          continue;
        for (auto [number, result] : llvm::enumerate(results)) {
          auto has = [factor](const auto &list) { return llvm::is_contained(list, factor); };
          if (llvm::none_of(result, has) && !reductionOf(static_cast<unsigned>(number), factor))
            return false;
        }
      }
  return true;
}

FailureOr<SmallVector<Value>> cloneWithLocalTypes(Operation *op, OpBuilder &builder, ValueRange operands,
                                                  TypeRange resultTypes) {
  assert(op->getNumRegions() == 0 && "ops with regions are localised by the pass itself");
  OperationState state(op->getLoc(), op->getName(), operands, resultTypes, op->getAttrs());
  return SmallVector<Value>(builder.create(state)->getResults());
}

} // namespace tessera
