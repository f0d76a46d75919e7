#include "compiler/dialect/dist/KeyGather.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace tessera::dist {

KeyGather KeyGather::of(Operation *op) {
  KeyGather gather;
  if (auto bytes = op->getAttrOfType<IntegerAttr>(kGatherBytes))
    gather.bytes = bytes.getInt();
  if (auto type = op->getAttrOfType<TypeAttr>(kGatherType))
    gather.type = type.getValue();
  return gather;
}

void KeyGather::annotate(Operation *op) const {
  if (bytes != 0)
    op->setAttr(kGatherBytes, IntegerAttr::get(IntegerType::get(op->getContext(), 64), bytes));
  if (type)
    op->setAttr(kGatherType, TypeAttr::get(type));
}

} // namespace tessera::dist
