//===- EvalShape.cpp - shape and index ops --------------------------------===//

#include "compiler/interp/Eval.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::interp {

/// A result whose element at each index is the operand's element at `sourceOf(index)`.
static Results gather(EvalContext context, const Tensor &source,
                      llvm::function_ref<int64_t(ArrayRef<int64_t>)> sourceOf) {
  Tensor result(context.resultType());
  forEachIndex(result.getShape(),
               [&](ArrayRef<int64_t> index, int64_t linear) { result.copyFrom(linear, source, sourceOf(index)); });
  return one(std::move(result));
}

/// The corner of a box of shape `box` that is moved, where needed, to lie inside `shape`.
static SmallVector<int64_t> clampedStarts(Operands starts, ArrayRef<int64_t> shape, ArrayRef<int64_t> box) {
  SmallVector<int64_t> clamped;
  for (auto [start, size, boxSize] : llvm::zip_equal(starts, shape, box))
    clamped.push_back(std::clamp<int64_t>(start->intAt(0), 0, size - boxSize));
  return clamped;
}

static FailureOr<Results> pad(PadOp op, EvalContext context, Operands in) {
  Tensor result = Tensor::scalar(context.resultType(), op.getValue().convertToDouble());
  SmallVector<int64_t> strides = stridesOf(result.getShape());
  forEachIndex(in[0]->getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
    int64_t target = 0;
    for (auto [position, low, gap, stride] : llvm::zip_equal(index, op.getLow(), op.getInterior(), strides))
      target += (low + position * (gap + 1)) * stride;
    result.copyFrom(target, *in[0], linear);
  });
  return one(std::move(result));
}

static FailureOr<Results> concat(ConcatOp op, EvalContext context, Operands in) {
  Tensor result(context.resultType());
  SmallVector<int64_t> strides = stridesOf(result.getShape());
  int64_t start = 0;
  for (const Tensor *part : in) {
    forEachIndex(part->getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
      result.copyFrom(linearIndex(index, strides) + start * strides[op.getDim()], *part, linear);
    });
    start += part->getShape()[op.getDim()];
  }
  return one(std::move(result));
}

static FailureOr<Results> dynamicUpdateSlice(DynamicUpdateSliceOp, EvalContext, Operands in) {
  Tensor result = *in[0];
  const Tensor &update = *in[1];
  SmallVector<int64_t> strides = stridesOf(result.getShape());
  SmallVector<int64_t> starts = clampedStarts(in.drop_front(2), result.getShape(), update.getShape());
  int64_t corner = linearIndex(starts, strides);
  forEachIndex(update.getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
    result.copyFrom(corner + linearIndex(index, strides), update, linear);
  });
  return one(std::move(result));
}

/// Fails if a row number does not exist in a table of `rows` rows.
static LogicalResult checkRows(EvalContext context, const Tensor &indices, int64_t rows) {
  for (int64_t i = 0, end = indices.size(); i < end; ++i)
    if (int64_t row = indices.intAt(i); row < 0 || row >= rows)
      return context.error() << "index at " << printIndex(delinearize(i, indices.getShape())) << " is " << row
                             << ", expected at least 0 and less than " << rows;
  return success();
}

static FailureOr<Results> gatherRows(GatherRowsOp, EvalContext context, Operands in) {
  const Tensor &table = *in[0], &indices = *in[1];
  if (failed(checkRows(context, indices, table.getShape()[0])))
    return failure();
  Tensor result(context.resultType());
  int64_t width = ShapedType::getNumElements(table.getShape().drop_front());
  for (int64_t i = 0, end = indices.size(); i < end; ++i)
    for (int64_t j = 0; j < width; ++j)
      result.copyFrom(i * width + j, table, indices.intAt(i) * width + j);
  return one(std::move(result));
}

static FailureOr<Results> scatterAddRows(ScatterAddRowsOp, EvalContext context, Operands in) {
  const Tensor &indices = *in[1], &updates = *in[2];
  if (failed(checkRows(context, indices, in[0]->getShape()[0])))
    return failure();
  Tensor result = *in[0];
  int64_t width = ShapedType::getNumElements(result.getShape().drop_front());
  for (int64_t i = 0, end = indices.size(); i < end; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      int64_t target = indices.intAt(i) * width + j, source = i * width + j;
      if (result.isFloat())
        result.set(target, result.at(target) + updates.at(source));
      else
        result.setInt(target, result.intAt(target) + updates.intAt(source));
    }
  }
  return one(std::move(result));
}

void addShape(EvalTable &table) {
  table.add<ReshapeOp>(
      [](ReshapeOp, EvalContext context, Operands in) { return one(in[0]->reshaped(context.resultType())); });
  table.add<TransposeOp>([](TransposeOp op, EvalContext context, Operands in) {
    SmallVector<int64_t> operandStrides = stridesOf(in[0]->getShape()), strides;
    for (int64_t dim : op.getPermutation())
      strides.push_back(operandStrides[dim]);
    return gather(context, *in[0], [&](ArrayRef<int64_t> index) { return linearIndex(index, strides); });
  });
  table.add<BroadcastOp>([](BroadcastOp op, EvalContext context, Operands in) {
    SmallVector<int64_t> strides(context.resultType().getRank(), 0);
    for (auto [dim, size, stride] :
         llvm::zip_equal(op.getBroadcastDimensions(), in[0]->getShape(), stridesOf(in[0]->getShape())))
      strides[dim] = size == 1 ? 0 : stride;
    return gather(context, *in[0], [&](ArrayRef<int64_t> index) { return linearIndex(index, strides); });
  });
  table.add<SliceOp>([](SliceOp op, EvalContext context, Operands in) {
    SmallVector<int64_t> strides = stridesOf(in[0]->getShape());
    int64_t corner = linearIndex(op.getStarts(), strides);
    for (auto [stride, step] : llvm::zip_equal(strides, op.getStrides()))
      stride *= step;
    return gather(context, *in[0], [&](ArrayRef<int64_t> index) { return corner + linearIndex(index, strides); });
  });
  table.add<PadOp>(pad);
  table.add<ConcatOp>(concat);
  table.add<DynamicSliceOp>([](DynamicSliceOp op, EvalContext context, Operands in) {
    SmallVector<int64_t> strides = stridesOf(in[0]->getShape());
    SmallVector<int64_t> starts = clampedStarts(in.drop_front(), in[0]->getShape(), op.getSizes());
    int64_t corner = linearIndex(starts, strides);
    return gather(context, *in[0], [&](ArrayRef<int64_t> index) { return corner + linearIndex(index, strides); });
  });
  table.add<DynamicUpdateSliceOp>(dynamicUpdateSlice);
  table.add<GatherRowsOp>(gatherRows);
  table.add<ScatterAddRowsOp>(scatterAddRows);
}

} // namespace tessera::interp
