//===- MaskTerms.cpp - the conditions that a mask is made of --------------===//

#include "passes/simplify/MaskTerms.h"

#include "passes/simplify/Match.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

View viewOf(Value value) {
  View view{value, {}};
  for (auto [dim, size] : llvm::enumerate(shapeOf(value)))
    view.dims.push_back(size == 1 ? -1 : static_cast<int64_t>(dim));
  return view;
}

View sourceOf(View view) {
  while (Operation *op = view.value.getDefiningOp()) {
    if (!isa<BroadcastOp, TransposeOp, ReshapeOp>(op))
      return view;
    Value source = op->getOperand(0);
    const ArrayRef<int64_t> shape = shapeOf(source);
    SmallVector<int64_t, 4> dims(shape.size(), -1);
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      for (auto [dim, target] : llvm::enumerate(broadcast.getBroadcastDimensions()))
        if (shape[dim] != 1)
          dims[dim] = view.dims[target];
    } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
      for (auto [dim, from] : llvm::enumerate(transpose.getPermutation()))
        dims[from] = view.dims[dim];
    } else {
      auto isWide = [](ArrayRef<int64_t> sizes) {
        return llvm::to_vector(
            llvm::make_filter_range(llvm::seq<size_t>(0, sizes.size()), [=](size_t dim) { return sizes[dim] != 1; }));
      };
      const ArrayRef<int64_t> to = shapeOf(view.value);
      const auto sources = isWide(shape), targets = isWide(to);
      if (sources.size() != targets.size())
        return view;
      for (auto [from, target] : llvm::zip_equal(sources, targets)) {
        if (shape[from] != to[target])
          return view;
        dims[from] = view.dims[target];
      }
    }
    view = {source, dims};
  }
  return view;
}

/// Of ops between a mask and a condition.
static constexpr int kDeepestMask = 16;

MaskTerms::MaskTerms(const Mask &mask) {
  if (mask.isAdded) {
    addScores(viewOf(mask.value), 0);
  } else {
    hidesFinitely = !std::isinf(mask.hidden);
    addCondition(viewOf(mask.value), mask.attendIsTrue, 0);
  }
}

/// What is added to the scores: 0, or a large negative number under a condition.
void MaskTerms::addScores(const View &view, int depth) {
  const View source = sourceOf(view);
  auto operand = [&](Value value) { return View{value, source.dims}; };
  Operation *op = depth < kDeepestMask ? source.value.getDefiningOp() : nullptr;
  if (auto select = dyn_cast_or_null<SelectOp>(op)) {
    const auto onTrue = uniformConstant(select.getOnTrue()), onFalse = uniformConstant(select.getOnFalse());
    for (bool attendIsTrue : {true, false}) {
      const auto open = attendIsTrue ? onTrue : onFalse, hidden = attendIsTrue ? onFalse : onTrue;
      if (open == 0.0 && hidden && *hidden <= kHiddenScore) {
        hidesFinitely |= !std::isinf(*hidden);
        return addCondition(operand(select.getPredicate()), attendIsTrue, depth + 1);
      }
    }
  } else if (auto add = dyn_cast_or_null<AddOp>(op)) {
    addScores(operand(add.getLhs()), depth + 1);
    return addScores(operand(add.getRhs()), depth + 1);
  } else if (auto scaled = op ? scaledBy(source.value) : std::nullopt;
             scaled && scaled->second <= kHiddenScore && !std::isinf(scaled->second)) {
    // A large number times a condition as 0 or 1, or times what is left of 1.
    const View factor = sourceOf(operand(scaled->first));
    auto rest = factor.value.getDefiningOp<SubOp>();
    const bool isRest = rest && uniformConstant(rest.getLhs()) == 1.0;
    const View number = isRest ? sourceOf({rest.getRhs(), factor.dims}) : factor;
    auto convert = number.value.getDefiningOp<ConvertOp>();
    if (convert && tensorType(convert.getOperand()).getElementType().isInteger(1)) {
      hidesFinitely = true;
      return addCondition({convert.getOperand(), number.dims}, isRest, depth + 1);
    }
  }
  terms.push_back({view, /*isAdded=*/true, true});
}

void MaskTerms::addCondition(const View &view, bool isTrue, int depth) {
  const View source = sourceOf(view);
  auto operand = [&](Value value) { return View{value, source.dims}; };
  Operation *op = depth < kDeepestMask ? source.value.getDefiningOp() : nullptr;
  // And; not (a or b).
  if ((isTrue && isa_and_nonnull<MulOp>(op)) || (!isTrue && isa_and_nonnull<MaxOp>(op))) {
    addCondition(operand(op->getOperand(0)), isTrue, depth + 1);
    return addCondition(operand(op->getOperand(1)), isTrue, depth + 1);
  }
  if (auto select = dyn_cast_or_null<SelectOp>(op)) {
    const auto other = uniformConstant(isTrue ? select.getOnFalse() : select.getOnTrue());
    if (other == (isTrue ? 0.0 : 1.0)) {
      addCondition(operand(select.getPredicate()), isTrue, depth + 1);
      return addCondition(operand(isTrue ? select.getOnTrue() : select.getOnFalse()), isTrue, depth + 1);
    }
  }
  auto boolean = [](Value value) {
    while (auto convert = value.getDefiningOp<ConvertOp>())
      value = convert.getOperand();
    return tensorType(value).getElementType().isInteger(1) ? value : Value();
  };
  // A condition that is compared with a number, or becomes one on the way.
  if (auto compare = dyn_cast_or_null<CompareOp>(op)) {
    Value inner = boolean(compare.getLhs());
    const auto number = uniformConstant(compare.getRhs());
    const bool isEqual = compare.getDirection() == CompareDirection::Eq;
    if (inner && (number == 0.0 || number == 1.0) && (isEqual || compare.getDirection() == CompareDirection::Ne))
      return addCondition(operand(inner), isTrue == (isEqual == (number == 1.0)), depth + 1);
  }
  if (isa_and_nonnull<ConvertOp>(op))
    if (Value inner = boolean(source.value))
      return addCondition(operand(inner), isTrue, depth + 1);
  terms.push_back({view, /*isAdded=*/false, isTrue});
}

} // namespace tessera::simplify
