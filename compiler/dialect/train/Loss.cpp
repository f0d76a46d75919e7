//===- Loss.cpp - what a pass knows of the loss ---------------------------===//

#include "compiler/dialect/train/Loss.h"

using namespace mlir;

namespace tessera::train {

std::optional<OfBatch> getOfBatch(Operation *op, StringRef name) {
  auto text = op->getAttrOfType<StringAttr>(name);
  return text ? symbolizeOfBatch(text.getValue()) : std::nullopt;
}

void setOfBatch(Operation *op, StringRef name, OfBatch value) {
  op->setAttr(name, StringAttr::get(op->getContext(), stringifyOfBatch(value)));
}

} // namespace tessera::train
