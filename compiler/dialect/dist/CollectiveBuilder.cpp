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

Value CollectiveBuilder::permute(Value value, ArrayRef<unsigned> axes, int64_t shift) {
  return PermuteOp::create(builder, loc, value.getType(), value, axisNames(mesh, axes), shift, origin);
}

Value CollectiveBuilder::position(ArrayRef<unsigned> axes) {
  return AxisIndexOp::create(builder, loc, RankedTensorType::get({}, builder.getI64Type()), axisNames(mesh, axes));
}

static Value constant(train::Build &build, int64_t value) {
  auto scalar = RankedTensorType::get({}, build.builder.getI64Type());
  return build.constant(DenseElementsAttr::get(scalar, value));
}

Value CollectiveBuilder::firstElement(const Split &split, int64_t size) {
  assert(split.isRange() && "a part is one range");
  return split.empty() ? Value() : pieces(split, size)->front().starts.front();
}

std::optional<SmallVector<DimPiece>> CollectiveBuilder::pieces(const Split &split, int64_t size) {
  train::Build build(builder, loc);
  SmallVector<DimPiece> found;
  int64_t rest = size / groupSize(mesh, split); // elements of the part behind the pieces so far
  for (size_t first = 0, end = 0; first < split.size(); first = end) {
    // Levels without blocks between them are one, which is split over a group.
    Axes axes;
    do
      axes.push_back(split[end++].axis);
    while (end < split.size() && split[end].blocks == 1 && split[end].hasOrderOf(split[first]));
    int64_t blocks = split[first].blocks;
    if (first != 0) {
      const int64_t ranges = split.rangesLeft(first - 1, mesh);
      if (ranges == 0 || blocks % ranges != 0)
        return std::nullopt;
      blocks /= ranges; // in each of the ranges
    }
    if (blocks != 1)
      found.push_back({blocks, blocks, {Value()}});
    const int64_t ranks = groupSize(mesh, axes);
    Value own;
    for (unsigned axis : axes) {
      Value index = position({axis});
      own = own ? build.add(build.mul(own, constant(build, groupSize(mesh, {axis}))), index) : index;
    }
    const int64_t ranges = split.rangesLeft(end - 1, mesh);
    found.push_back({ranks * ranges, ranges, rangesOf(build, split[first], ranks, ranges, own)});
    rest /= ranges * blocks;
  }
  if (found.empty())
    return SmallVector<DimPiece>{{size, size, {Value()}}};
  // The last piece and what is behind it are one.
  found.back().global *= rest;
  found.back().local *= rest;
  for (Value &start : found.back().starts)
    start = build.mul(start, constant(build, rest));
  return found;
}

/// Which of all `ranks * count` ranges the member at `position` has, in its order.
SmallVector<Value, 2> CollectiveBuilder::rangesOf(train::Build &build, const SplitLevel &level, int64_t ranks,
                                                  int64_t count, Value position) const {
  if (level.isZigzag)
    return {position, build.sub(constant(build, 2 * ranks - 1), position)};
  if (level.dealt == 0)
    return {position};
  SmallVector<Value, 2> ranges;
  Value first = build.mul(position, constant(build, count));
  for (int64_t number = 0; number < count; ++number) {
    Value place = build.reshape(build.add(first, constant(build, number)), {1});
    ranges.push_back(build.reshape(build.gatherRows(order, place), {}));
  }
  return ranges;
}

SmallVector<Value, 2> CollectiveBuilder::rangeStarts(const Split &split, int64_t size, Value position) {
  assert(split.isRun() && !split.empty() && "ranges of one order");
  train::Build build(builder, loc);
  const int64_t ranks = groupSize(mesh, split), count = split.rangesLeft(split.size() - 1, mesh);
  SmallVector<Value, 2> starts = rangesOf(build, split.front(), ranks, count, position);
  for (Value &start : starts)
    start = build.mul(start, constant(build, size / (ranks * count)));
  return starts;
}

Value CollectiveBuilder::indices(const Split &split, int64_t size, Value position) {
  train::Build build(builder, loc);
  int64_t left = size / groupSize(mesh, split);
  auto type = RankedTensorType::get({left}, builder.getI64Type());
  if (split.isRange() && !position)
    return train::IotaOp::create(builder, loc, type, firstElement(split, size), 0);
  auto repeated = [&](Value number) { return build.broadcast(number, {type.getDimSize(0)}, {}); };
  auto number = [&](int64_t value) {
    return build.constant(SplatElementsAttr::get(type, builder.getI64IntegerAttr(value)));
  };
  Value index = build.iota(type, 0);
  // As elementsOf: from what the last level leaves to what the first one splits.
  int64_t behind = 1; // members of the group that differ on minor axes only
  for (size_t end = split.size(), at = 0; end > 0; end = at) {
    at = split.firstDealtWith(end - 1); // levels that are dealt together are one
    const SplitLevel &level = split[at];
    Axes axes;
    for (const SplitLevel &with : ArrayRef<SplitLevel>(split).slice(at, end - at))
      axes.push_back(with.axis);
    const int64_t blocks = split.blocksAt(at), ranks = groupSize(mesh, axes), block = left / blocks;
    Value own;
    if (!position) {
      own = this->position(axes);
    } else {
      Value turned = build.div(position, constant(build, behind));
      own = build.sub(turned, build.mul(build.div(turned, constant(build, ranks)), constant(build, ranks)));
    }
    Value turn = blocks == 1 ? Value() : build.div(index, number(block));
    Value inside = turn ? build.sub(index, build.mul(turn, number(block))) : index;
    if (level.dealt != 0) {
      const int64_t ranges = level.dealt / ranks, run = block / ranges;
      Value range = build.div(inside, number(run));
      Value place = build.add(range, repeated(build.mul(own, constant(build, ranges))));
      inside = build.add(build.mul(build.gatherRows(order, place), number(run)),
                         build.sub(inside, build.mul(range, number(run))));
    } else if (level.isZigzag) {
      const int64_t half = block / 2;
      Value low = build.mul(own, constant(build, half));
      Value high = build.mul(build.sub(constant(build, 2 * ranks - 2), own), constant(build, half));
      Value isLow = build.compare(train::CompareDirection::Lt, inside, number(half));
      inside = build.add(inside, build.select(isLow, repeated(low), repeated(high)));
    } else {
      inside = build.add(inside, repeated(build.mul(own, constant(build, block))));
    }
    index = turn ? build.add(build.mul(turn, number(block * ranks)), inside) : inside;
    left *= ranks;
    behind *= ranks;
  }
  return index;
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

/// Of `dim`, 2n ranges, in the order of a zigzag: those of the first rank, of the second, … Or back to their own order.
Value CollectiveBuilder::deal(train::Build &build, Value value, int64_t dim, int64_t ranks, bool toRanks) const {
  SmallVector<int64_t> from(2 * ranks);
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const auto &[place, range] : {std::pair(2 * rank, rank), std::pair(2 * rank + 1, 2 * ranks - 1 - rank)})
      (toRanks ? from[place] : from[range]) = toRanks ? range : place;
  auto type = RankedTensorType::get({2 * ranks}, build.builder.getI64Type());
  value = build.moveDim(value, dim, 0);
  const SmallVector<int64_t> shape(train::shapeOf(value));
  value = expand(build, value, 0, {2 * ranks, shape[0] / (2 * ranks)});
  value = build.gatherRows(value, build.constant(DenseElementsAttr::get(type, ArrayRef(from))));
  return build.moveDim(build.reshape(value, shape), 0, dim);
}

/// The same along dimension 0 of what is dealt.
Value CollectiveBuilder::dealByOrder(train::Build &build, Value value, bool toRanks) const {
  const int64_t ranges = train::shapeOf(order)[0];
  const SmallVector<int64_t> shape(train::shapeOf(value));
  value = expand(build, value, 0, {ranges, shape[0] / ranges});
  Value from =
      toRanks ? order : Value(train::SortIndicesOp::create(builder, loc, train::tensorType(order), order, 0, false));
  return build.reshape(build.gatherRows(value, from), shape);
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
  if (step.isZigzag && !grows)
    value = deal(build, value, 0, ranks, /*toRanks=*/true);
  if (step.dealt != 0 && !grows)
    value = dealByOrder(build, value, /*toRanks=*/true);
  SmallVector<int64_t> shape(train::shapeOf(value));
  shape[0] = grows ? shape[0] * ranks : shape[0] / ranks;
  Type type = train::tensorType(value).clone(shape);
  if (grows)
    value = AllGatherOp::create(builder, loc, type, value, axes, 0, origin);
  else if (step.kind == ReshardStep::Kind::ReduceScatter)
    value = ReduceScatterOp::create(builder, loc, type, value, axes, 0, step.reduction, origin);
  else
    value = SliceLocalOp::create(builder, loc, type, value, axes, 0);
  if (step.isZigzag && grows)
    value = deal(build, value, 0, ranks, /*toRanks=*/false);
  if (step.dealt != 0 && grows)
    value = dealByOrder(build, value, /*toRanks=*/false);
  value = build.moveDim(value, 0, dim);
  return step.blocks > 1 ? merge(build, value, step.dim, 2) : value;
}

/// What belongs to each rank becomes dimension 0, is exchanged, and what came from each rank joins dimension
/// `fromDim`.
Value CollectiveBuilder::allToAll(const ReshardStep &step, Value value) {
  train::Build build(builder, loc);
  const int64_t ranks = groupSize(mesh, step.axes);
  const int64_t size = train::shapeOf(value)[step.dim];
  if (step.isZigzag) {
    value = expand(build, value, step.dim, {step.blocks, size / step.blocks});
    value = deal(build, value, step.dim + 1, ranks, /*toRanks=*/true);
    value = merge(build, value, step.dim, 2);
  }
  value = expand(build, value, step.dim, {step.blocks, ranks, size / (step.blocks * ranks)});
  value = build.moveDim(value, step.dim + 1, 0);
  value = merge(build, value, step.dim + 1, 2);
  value = AllToAllOp::create(builder, loc, value.getType(), value, axisNames(mesh, step.axes), 0, 0, origin);
  const int64_t from = step.fromDim + 1;
  value = expand(build, value, from, {step.fromBlocks, train::shapeOf(value)[from] / step.fromBlocks});
  value = build.moveDim(value, 0, from);
  if (!step.fromZigzag)
    return merge(build, value, step.fromDim, 3);
  value = deal(build, merge(build, value, from, 2), from, ranks, /*toRanks=*/false);
  return merge(build, value, step.fromDim, 2);
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
