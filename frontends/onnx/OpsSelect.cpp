//===- OpsSelect.cpp - the largest, the smallest, and those that are not 0 ===//

#include "frontends/common/Indexing.h"
#include "frontends/common/Order.h"
#include "frontends/onnx/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// The last one of equal maxima: the largest position whose element equals the maximum, or is no number.
Value lastArgmax(Build &b, Value x, int64_t axis) {
  SmallVector<int64_t> shape(shapeOf(x));
  Value top = b.broadcastReduced(b.reduce(ReduceKind::Max, x, {axis}), shape, {axis});
  Value isTop = b.compare(CompareDirection::Eq, x, top);
  if (isa<FloatType>(tensorType(x).getElementType()))
    isTop = b.select(isTop, isTop, b.compare(CompareDirection::Ne, x, x));
  Value position = b.iota(RankedTensorType::get(shape, b.builder.getI64Type()), axis);
  return b.reduce(ReduceKind::Max, b.select(isTop, position, b.splatLike(position, 0)), {axis});
}

template <bool isMin> LogicalResult opArgMax(Node &n) {
  auto axis = axisOf(n.attr("axis", 0), n.rank(0));
  if (!axis || n.element(0).isInteger(1) || n.shape(0)[*axis] == 0)
    return n.fail("expected a numeric input and an axis in range along which there are elements");
  Build &b = n.b;
  Value x = n.input(0);
  const bool isLast = n.attr("select_last_index", 0) != 0;
  Value result =
      isLast ? lastArgmax(b, isMin ? frontend::reversed(b, x) : x, *axis) : frontend::argExtreme(b, x, *axis, isMin);
  SmallVector<int64_t> shape(shapeOf(result));
  if (n.attr("keepdims", 1) != 0) {
    shape.insert(shape.begin() + *axis, 1);
    result = b.reshape(result, shape);
  }
  return n.set(result);
}

/// Indices in order of the elements, of which the first k are kept, and the elements there. Equal elements keep their
/// order.
LogicalResult opTopK(Node &n) {
  const int64_t rank = n.rank(0);
  auto axis = axisOf(n.attr("axis", -1), rank);
  auto count = n.ints(1);
  if (!axis || !count || count->size() != 1 || n.element(0).isInteger(1))
    return n.fail("expected a numeric input, an axis in range and a number of elements known at import");
  const int64_t k = count->front();
  if (k < 0 || k > n.shape(0)[*axis])
    return n.fail("takes " + Twine(k) + " elements of a dimension of size " + Twine(n.shape(0)[*axis]));
  Build &b = n.b;
  frontend::Ordered found = frontend::inOrder(b, n.input(0), *axis, k, n.attr("largest", 1) != 0);
  if (failed(n.set(found.values)))
    return failure();
  return n.set(found.indices, 1);
}

/// Positions of what is not 0, one column each; their number must be known.
LogicalResult opNonZero(Node &n) {
  const HostTensor *x = n.constant(0);
  if (!x)
    return n.fail("the number of elements that are not 0 must be known at import; write a selection (torch.where)");
  ArrayRef<int64_t> shape = x->shape();
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x->size(); ++i)
    if (x->number(i) != 0)
      found.push_back(i);
  const auto count = static_cast<int64_t>(found.size());
  if (rank * count > kMaxConstantElements)
    return n.fail("result is too large");
  std::vector<int64_t> values(rank * count);
  for (int64_t dim = rank - 1; dim >= 0; --dim)
    for (auto [column, rest] : llvm::enumerate(found)) {
      values[dim * count + static_cast<int64_t>(column)] = rest % shape[dim];
      rest /= shape[dim];
    }
  auto type = RankedTensorType::get({rank, count}, n.b.builder.getI64Type());
  return n.set(HostTensor::ofInts(type, std::move(values)));
}

/// The slices of an axis for which a condition holds, which must be known.
LogicalResult opCompress(Node &n) {
  const HostTensor *condition = n.constant(1);
  if (!condition || n.rank(1) != 1)
    return n.fail("the condition must be a vector known at import");
  const bool flat = !n.attribute("axis");
  auto axis = axisOf(n.attr("axis", 0), flat ? 1 : n.rank(0));
  Value x = flat ? n.b.reshape(n.input(0), {n.type(0).getNumElements()}) : n.input(0);
  if (!axis || condition->size() > shapeOf(x)[*axis])
    return n.fail("axis is out of range, or the condition is longer than the dimension");
  KnownIndices kept;
  for (int64_t i = 0; i < condition->size(); ++i)
    if (condition->number(i) != 0)
      kept.push_back(i);
  if (kept.empty())
    return n.fail("the condition is false everywhere");
  return n.set(takeAlong(n.b, x, *axis, kept));
}

const OpRow kSelectOps[] = {
    {"", "ArgMax", kAny, kNew, 1, opArgMax<false>},
    {"", "ArgMin", kAny, kNew, 1, opArgMax<true>},
    {"", "Compress", kAny, kNew, 2, opCompress},
    {"", "NonZero", kAny, kNew, 1, opNonZero},
    {"", "TopK", kAny, kNew, 2, opTopK},
};
} // namespace

ArrayRef<OpRow> selectOps() { return kSelectOps; }

} // namespace tessera::onnx_import
