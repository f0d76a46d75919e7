//===- Exec.cpp - registration of the exec dialect ------------------------===//

#include "compiler/dialect/exec/Exec.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace tessera::exec;

#include "compiler/dialect/exec/ExecDialect.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/exec/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/exec/ExecOps.cpp.inc"
      >();
}
