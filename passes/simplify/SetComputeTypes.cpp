//===- SetComputeTypes.cpp - which parameters are computed in f32 ---------===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/NamePattern.h"
#include "compiler/dialect/train/Signature.h"
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
  /// A product of f32 and of what the model has in another type.
  static bool isMixed(Operation *op) {
    auto dot = dyn_cast<DotGeneralOp>(op);
    return dot && tensorType(dot.getLhs()).getElementType() != tensorType(dot.getRhs()).getElementType();
  }

  /// The products that read such a parameter, or what follows from it alone, are computed in f32. Where it meets other
  /// values in an op whose operands are rounded, that would go unnoticed.
  void markProducts(func::FuncOp func) {
    const F32Values kept(func);
    func.walk([&](Operation *op) {
      if (op->getNumResults() == 0 || kept.contains(op->getResult(0)) ||
          llvm::none_of(op->getOperands(), [&](Value operand) { return kept.contains(operand); }))
        return;
      if (isa<ConcatOp, AttentionOp, DynamicUpdateSliceOp, ScatterAddRowsOp>(op) || isMixed(op) ||
          (isa<LayerNormOp>(op) && kept.contains(op->getOperand(0))))
        op->emitRemark(
            "not computed in f32, although a parameter that --keep-f32 names is read here: other values are, too");
    });
    const Type wide = Float32Type::get(&getContext());
    func.walk([&](DotGeneralOp dot) {
      if ((kept.contains(dot.getLhs()) || kept.contains(dot.getRhs())) && !isMixed(dot))
        dot.setComputeType(wide);
    });
  }

  LogicalResult run(func::FuncOp func) {
    std::optional<NamePattern> pattern;
    if (failed(NamePattern::read(func.getLoc(), "--keep-f32", f32, pattern)))
      return failure();
    bool isAny = false;
    SmallVector<StringRef> names;
    for (BlockArgument arg : func.getArguments()) {
      const unsigned index = arg.getArgNumber();
      if (!isParameter(getArgRole(func, index)))
        continue;
      names.push_back(getArgName(func, index));
      if (!pattern->match(names.back()))
        continue;
      const Type element = tensorType(arg).getElementType();
      if (!element.isF32()) {
        mlir::emitRemark(arg.getLoc()) << "--keep-f32: '" << getArgName(func, index) << "' is " << element
                                       << " in the model, and is read so";
        continue;
      }
      func.setArgAttr(index, kComputeType, TypeAttr::get(element));
      isAny = true;
    }
    if (failed(pattern->expectMatch(func.getLoc(), "parameter", names)))
      return failure();
    if (!isAny && llvm::any_of(names, [&](StringRef name) { return pattern->match(name); }))
      return func.emitError() << "--keep-f32: of the parameters that match '" << f32 << "', the model has none in f32";
    markProducts(func);
    return success();
  }
};

} // namespace
} // namespace tessera
