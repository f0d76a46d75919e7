//===- Dist.cpp - registration of the dist dialect ------------------------===//

#include "compiler/dialect/dist/Dist.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::dist;

#include "compiler/dialect/dist/DistDialect.cpp.inc"
#include "compiler/dialect/dist/DistEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/dist/DistTypes.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  registerAttributes();
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/dialect/dist/DistTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/dist/DistOps.cpp.inc"
      >();
}
