//===- OpTable.cpp - which operators the importer knows --------------------===//

#include "frontends/pt2/Call.h"

namespace tessera::pt2 {

static const llvm::StringMap<const OpRow *> &table() {
  static const llvm::StringMap<const OpRow *> rows = [] {
    llvm::StringMap<const OpRow *> made;
    for (llvm::ArrayRef<OpRow> group : {convolutionOps(), elementwiseOps(), indexOps(), leafOps(), lossOps(),
                                        neuralOps(), productOps(), reduceOps(), shapeOps()})
      for (const OpRow &row : group)
        made[row.target] = &row;
    return made;
  }();
  return rows;
}

const OpRow *findOp(llvm::StringRef target) { return table().lookup(target); }

std::vector<std::string> opNames() {
  std::vector<std::string> names;
  for (const auto &row : table())
    names.push_back(row.first().str());
  llvm::sort(names);
  return names;
}

} // namespace tessera::pt2
