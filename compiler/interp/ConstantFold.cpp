//===- ConstantFold.cpp - constant folding by the interpreter -------------===//
//
// The folders of the train dialect know algebraic identities only; an op whose
// operands are all constants is evaluated here. One definition of every op.
//
//===----------------------------------------------------------------------===//

#include "compiler/interp/Eval.h"
#include "compiler/interp/Interp.h"

#include "mlir/Interfaces/FoldInterfaces.h"

using namespace mlir;

namespace tessera::interp {

/// Larger results would make the IR, and each further fold, slow.
static constexpr int64_t kMaxElements = int64_t{1} << 20;
/// Repeating a table (rotary angles over batch and heads) beyond this costs memory and saves nothing: a broadcast is
/// only indexing. Smaller ones are shape arithmetic.
static constexpr int64_t kMaxRepeatedElements = 1024;

/// Ops for which equal elements in all operands give equal elements in the result.
static bool mapsSplatsToSplats(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() ||
         isa<train::ReshapeOp, train::TransposeOp, train::BroadcastOp, train::SliceOp>(op);
}

/// Evaluates on one element what is the same for all of them.
static FailureOr<Attribute> foldSplats(Operation *op, ArrayRef<Attribute> operands) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<Attribute> values;
  for (Attribute operand : operands) {
    auto dense = dyn_cast<DenseElementsAttr>(operand);
    if (!dense || !dense.isSplat() || dense.getNumElements() == 0)
      return failure();
    values.push_back(dense.getSplatValue<Attribute>());
  }
  if (!op->hasTrait<OpTrait::Elementwise>())
    return Attribute(DenseElementsAttr::get(type, values.front()));
  SmallVector<Tensor> scalars;
  SmallVector<const Tensor *> pointers;
  for (auto [operand, value] : llvm::zip_equal(op->getOperandTypes(), values)) {
    auto scalarType = RankedTensorType::get({}, cast<RankedTensorType>(operand).getElementType());
    scalars.push_back(Tensor::fromAttr(DenseElementsAttr::get(scalarType, value)));
  }
  for (const Tensor &scalar : scalars)
    pointers.push_back(&scalar);
  const EvalFn *evaluation = findEvaluation(op->getName().getStringRef());
  EvalContext context{op, /*silent=*/true, RankedTensorType::get({}, type.getElementType())};
  FailureOr<Results> results = (*evaluation)(context, pointers);
  if (failed(results))
    return failure();
  return Attribute(results->front().toAttr().resizeSplat(type));
}

namespace {
struct TrainFoldInterface : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;

  LogicalResult fold(Operation *op, ArrayRef<Attribute> operands,
                     SmallVectorImpl<OpFoldResult> &results) const override {
    const EvalFn *evaluation = findEvaluation(op->getName().getStringRef());
    // A barrier is what is not looked through.
    if (!evaluation || operands.empty() || op->getNumRegions() != 0 || isa<train::BarrierOp>(op))
      return failure();
    for (Attribute operand : operands)
      if (!Tensor::canRead(operand))
        return failure();
    if (mapsSplatsToSplats(op)) {
      if (FailureOr<Attribute> splat = foldSplats(op, operands); succeeded(splat)) {
        results.push_back(*splat);
        return success();
      }
    }
    int64_t limit = isa<train::BroadcastOp>(op) ? kMaxRepeatedElements : kMaxElements;
    for (Type type : op->getResultTypes())
      if (cast<RankedTensorType>(type).getNumElements() > limit)
        return failure();
    SmallVector<Tensor> tensors;
    SmallVector<const Tensor *> pointers;
    for (Attribute operand : operands)
      tensors.push_back(Tensor::fromAttr(cast<ElementsAttr>(operand)));
    for (const Tensor &tensor : tensors)
      pointers.push_back(&tensor);
    FailureOr<Results> values = (*evaluation)(EvalContext{op, /*silent=*/true}, pointers);
    if (failed(values))
      return failure();
    for (const Tensor &value : *values)
      results.push_back(value.toAttr());
    return success();
  }
};
} // namespace

void registerConstantFolding(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *, train::TrainDialect *dialect) { dialect->addInterfaces<TrainFoldInterface>(); });
}

} // namespace tessera::interp
