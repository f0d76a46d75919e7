//===- OpTable.cpp - which operators the importer knows --------------------===//

#include "frontends/pt2/OpTable.h"

namespace tessera::pt2 {

static const llvm::StringMap<const OpRow *> &table() {
  static const llvm::StringMap<const OpRow *> rows = [] {
    llvm::StringMap<const OpRow *> made;
    for (llvm::ArrayRef<OpRow> group : {activationOps(), convolutionOps(), elementwiseOps(), indexOps(), leafOps(),
                                        lossOps(), neuralOps(), placeOps(), productOps(), reduceOps(), shapeOps()})
      for (const OpRow &row : group)
        made[row.target] = &row;
    return made;
  }();
  return rows;
}

const OpRow *findOp(llvm::StringRef target) { return table().lookup(target); }

} // namespace tessera::pt2
