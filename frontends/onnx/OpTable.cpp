//===- OpTable.cpp - which ONNX ops the importer knows --------------------===//

#include "frontends/onnx/OpTable.h"

#include "frontends/onnx/Import.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace tessera {
namespace onnx_import {

namespace {
std::vector<const OpRow *> allRows() {
  std::vector<const OpRow *> rows;
  for (ArrayRef<OpRow> table : {activationOps(), elementwiseOps(), contractOps(), convolutionOps(), lossOps(),
                                neuralOps(), reduceOps(), shapeOps(), partOps(), indexOps(), scatterOps(), selectOps(),
                                leafOps(), gridOps(), imageOps(), padOps(), poolOps(), recurrentOps(), resizeOps()})
    for (const OpRow &row : table)
      rows.push_back(&row);
  llvm::sort(rows, [](const OpRow *a, const OpRow *b) {
    return std::pair<StringRef, StringRef>(a->domain, a->name) < std::pair<StringRef, StringRef>(b->domain, b->name);
  });
  return rows;
}
} // namespace

const OpRow *findOp(StringRef domain, StringRef name) {
  static const llvm::StringMap<const OpRow *> byName = [] {
    llvm::StringMap<const OpRow *> map;
    for (const OpRow *row : allRows())
      map[(row->domain + ":" + row->name).str()] = row;
    return map;
  }();
  return byName.lookup((domain + ":" + name).str());
}

} // namespace onnx_import

std::vector<OnnxOpSupport> supportedOnnxOps() {
  std::vector<OnnxOpSupport> ops;
  for (const onnx_import::OpRow *row : onnx_import::allRows())
    ops.push_back({row->domain.str(), row->name.str(), row->minOpset, row->maxOpset});
  return ops;
}

} // namespace tessera
