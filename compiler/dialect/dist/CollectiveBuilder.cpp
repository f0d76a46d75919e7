#include "compiler/dialect/dist/CollectiveBuilder.h"

using namespace mlir;

namespace tessera::dist {

Value CollectiveBuilder::apply(const ReshardStep &step, Value value) {
  switch (step.kind) {
  case ReshardStep::Kind::AllReduce:
    return allReduce(value, step.axes, step.reduction);
  case ReshardStep::Kind::AllToAll:
    return allToAll(step, value);
  case ReshardStep::Kind::Mask:
    return mask(step, value);
  case ReshardStep::Kind::Slice:
  case ReshardStep::Kind::ReduceScatter:
  case ReshardStep::Kind::AllGather:
    return onFirstDim(step, value);
  }
  llvm_unreachable("unknown step");
}

Value CollectiveBuilder::reshard(Value value, const Layout &from, const Layout &to) {
  for (const ReshardStep &step : planReshard(from, to))
    value = apply(step, value);
  return value;
}

Value CollectiveBuilder::allReduce(Value value, ArrayRef<unsigned> axes, ReductionKind kind) {
  if (axes.empty())
    return value;
  Axes ascending(axes);
  llvm::sort(ascending);
  Type element = train::tensorType(value).getElementType();
  train::Build build(builder, loc);
  if (kind != ReductionKind::Sum)
    value = build.convert(value, train::accumulationType(element));
  value = AllReduceOp::create(builder, loc, value.getType(), value, axisNames(mesh, ascending), kind, origin);
  return build.convert(value, element);
}

Value CollectiveBuilder::position(ArrayRef<unsigned> axes) {
  return AxisIndexOp::create(builder, loc, RankedTensorType::get({}, builder.getI64Type()), axisNames(mesh, axes));
}

Value CollectiveBuilder::firstElement(const Split &split, int64_t size) {
  if (split.empty())
    return {};
  train::Build build(builder, loc);
  auto scalar = RankedTensorType::get({}, builder.getI64Type());
  auto constant = [&](int64_t value) { return build.constant(DenseElementsAttr::get(scalar, value)); };
  Value part;
  for (unsigned axis : split) {
    Value index = position({axis});
    part = part ? build.add(build.mul(part, constant(groupSize(mesh, {axis}))), index) : index;
  }
  return build.mul(part, constant(size / (split.blocks * groupSize(mesh, split))));
}

/// The value with dimension `dim` as `sizes` instead.
Value CollectiveBuilder::expand(train::Build &build, Value value, int64_t dim, ArrayRef<int64_t> sizes) const {
  SmallVector<int64_t> shape(train::shapeOf(value));
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin() + dim, sizes.begin(), sizes.end());
  return build.reshape(value, shape);
}

/// Dimensions `dim` .. `dim + count - 1` as one.
Value CollectiveBuilder::merge(train::Build &build, Value value, int64_t dim, int64_t count) const {
  SmallVector<int64_t> shape(train::shapeOf(value));
  int64_t size = llvm::product_of(ArrayRef(shape).slice(dim, count));
  shape.erase(shape.begin() + dim, shape.begin() + dim + count);
  shape.insert(shape.begin() + dim, size);
  return build.reshape(value, shape);
}

Value CollectiveBuilder::onFirstDim(const ReshardStep &step, Value value) {
  train::Build build(builder, loc);
  int64_t dim = step.dim;
  if (step.blocks > 1) {
    value = expand(build, value, dim, {step.blocks, train::shapeOf(value)[dim] / step.blocks});
    ++dim;
  }
  value = build.moveDim(value, dim, 0);
  ArrayAttr axes = axisNames(mesh, step.axes);
  const int64_t ranks = groupSize(mesh, step.axes);
  bool grows = step.kind == ReshardStep::Kind::AllGather;
  SmallVector<int64_t> shape(train::shapeOf(value));
  shape[0] = grows ? shape[0] * ranks : shape[0] / ranks;
  Type type = train::tensorType(value).clone(shape);
  if (grows)
    value = AllGatherOp::create(builder, loc, type, value, axes, 0, origin);
  else if (step.kind == ReshardStep::Kind::ReduceScatter)
    value = ReduceScatterOp::create(builder, loc, type, value, axes, 0, step.reduction, origin);
  else
    value = SliceLocalOp::create(builder, loc, type, value, axes, 0);
  value = build.moveDim(value, 0, dim);
  return step.blocks > 1 ? merge(build, value, step.dim, 2) : value;
}

/// What belongs to each rank becomes dimension 0, is exchanged, and what came from each rank joins dimension
/// `fromDim`.
Value CollectiveBuilder::allToAll(const ReshardStep &step, Value value) {
  train::Build build(builder, loc);
  const int64_t ranks = groupSize(mesh, step.axes);
  const int64_t size = train::shapeOf(value)[step.dim];
  value = expand(build, value, step.dim, {step.blocks, ranks, size / (step.blocks * ranks)});
  value = build.moveDim(value, step.dim + 1, 0);
  value = merge(build, value, step.dim + 1, 2);
  value = AllToAllOp::create(builder, loc, value.getType(), value, axisNames(mesh, step.axes), 0, 0, origin);
  const int64_t from = step.fromDim + 1;
  value = expand(build, value, from, {step.fromBlocks, train::shapeOf(value)[from] / step.fromBlocks});
  value = build.moveDim(value, 0, from);
  return merge(build, value, step.fromDim, 3);
}

/// The value where the rank is the first of its group, zero elsewhere.
Value CollectiveBuilder::mask(const ReshardStep &step, Value value) {
  train::Build build(builder, loc);
  Value index = position(step.axes);
  Value first =
      build.compare(train::CompareDirection::Eq, index, build.zeros(RankedTensorType::get({}, builder.getI64Type())));
  return build.select(build.broadcastTo(first, train::shapeOf(value)), value, build.splatLike(value, 0.0));
}

} // namespace tessera::dist
