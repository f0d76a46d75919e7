//===- Rows.cpp - where rows or heads of values lie -----------------------===//

#include "compiler/dialect/train/Rows.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/interfaces/Interfaces.h"
#include "compiler/interfaces/OptimizerUpdate.h"

using namespace mlir;

namespace tessera::train {

std::optional<RowsOf> placeOf(const ShardingRule &rule, const TensorFactors &dims, int64_t factor, bool &isMajor) {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    const auto *found = llvm::find(factors, factor);
    if (found == factors.end())
      continue;
    auto isLarge = [&](int64_t other) { return rule.factors[other].size != 1; };
    isMajor &= llvm::none_of(llvm::make_range(factors.begin(), found), isLarge);
    int64_t inner = 1;
    for (int64_t minor : llvm::make_range(found + 1, factors.end()))
      inner *= rule.factors[minor].size;
    return RowsOf{static_cast<int64_t>(dim), inner};
  }
  return std::nullopt;
}

int64_t rowFactor(const ShardingRule &rule, const TensorFactors &dims, RowsOf place, int64_t rows) {
  for (int64_t number : dims[place.dim]) {
    const Factor &factor = rule.factors[number];
    if (factor.size == 1)
      continue;
    const bool isFree = factor.kind == FactorKind::PassThrough && !factor.isOrdered && !factor.isRun;
    return isFree && factor.size % rows == 0 ? number : -1;
  }
  return -1;
}

bool repeatsRows(Operation *op, RowsOf place) {
  if (isa_and_nonnull<ConstantOp>(op))
    return isa<SplatElementsAttr>(cast<ConstantOp>(op).getValue());
  auto broadcast = dyn_cast_or_null<BroadcastOp>(op);
  if (!broadcast)
    return false;
  const auto *source = llvm::find(broadcast.getBroadcastDimensions(), place.dim);
  return source == broadcast.getBroadcastDimensions().end() ||
         shapeOf(broadcast.getOperand())[source - broadcast.getBroadcastDimensions().begin()] == 1;
}

bool knowsPlaces(Operation *op) {
  return isa<IotaOp, RngUniformOp, AttentionOp, AttentionGradOp, OptimizerUpdateOpInterface>(op);
}

namespace {
/// For ops that do not know places; notes if one asks.
class NoPlace : public LocalizeContext {
public:
  Value globalOffset(OpBuilder &, unsigned, int64_t) override { return ask(); }
  Value globalIndices(OpBuilder &, unsigned, int64_t) override { return ask(); }
  bool isBalanced(unsigned, int64_t) override { return ask() != nullptr; }
  std::optional<SmallVector<dist::DimPiece>> pieces(OpBuilder &, unsigned, int64_t) override {
    ask();
    return std::nullopt;
  }
  bool isAsked = false;

private:
  Value ask() {
    isAsked = true;
    return {};
  }
};
} // namespace

FailureOr<SmallVector<Value>> buildForRows(Operation *op, OpBuilder &builder, ValueRange operands, TypeRange types) {
  NoPlace context;
  auto results = cast<ShardingRuleOpInterface>(op).buildLocal(builder, operands, types, context);
  if (context.isAsked)
    return op->emitOpError("asks for the place of rows, and is not in the list of knowsPlaces");
  return results;
}

} // namespace tessera::train
