//===- OpsIndex.cpp - lookups ----------------------------------------------===//

#include "compiler/dialect/train/Loss.h"
#include "frontends/common/Axis.h"
#include "frontends/common/Indexing.h"
#include "frontends/common/RepeatedRows.h"
#include "frontends/pt2/Masked.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Places.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// Where `self` repeats a known row along dimension 0, which known integers within it index, that row is read:
/// positions of each sample, `positions[arange(B)[:, None], arange(T)]`. Returns the shape that all indices broadcast
/// to; nothing where it is otherwise.
std::optional<SmallVector<int64_t>> readOneRow(Call &c, ArrayRef<int> indices) {
  const frontend::Constant row = c.known("self") ? nullptr : frontend::rowsOf(c.value("self"), 1);
  const HostTensor *first = row && !indices.empty() ? c.constant(indices.front()) : nullptr;
  if (!first || first->isFloat() || first->type.getElementType().isInteger(1))
    return std::nullopt;
  const int64_t size = c.shape("self")[0];
  if (llvm::any_of(first->ints, [&](int64_t at) { return at < -size || at >= size; }))
    return std::nullopt;
  SmallVector<int64_t> common;
  for (int i : indices) {
    auto both = c.has(i) ? broadcastShape(common, c.shape(i)) : std::optional(common);
    if (!both || (c.has(i) && c.element(i).isInteger(1)))
      return std::nullopt;
    common = *both;
  }
  const SmallVector<int64_t> one(first->shape().size(), 1);
  Entry &index = c.inputs[indices.front()] = Entry(), &self = c.inputs[c.at("self")] = Entry();
  index.constant = std::make_shared<const HostTensor>(HostTensor::splat(first->type.clone(one), 0));
  self.constant = row;
  return common;
}

/// x[indices], tensors of integers for some of the dimensions.
LogicalResult opIndex(Call &c) {
  auto list = c.list("indices");
  if (list && list->size() == 1 && c.has((*list)[0]) && !c.constant((*list)[0]) && c.element((*list)[0]).isInteger(1) &&
      c.rank((*list)[0]) > 0 && c.rank((*list)[0]) <= c.rank("self") &&
      c.shape("self").take_front(c.rank((*list)[0])) == c.shape((*list)[0]))
    return setMasked(c, c.value("self"), c.input((*list)[0]));
  const std::vector<Entry> inputs = c.inputs;
  const auto common = list ? readOneRow(c, *list) : std::nullopt;
  auto found = list ? flatIndices(c, *list) : FailureOr<FlatIndices>(c.fail("expected indices"));
  if (failed(found))
    return failure();
  Build &b = c.b;
  Value data = b.reshape(frontend::permute(b, c.value("self"), found->order), found->table), made;
  if (found->first) {
    const int64_t count = tensorType(found->flat).getNumElements();
    made = b.reshape(frontend::sliceAlong(b, data, 0, *found->first, *found->first + count), found->all);
  } else if (found->within) { // ranks read their own samples
    const int64_t samples = found->common.front(), count = tensorType(found->within).getNumElements() / samples;
    made = b.reshape(frontend::pick(b, c.value("self"), b.reshape(found->within, {samples, count})), found->all);
  } else {
    made = b.gatherRows(data, found->flat);
    if (found->areOwnRows)
      made.getDefiningOp()->setAttr(train::kOwnRows, b.builder.getUnitAttr());
  }
  made = frontend::permute(b, made, found->placed);
  c.inputs = inputs;
  if (!common)
    return c.set(made);
  SmallVector<int64_t> shape(*common); // dimension 0 is indexed: what the indices name comes first
  llvm::append_range(shape, shapeOf(made).drop_front(common->size()));
  return c.set(b.broadcastTo(made, shape));
}

/// The elements where a mask is true, with which the tensor is broadcast.
LogicalResult opMaskedSelect(Call &c) {
  auto shape = broadcastShape(c.shape("self"), c.shape("mask"));
  if (!shape || !c.element("mask").isInteger(1) || shape->empty())
    return c.fail("the mask does not fit");
  Build &b = c.b;
  Value x = b.broadcastTo(c.value("self"), *shape), mask = b.broadcastTo(c.value("mask"), *shape);
  return setMasked(c, x, mask);
}

LogicalResult opOneHot(Call &c) {
  const int64_t classes = c.integerOr("num_classes", -1);
  if (classes < 1 || !c.element("self").isSignlessInteger(64))
    return c.fail("the number of classes depends on data");
  const int64_t rank = c.rank("self");
  SmallVector<int64_t> shape(c.shape("self"));
  shape.push_back(classes);
  if (!countElements(shape))
    return c.fail("the result is too large");
  Build &b = c.b;
  Value index = frontend::inDimension(b, c.value("self"), classes);
  Value wide = b.broadcast(index, shape, llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  Value column = b.iota(RankedTensorType::get(shape, b.builder.getI64Type()), rank);
  return c.set(b.convert(b.compare(CompareDirection::Eq, wide, column), b.builder.getI64Type()));
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

const OpRow kIndexOps[] = {
    {"aten.index.Tensor", opIndex},
    {"aten.masked_select.default", opMaskedSelect, "self,mask"},
    {"aten.one_hot.default", opOneHot},
    {"aten.index_select.default", opIndexSelect, "self,index"},
};
} // namespace

llvm::ArrayRef<OpRow> indexOps() { return kIndexOps; }

} // namespace tessera::pt2
