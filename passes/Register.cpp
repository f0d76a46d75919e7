#include "passes/Register.h"

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/exec/Exec.h"
#include "compiler/dialect/train/Train.h"
#include "compiler/interp/Check.h"
#include "compiler/interp/Interp.h"
#include "passes/differentiate/Models.h"
#include "passes/differentiate/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/optimize/Passes.h"
#include "passes/precision/Passes.h"
#include "passes/schedule/Passes.h"
#include "passes/shard/Passes.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void tessera::registerAllDialects(DialectRegistry &registry) {
  registry.insert<train::TrainDialect, dist::DistDialect, exec::ExecDialect, func::FuncDialect, arith::ArithDialect,
                  math::MathDialect, memref::MemRefDialect, scf::SCFDialect, check::CheckDialect>();
  registerDifferentiableModels(registry);
  interp::registerConstantFolding(registry);
  registerShardingRules(registry);
}

void tessera::registerAllPasses() {
  registerDifferentiatePasses();
  registerOptimizePasses();
  registerPrecisionPasses();
  registerShardPasses();
  registerSchedulePasses();
  registerLowerPasses();
  registerSimplifyPasses();
  registerCanonicalizerPass();
  registerCSEPass();
  registerSymbolDCEPass();
}
