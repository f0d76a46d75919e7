//===- Constants.cpp - the numbers that constants stand for ---------------===//

#include "compiler/dialect/train/Constants.h"

#include "compiler/dialect/train/Train.h"

using namespace mlir;

namespace tessera::train {

std::optional<double> splatOf(Attribute elements) {
  auto dense = dyn_cast_if_present<DenseElementsAttr>(elements);
  if (!dense || dense.getNumElements() == 0 || !dense.isSplat())
    return std::nullopt;
  if (isa<FloatType>(dense.getElementType()))
    return dense.getSplatValue<APFloat>().convertToDouble();
  auto type = dyn_cast<IntegerType>(dense.getElementType());
  if (!type)
    return std::nullopt;
  const bool isSigned = !type.isUnsigned() && type.getWidth() > 1;
  APFloat number(0.0);
  if (number.convertFromAPInt(dense.getSplatValue<APInt>(), isSigned, APFloat::rmNearestTiesToEven) != APFloat::opOK)
    return std::nullopt;
  return number.convertToDouble();
}

std::optional<double> splatOf(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant ? splatOf(constant.getValue()) : std::nullopt;
}

} // namespace tessera::train
