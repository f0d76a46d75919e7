//===- Exec.cpp - registration of the exec dialect ------------------------===//

#include "compiler/dialect/exec/Exec.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::exec;

#include "compiler/dialect/exec/ExecDialect.cpp.inc"
#include "compiler/dialect/exec/ExecEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/exec/ExecAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/exec/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/exec/ExecAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/exec/ExecOps.cpp.inc"
      >();
}
