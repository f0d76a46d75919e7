//===- Accumulation.cpp - cotangents that are still being summed ----------===//

#include "passes/differentiate/Accumulation.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::train;

namespace {
/// A contribution that is zero outside [low, low + size) of one dimension.
struct Box {
  int64_t low, size;
  Value inside;
};
} // namespace

/// The only dimension along which a pad by zero grows its operand without gaps; -1 if it is not such a pad.
static int64_t getPaddedDim(PadOp pad) {
  if (!pad || !pad.getValue().isZero() || llvm::any_of(pad.getInterior(), [](int64_t gap) { return gap != 0; }))
    return -1;
  int64_t padded = -1;
  for (auto [dim, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh())) {
    if (low == 0 && high == 0)
      continue;
    if (padded >= 0)
      return -1;
    padded = static_cast<int64_t>(dim);
  }
  return padded;
}

/// Sorts boxes and adds those of equal extent; false if any two others overlap.
static bool mergeBoxes(Build &build, SmallVectorImpl<Box> &boxes) {
  llvm::stable_sort(boxes, [](const Box &a, const Box &b) { return a.low < b.low; });
  for (auto [box, next] : llvm::zip(boxes, ArrayRef<Box>(boxes).drop_front()))
    if (next.low < box.low + box.size && !(next.low == box.low && next.size == box.size))
      return false;
  SmallVector<Box> merged;
  for (const Box &box : boxes) {
    if (!merged.empty() && merged.back().low == box.low)
      merged.back().inside = build.add(merged.back().inside, box.inside);
    else
      merged.push_back(box);
  }
  boxes.assign(merged);
  return true;
}

/// Replaces two or more contributions that are boxes along the same dimension by one concat of the boxes, with zeros in
/// the gaps. The new contribution stands where the first of them stood.
static void concatBoxes(Build &build, SmallVectorImpl<Value> &contributions) {
  int64_t dim = -1;
  SmallVector<Box> boxes;
  SmallVector<unsigned> positions;
  for (auto [position, value] : llvm::enumerate(contributions)) {
    auto pad = value.getDefiningOp<PadOp>();
    int64_t padded = getPaddedDim(pad);
    if (padded < 0 || (dim >= 0 && padded != dim))
      continue;
    dim = padded;
    boxes.push_back({pad.getLow()[dim], shapeOf(pad.getOperand())[dim], pad.getOperand()});
    positions.push_back(position);
  }
  if (boxes.size() < 2 || !mergeBoxes(build, boxes))
    return;

  RankedTensorType type = tensorType(contributions[positions.front()]);
  SmallVector<Value> parts;
  int64_t end = 0;
  auto fillTo = [&](int64_t low) {
    if (low <= end)
      return;
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = low - end;
    parts.push_back(build.zeros(type.clone(shape)));
  };
  for (const Box &box : boxes) {
    fillTo(box.low);
    parts.push_back(box.inside);
    end = box.low + box.size;
  }
  fillTo(type.getDimSize(dim));
  contributions[positions.front()] = parts.size() == 1 ? parts.front() : build.concat(parts, dim);
  for (unsigned position : llvm::reverse(ArrayRef<unsigned>(positions).drop_front()))
    contributions.erase(contributions.begin() + position);
}

Value Accumulation::take(OpBuilder &builder, Value primal) {
  auto found = pending.find(primal);
  if (found == pending.end())
    return Value();
  SmallVector<Value, 2> contributions = std::move(found->second);
  pending.erase(found);
  Build build(builder, NameLoc::get(builder.getStringAttr("grad"), primal.getLoc()));
  concatBoxes(build, contributions);
  Value total = contributions.front();
  for (Value contribution : ArrayRef<Value>(contributions).drop_front())
    total = build.add(total, contribution);
  return total;
}
