//===- LibraryLayouts.cpp - the layouts that instructions can use ---------===//
//
// See LibraryLayouts.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/LibraryLayouts.h"

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/exec/ScaleLayout.h"
#include "compiler/dialect/train/Builders.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::lower {

std::optional<Contraction> Contraction::of(Operation *op) {
  if (auto dot = dyn_cast<train::DotGeneralOp>(op))
    return Contraction{&dot.getLhsMutable(), &dot.getRhsMutable(), nullptr, dot.getLhsBatch(), dot.getRhsBatch(),
                       dot.getLhsContract(), dot.getRhsContract()};
  if (auto add = dyn_cast<exec::AddProductOp>(op))
    return Contraction{&add.getLhsMutable(), &add.getRhsMutable(), &add.getAccumulatorMutable(), add.getLhsBatch(),
                       add.getRhsBatch(),    add.getLhsContract(), add.getRhsContract()};
  if (auto product = dyn_cast<exec::EpilogueProductOp>(op)) {
    MutableOperandRange accumulator = product.getAccumulatorMutable(), input = product.getInputMutable();
    return Contraction{&product.getLhsMutable(),
                       &product.getRhsMutable(),
                       accumulator.empty() ? nullptr : &accumulator[0],
                       {},
                       {},
                       product.getLhsContract(),
                       product.getRhsContract(),
                       input.empty() ? nullptr : &input[0]};
  }
  if (auto product = dyn_cast<exec::ScaledProductOp>(op)) {
    static constexpr int64_t contracted[] = {1};
    MutableOperandRange accumulator = product.getAccumulatorMutable();
    return Contraction{&product.getLhsMutable(),
                       &product.getRhsMutable(),
                       accumulator.empty() ? nullptr : &accumulator[0],
                       {},
                       {},
                       contracted,
                       contracted};
  }
  return std::nullopt;
}

/// Whether an epilogue fixes the layout of the product's result.
static bool hasPlainResult(Operation *op) {
  auto product = dyn_cast<exec::EpilogueProductOp>(op);
  return product && !exec::sumsOperand(product.getEpilogue());
}

OpResult overwrittenBy(OpOperand &use) {
  if (auto product = dyn_cast<exec::EpilogueProductOp>(use.getOwner()))
    return product.getAccumulator() && &use == &product.getAccumulatorMutable()[0] ? cast<OpResult>(product.getResult())
                                                                                   : OpResult();
  if (auto product = dyn_cast<exec::ScaledProductOp>(use.getOwner()))
    return product.getAccumulator() && &use == &product.getAccumulatorMutable()[0] ? cast<OpResult>(product.getResult())
                                                                                   : OpResult();
  if (auto add = dyn_cast<exec::AddProductOp>(use.getOwner()))
    return &use == &add.getAccumulatorMutable() ? cast<OpResult>(add.getResult()) : OpResult();
  auto fusion = dyn_cast<exec::FusionOp>(use.getOwner());
  if (!fusion || !fusion.getInplace())
    return {};
  for (auto [result, operand] : llvm::zip_equal(fusion->getResults(), *fusion.getInplace()))
    if (operand == int64_t(use.getOperandNumber()))
      return cast<OpResult>(result);
  return {};
}

std::optional<Layout> gemmLayout(const Contraction &op, GemmSide side, const Layout &layout) {
  int64_t numBatch = op.lhsBatch.size();
  SmallVector<int64_t> order, rows, columns;
  if (side == GemmSide::Result) {
    int64_t lhsFree = train::shapeOf(op.lhs->get()).size() - numBatch - op.lhsContract.size();
    for (int64_t dim = 0, rank = layout.shape.size(); dim < rank; ++dim)
      (dim < numBatch ? order : dim < numBatch + lhsFree ? rows : columns).push_back(dim);
  } else {
    bool lhs = side == GemmSide::Lhs;
    ArrayRef<int64_t> batch = lhs ? op.lhsBatch : op.rhsBatch;
    ArrayRef<int64_t> contract = lhs ? op.lhsContract : op.rhsContract;
    order.assign(batch.begin(), batch.end());
    (lhs ? columns : rows).assign(contract.begin(), contract.end());
    for (int64_t dim = 0, rank = layout.shape.size(); dim < rank; ++dim)
      if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
        (lhs ? rows : columns).push_back(dim);
  }
  SmallVector<int64_t> shape;
  for (int64_t dim : order)
    shape.push_back(layout.shape[dim]);
  for (ArrayRef<int64_t> group : {ArrayRef<int64_t>(rows), ArrayRef<int64_t>(columns)}) {
    int64_t size = 1;
    for (int64_t dim : group)
      size *= layout.shape[dim];
    shape.push_back(size);
  }
  llvm::append_range(order, rows);
  llvm::append_range(order, columns);
  std::optional<Layout> result = layout.transpose(order).reshape(shape);
  if (!result || (!result->isUnit(numBatch) && !result->isUnit(numBatch + 1)))
    return std::nullopt;
  return result;
}

bool acceptsLayout(OpOperand &use, const Layout &layout) {
  unsigned number = use.getOperandNumber();
  std::optional<Contraction> product = Contraction::of(use.getOwner());
  if (product && &use == product->input)
    return layout.isContiguous();
  if (isa<exec::ScaledProductOp>(use.getOwner()) && number < 4) {
    // lhs, its scales, rhs, its scales. All begin at multiples of 16 bytes, or of more, and so do the rows of matrices.
    const bool isMatrix = number % 2 == 0;
    const int64_t steps[] = {layout.offset, layout.iterationStride, layout.rankStride,
                             isMatrix ? layout.strides[0] : 0};
    return (isMatrix ? layout.isUnit(1) : layout.isContiguous()) &&
           llvm::all_of(steps, [](int64_t elements) { return elements % exec::kScaledMultiple == 0; });
  }
  if (product)
    return gemmLayout(*product, product->sideOf(use), layout).has_value();
  return TypeSwitch<Operation *, bool>(use.getOwner())
      .Case<train::AttentionOp, train::AttentionGradOp>([&](auto op) {
        bool isMask = op.getMask() && number == 3;
        return layout.shape.size() == 4 && !isMask ? layout.isUnit(3) : layout.isContiguous();
      })
      .Case([](dist::CopyStartOp) { return true; })
      .Default([&](Operation *) { return layout.isContiguous(); });
}

bool producesLayout(OpResult result, const Layout &layout) {
  if (std::optional<Contraction> product = Contraction::of(result.getOwner());
      product && result.getResultNumber() == 0 && !hasPlainResult(result.getOwner()))
    return gemmLayout(*product, GemmSide::Result, layout).has_value();
  return TypeSwitch<Operation *, bool>(result.getOwner())
      .Case<train::AttentionOp, train::AttentionGradOp>(
          [&](auto) { return layout.shape.size() == 4 ? layout.isUnit(3) : layout.isContiguous(); })
      .Case<train::ConstantOp, train::ConcatOp, dist::AxisIndexOp>([](auto) { return true; })
      .Case([&](dist::DoneOp op) { return layout.isContiguous() || op.getFuture().getDefiningOp<dist::CopyStartOp>(); })
      .Default([&](Operation *) { return layout.isContiguous(); });
}

bool isLayoutOp(Operation *op) {
  auto view = dyn_cast<IndexMappingOpInterface>(op);
  return view && view.isMemoryView();
}

bool isBijective(Operation *op) {
  auto view = dyn_cast<IndexMappingOpInterface>(op);
  return view && view.isBijective();
}

std::optional<Layout> layoutOfResult(Operation *op, const Layout &operand) {
  return TypeSwitch<Operation *, std::optional<Layout>>(op)
      .Case([&](train::ReshapeOp op) { return operand.reshape(train::shapeOf(op.getResult())); })
      .Case([&](train::TransposeOp op) { return operand.transpose(op.getPermutation()); })
      .Case([&](train::SliceOp op) { return operand.slice(op.getStarts(), op.getLimits(), op.getStrides()); })
      .Case<train::BarrierOp, train::StopGradientOp>([&](auto) { return operand; })
      .Case([&](dist::SliceLocalOp op) {
        int64_t dim = op.getDim();
        int64_t size = train::shapeOf(op.getResult())[dim];
        return operand.rankPart(dim, size == 0 ? 1 : operand.shape[dim] / size, op.getAxes());
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<Layout> layoutOfOperand(Operation *op, const Layout &result) {
  return TypeSwitch<Operation *, std::optional<Layout>>(op)
      .Case([&](train::ReshapeOp op) { return result.reshape(train::shapeOf(op.getOperand())); })
      .Case([&](train::TransposeOp op) { return result.transposeInverse(op.getPermutation()); })
      .Case<train::BarrierOp, train::StopGradientOp>([&](auto) { return result; })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace tessera::lower
