//===- OpTable.cpp - which operators the importer knows --------------------===//

#include "frontends/pt2/OpTable.h"

namespace tessera::pt2 {

static const llvm::StringMap<const OpRow *> &table() {
  static const llvm::StringMap<const OpRow *> rows = [] {
    llvm::StringMap<const OpRow *> made;
    for (llvm::ArrayRef<OpRow> group : {
             activationOps(), arithmeticOps(),  arrangeOps(),  convolutionOps(), diagonalOps(), distanceOps(),
             dropoutOps(),    elementwiseOps(), functionOps(), imageOps(),       indexOps(),    joinOps(),
             leafOps(),       lossOps(),        neuralOps(),   orderOps(),       padOps(),      partOps(),
             placeOps(),      poolOps(),        productOps(),  recurrentOps(),   reduceOps(),   resizeOps(),
             scatterOps(),    shapeOps(),
         })
      for (const OpRow &row : group)
        made[row.target] = &row;
    return made;
  }();
  return rows;
}

const OpRow *findOp(llvm::StringRef target) { return table().lookup(target); }

llvm::StringRef whyRefused(llvm::StringRef target) {
  for (const RefusedOp &op : refusedOps())
    if (op.target == target)
      return op.reason;
  return "the operator is not supported";
}

std::vector<const OpRow *> allOps() {
  std::vector<const OpRow *> rows;
  for (const auto &entry : table())
    rows.push_back(entry.second);
  llvm::sort(rows, [](const OpRow *a, const OpRow *b) { return a->target < b->target; });
  return rows;
}

} // namespace tessera::pt2
