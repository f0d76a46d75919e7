#include "compiler/dialect/train/Builders.h"

#include "compiler/dialect/train/ResultShapes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::train {

RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }
ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }

Type accumulationType(Type elementType) {
  if (auto floating = dyn_cast<FloatType>(elementType); floating && floating.getWidth() < 32)
    return Float32Type::get(elementType.getContext());
  return elementType;
}

Value Build::splat(RankedTensorType type, double value) {
  Type element = type.getElementType();
  Attribute attr;
  if (auto floating = dyn_cast<FloatType>(element))
    attr = builder.getFloatAttr(floating, value);
  else
    attr = builder.getIntegerAttr(element, static_cast<int64_t>(value));
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, attr));
}

Value Build::splatLike(Value like, double value) { return splat(tensorType(like), value); }

Value Build::constant(ElementsAttr value) {
  return ConstantOp::create(builder, loc, cast<RankedTensorType>(value.getType()), value);
}

Value Build::iota(RankedTensorType type, int64_t dim) { return IotaOp::create(builder, loc, type, Value(), dim); }

Value Build::compare(CompareDirection direction, Value a, Value b) {
  return CompareOp::create(builder, loc, tensorType(a).clone(builder.getI1Type()), direction, a, b);
}

Value Build::select(Value predicate, Value onTrue, Value onFalse) {
  return SelectOp::create(builder, loc, onTrue.getType(), predicate, onTrue, onFalse);
}

Value Build::convert(Value x, Type elementType) {
  if (tensorType(x).getElementType() == elementType)
    return x;
  return ConvertOp::create(builder, loc, tensorType(x).clone(elementType), x);
}

Value Build::reshape(Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  return ReshapeOp::create(builder, loc, tensorType(x).clone(shape), x);
}

Value Build::transpose(Value x, ArrayRef<int64_t> permutation) {
  return TransposeOp::create(builder, loc, tensorType(x).clone(transposedShape(shapeOf(x), permutation)), x,
                             permutation);
}

Value Build::moveDim(Value x, int64_t from, int64_t to) {
  if (from == to)
    return x;
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(x).getRank()));
  permutation.erase(permutation.begin() + from);
  permutation.insert(permutation.begin() + to, from);
  return transpose(x, permutation);
}

Value Build::broadcast(Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> dimensions) {
  return BroadcastOp::create(builder, loc, tensorType(x).clone(shape), x, dimensions);
}

Value Build::broadcastTo(Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x) == shape)
    return x;
  int64_t rank = tensorType(x).getRank();
  assert(rank <= static_cast<int64_t>(shape.size()) && "cannot broadcast to a lower rank");
  auto dims = llvm::to_vector(llvm::seq<int64_t>(shape.size() - rank, shape.size()));
  return broadcast(x, shape, dims);
}

Value Build::broadcastReduced(Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> reducedDims) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim)
    if (!llvm::is_contained(reducedDims, dim))
      dims.push_back(dim);
  return broadcast(x, shape, dims);
}

Value Build::repeatBlocks(Value x, ArrayRef<int64_t> shape) {
  if (shapeOf(x).empty())
    return broadcast(x, shape, {});
  // Each dimension as its blocks, and the elements of a block where there are several of both.
  SmallVector<int64_t> parted, blocks;
  for (auto [count, size] : llvm::zip_equal(shapeOf(x), shape)) {
    blocks.push_back(parted.size());
    if (count == 1 || count == size)
      parted.push_back(size);
    else
      parted.append({count, size / count});
  }
  return reshape(broadcast(x, parted, blocks), shape);
}

Value Build::slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> limits, ArrayRef<int64_t> strides) {
  SmallVector<int64_t> steps(strides);
  if (steps.empty())
    steps.assign(starts.size(), 1);
  return SliceOp::create(builder, loc, tensorType(x).clone(slicedShape(starts, limits, steps)), x, starts, limits,
                         steps);
}

Value Build::pad(Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high, ArrayRef<int64_t> interior, double value) {
  SmallVector<int64_t> gaps(interior);
  if (gaps.empty())
    gaps.assign(low.size(), 0);
  return PadOp::create(builder, loc, tensorType(x).clone(paddedShape(shapeOf(x), low, high, gaps)), x, low, high, gaps,
                       llvm::APFloat(value));
}

Value Build::concat(ValueRange xs, int64_t dim) {
  assert(!xs.empty() && "concat of nothing");
  return ConcatOp::create(builder, loc, tensorType(xs.front()).clone(joinedShape(xs.getTypes(), dim)), xs, dim);
}

Value Build::gatherRows(Value table, Value indices, std::optional<int64_t> paddingIndex) {
  return GatherRowsOp::create(builder, loc, tensorType(table).clone(rowsShape(shapeOf(table), shapeOf(indices))), table,
                              indices, paddingIndex ? builder.getI64IntegerAttr(*paddingIndex) : IntegerAttr());
}

Value Build::reduce(ReduceKind kind, Value x, ArrayRef<int64_t> dimensions) {
  return ReduceOp::create(builder, loc, tensorType(x).clone(reducedShape(shapeOf(x), dimensions)), kind, x, dimensions);
}

Value Build::sumAll(Value x) { return sum(x, llvm::to_vector(llvm::seq<int64_t>(0, tensorType(x).getRank()))); }

Value Build::dot(Value lhs, Value rhs, ArrayRef<int64_t> lhsBatch, ArrayRef<int64_t> rhsBatch,
                 ArrayRef<int64_t> lhsContract, ArrayRef<int64_t> rhsContract, TypeAttr computeType,
                 ScalingAttr scaling) {
  const Shape shape = productShape(shapeOf(lhs), shapeOf(rhs), {lhsBatch, rhsBatch, lhsContract, rhsContract});
  return DotGeneralOp::create(builder, loc, tensorType(lhs).clone(shape), lhs, rhs, lhsBatch, rhsBatch, lhsContract,
                              rhsContract, computeType, scaling);
}

} // namespace tessera::train
