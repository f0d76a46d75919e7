//===- OpsIndex.cpp - lookups ----------------------------------------------===//

#include "frontends/common/Indexing.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Places.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// x[indices] of the first dimensions, one tensor of integers for each; a slice before them is not supported.
LogicalResult opIndex(Call &c) {
  auto list = c.list("indices");
  auto found = list ? flatIndices(c, *list) : FailureOr<FlatIndices>(c.fail("expected indices"));
  return failed(found) ? failure() : c.set(c.b.gatherRows(c.b.reshape(c.value("self"), found->table), found->flat));
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
