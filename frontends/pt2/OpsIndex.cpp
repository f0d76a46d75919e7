//===- OpsIndex.cpp - lookups ----------------------------------------------===//

#include "frontends/pt2/Call.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// Indices counted from the front; fails where a known one is out of range.
LogicalResult counted(Call &c, Entry &entry, int64_t size, Value &indices) {
  if (const HostTensor *known = entry.constant.get())
    for (int64_t index : known->ints)
      if (index < -size || index >= size)
        return c.fail("index " + Twine(index) + " is out of range");
  Build &b = c.b;
  Value given = c.value(entry);
  indices = b.select(b.compare(CompareDirection::Lt, given, b.splatLike(given, 0)),
                     b.add(given, b.splatLike(given, static_cast<double>(size))), given);
  return success();
}

/// x[indices] of the first dimensions, one tensor of integers for each; a slice before them is not supported.
LogicalResult opIndex(Call &c) {
  std::vector<Entry> *list = c.list("indices");
  if (!list || list->empty() || static_cast<int64_t>(list->size()) > c.rank("self"))
    return c.fail("expected indices");
  Build &b = c.b;
  SmallVector<int64_t> common;
  for (Entry &entry : *list) {
    if (!entry.isTensor())
      return c.fail("dimensions that are not indexed stand before or between others");
    auto type = c.typeOf(entry);
    if (!isa<IntegerType>(type.getElementType()) || type.getElementType().isInteger(1))
      return c.fail("masks as indices have results whose size depends on data");
    auto shape = broadcastShape(common, type.getShape());
    if (!shape)
      return c.fail("indices do not broadcast");
    common = *shape;
  }
  // Several dimensions are one, and their indices one number.
  ArrayRef<int64_t> shape = c.shape("self");
  int64_t rows = 1;
  Value flat;
  for (auto [dim, entry] : llvm::enumerate(*list)) {
    Value indices;
    if (failed(counted(c, entry, shape[dim], indices)))
      return failure();
    indices = b.broadcastTo(b.convert(indices, b.builder.getI64Type()), common);
    flat = flat ? b.add(b.mul(flat, b.splatLike(flat, static_cast<double>(shape[dim]))), indices) : indices;
    rows *= shape[dim];
  }
  SmallVector<int64_t> table = {rows}, result(common);
  llvm::append_range(table, shape.drop_front(list->size()));
  llvm::append_range(result, shape.drop_front(list->size()));
  if (!frontend::countElements(result))
    return c.fail("the result is too large");
  return c.set(b.gatherRows(b.reshape(c.value("self"), table), flat));
}

LogicalResult opIndexSelect(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  if (!dim || c.rank("self") == 0 || c.rank("index") != 1 || c.isFloat("index") || c.element("index").isInteger(1))
    return c.fail("expected a dimension and a vector of indices");
  Build &b = c.b;
  Value x = b.moveDim(c.value("self"), *dim, 0);
  return c.set(b.moveDim(b.gatherRows(x, c.value("index")), 0, *dim));
}

const OpRow kRows[] = {
    {"aten.index.Tensor", opIndex},
    {"aten.index_select.default", opIndexSelect, "self,index"},
};
} // namespace

llvm::ArrayRef<OpRow> indexOps() { return kRows; }

} // namespace tessera::pt2
