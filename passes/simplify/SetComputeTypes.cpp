//===- SetComputeTypes.cpp - which parameters are computed in f32 ---------===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/NameRegex.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/BuiltinAttributes.h"

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

private:
  /// Whether the op computes something of parameters that are read in f32 and of constants alone.
  bool isOfExact(Operation *op) const {
    auto rows = dyn_cast<GatherRowsOp>(op);
    if (!op->hasTrait<OpTrait::Elementwise>() &&
        !isa<IndexMappingOpInterface, ConcatOp, PadOp, ReduceOp, DotGeneralOp>(op) &&
        !(rows && rows.getIndices().getDefiningOp<ConstantOp>()))
      return false;
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      Operation *made = operand.getDefiningOp();
      return exact.contains(operand) || (made && made->getNumOperands() == 0) ||
             !isa<FloatType>(tensorType(operand).getElementType());
    });
  }

  /// The products that read such a parameter, or what follows from it alone, are computed in f32.
  void markProducts(func::FuncOp func) {
    func.walk([&](Operation *op) {
      if (llvm::none_of(op->getOperands(), [&](Value operand) { return exact.contains(operand); }))
        return;
      if (auto dot = dyn_cast<DotGeneralOp>(op))
        dot.setComputeType(tensorType(dot.getLhs()).getElementType());
      if (isOfExact(op))
        exact.insert(op->getResult(0));
      else if (isa<ConcatOp, AttentionOp>(op))
        op->emitRemark(
            "not computed in f32, although a parameter that --keep-f32 names is read here: other values are, too");
    });
  }

  LogicalResult run(func::FuncOp func) {
    FailureOr<llvm::Regex> regex = parseNameRegex(func.getLoc(), "--keep-f32", f32);
    if (failed(regex))
      return failure();
    for (BlockArgument arg : func.getArguments()) {
      const unsigned index = arg.getArgNumber();
      if (!isParameter(getArgRole(func, index)) || !regex->match(getArgName(func, index)))
        continue;
      const Type element = tensorType(arg).getElementType();
      if (!element.isF32()) {
        mlir::emitRemark(arg.getLoc()) << "--keep-f32: '" << getArgName(func, index) << "' is " << element
                                       << " in the model, and is read so";
        continue;
      }
      func.setArgAttr(index, kComputeType, TypeAttr::get(element));
      exact.insert(arg);
    }
    if (exact.empty())
      return func.emitError() << "no f32 parameter matches --keep-f32='" << f32 << "'";
    markProducts(func);
    return success();
  }

  llvm::DenseSet<Value> exact; ///< parameters that are read in f32, and what follows from them alone
};

} // namespace
} // namespace tessera
