//===- OpsIndex.cpp - lookups ----------------------------------------------===//

#include "frontends/common/Indexing.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// x[indices] of the first dimensions, one tensor of integers for each; a slice before them is not supported.
LogicalResult opIndex(Call &c) {
  auto list = c.list("indices");
  if (!list || list->empty() || static_cast<int64_t>(list->size()) > c.rank("self"))
    return c.fail("expected indices");
  Build &b = c.b;
  SmallVector<int64_t> common;
  for (int i : *list) {
    if (!c.has(i))
      return c.fail("dimensions that are not indexed stand before or between others");
    if (c.element(i).isInteger(1))
      return c.fail("masks as indices have results whose size depends on data");
    auto shape = broadcastShape(common, c.shape(i));
    if (!shape)
      return c.fail("indices do not broadcast");
    common = *shape;
  }
  // Several dimensions are one, and their indices one number.
  const SmallVector<int64_t> shape(c.shape("self"));
  int64_t rows = 1;
  Value flat;
  for (auto [dim, i] : llvm::enumerate(*list)) {
    auto indices = frontend::checkedIndices(c, i, shape[dim]);
    if (failed(indices))
      return failure();
    // An index that is out of its own dimension may be in range of all of them together.
    if (list->size() > 1 && shape[dim] > 0 && !c.constant(i))
      indices = frontend::inDimension(b, *indices, shape[dim]);
    Value wide = b.broadcastTo(b.convert(*indices, b.builder.getI64Type()), common);
    flat = flat ? b.add(b.mul(flat, b.splatLike(flat, static_cast<double>(shape[dim]))), wide) : wide;
    rows *= shape[dim];
  }
  SmallVector<int64_t> table = {rows}, result(common);
  const ArrayRef<int64_t> inner = ArrayRef<int64_t>(shape).drop_front(list->size());
  llvm::append_range(table, inner);
  llvm::append_range(result, inner);
  if (!countElements(result))
    return c.fail("the result is too large");
  return c.set(b.gatherRows(b.reshape(c.value("self"), table), flat));
}

LogicalResult opIndexSelect(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  if (!dim || c.rank("self") == 0 || c.rank("index") != 1 || c.isFloat("index") || c.element("index").isInteger(1))
    return c.fail("expected a dimension and a vector of indices");
  if (const HostTensor *known = c.known("index"))
    if (llvm::any_of(known->ints, [&](int64_t at) { return at < 0 || at >= c.shape("self")[*dim]; }))
      return c.fail("an index is out of range");
  Build &b = c.b;
  Value x = b.moveDim(c.value("self"), *dim, 0), index = c.value("index");
  return c.set(b.moveDim(b.gatherRows(x, index), 0, *dim));
}

const OpRow kRows[] = {
    {"aten.index.Tensor", opIndex},
    {"aten.index_select.default", opIndexSelect, "self,index"},
};
} // namespace

llvm::ArrayRef<OpRow> indexOps() { return kRows; }

} // namespace tessera::pt2
