//===- OpTable.cpp - which operators the importer knows --------------------===//

#include "frontends/pt2/OpTable.h"

namespace tessera::pt2 {

using Table = llvm::StringMap<const OpRow *>;

static Table byTarget(std::initializer_list<llvm::ArrayRef<OpRow>> groups) {
  Table made;
  for (llvm::ArrayRef<OpRow> group : groups)
    for (const OpRow &row : group)
      made[row.target] = &row;
  return made;
}

static const Table &table() {
  static const Table rows = byTarget({
      activationOps(), arithmeticOps(),  arrangeOps(), convolutionOps(), countOps(),    diagonalOps(),  distanceOps(),
      dropoutOps(),    elementwiseOps(), fourierOps(), functionOps(),    imageOps(),    indexOps(),     joinOps(),
      leafOps(),       lossOps(),        memoryOps(),  neuralOps(),      orderOps(),    padOps(),       partOps(),
      placeOps(),      poolOps(),        productOps(), quantizeOps(),    randomOps(),   recurrentOps(), reduceOps(),
      resizeOps(),     scatterOps(),     shapeOps(),   solveOps(),       spectrumOps(),
  });
  return rows;
}

static const Table &complexTable() {
  static const Table rows =
      byTarget({complexFunctionOps(), complexOps(), complexProductOps(), fourierOps(), spectrumOps()});
  return rows;
}

const OpRow *findOp(llvm::StringRef target) { return table().lookup(target); }
const OpRow *findComplexOp(llvm::StringRef target) { return complexTable().lookup(target); }

llvm::StringRef whyRefused(llvm::StringRef target) {
  for (const RefusedOp &op : refusedOps())
    if (op.target == target)
      return op.reason;
  if (target.starts_with("torch._functorch."))
    return "the transforms of torch.func (vmap, grad, jvp) are not supported";
  return "the operator is not supported";
}

std::vector<const OpRow *> allOps() {
  std::vector<const OpRow *> rows;
  for (const auto &entry : table())
    rows.push_back(entry.second);
  for (const auto &entry : complexTable())
    if (!findOp(entry.first()))
      rows.push_back(entry.second);
  llvm::sort(rows, [](const OpRow *a, const OpRow *b) { return a->target < b->target; });
  return rows;
}

} // namespace tessera::pt2
