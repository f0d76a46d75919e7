//===- SetComputeTypes.cpp - which parameters are computed in f32 ---------===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_SETCOMPUTETYPES
#include "passes/simplify/Passes.h.inc"

namespace {

struct SetComputeTypes : impl::SetComputeTypesBase<SetComputeTypes> {
  using SetComputeTypesBase::SetComputeTypesBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (isStepFunction(func) && !f32.empty() && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp func) {
    llvm::Regex regex(f32);
    std::string problem;
    if (!regex.isValid(problem))
      return func.emitError() << "--keep-f32 is not a regular expression: " << problem;
    bool isUsed = false;
    for (BlockArgument arg : func.getArguments()) {
      const unsigned index = arg.getArgNumber();
      if (!isParameter(getArgRole(func, index)) || !tensorType(arg).getElementType().isF32() ||
          !regex.match(getArgName(func, index)))
        continue;
      func.setArgAttr(index, kComputeType, TypeAttr::get(tensorType(arg).getElementType()));
      isUsed = true;
    }
    if (!isUsed)
      return func.emitError() << "no f32 parameter matches --keep-f32='" << f32 << "'";
    return success();
  }
};

} // namespace
} // namespace tessera
