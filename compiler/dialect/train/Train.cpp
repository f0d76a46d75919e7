//===- Train.cpp - registration of the train dialect ----------------------===//

#include "compiler/dialect/train/Train.h"

#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/Products.h"
#include "compiler/dialect/train/Segments.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::train;

#include "compiler/dialect/train/TrainDialect.cpp.inc"
#include "compiler/dialect/train/TrainEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/train/TrainAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/train/TrainOps.cpp.inc"

void TrainDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/train/TrainAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/train/TrainOps.cpp.inc"
      >();
}

Operation *TrainDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, cast<RankedTensorType>(type), elements);
}
