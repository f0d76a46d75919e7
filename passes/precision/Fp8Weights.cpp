//===- Fp8Weights.cpp - weights are quantised where they are held ---------===//
//
// See Fp8Weights.h.
//
//===----------------------------------------------------------------------===//

#include "passes/precision/Fp8Weights.h"

#include "passes/precision/Fp8Columns.h"

#include "compiler/dialect/train/Float8.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "compiler/interfaces/Interfaces.h"

#include <numeric>

using namespace mlir;
using namespace tessera::train;

namespace tessera::precision {

// --- Quantising ------------------------------------------------------------------

/// The maxima of blocks of a tensor, as a tensor of them; of absolute values in f32 with `ofMagnitudes`. A kernel makes
/// these of the narrow value again for each way to cut it, so that they are not stored.
static Value maxima(Build &b, Value value, ArrayRef<int64_t> blocks, bool ofMagnitudes = false) {
  SmallVector<int64_t> parted, reduced, counts;
  for (auto [size, block] : llvm::zip_equal(shapeOf(value), blocks)) {
    counts.push_back(size / block);
    if (block != size && block != 1)
      parted.push_back(size / block);
    if (block != 1)
      reduced.push_back(parted.size());
    parted.push_back(block == 1 ? size : block);
  }
  Value parts = b.reshape(value, parted);
  if (ofMagnitudes)
    parts = b.unary<AbsOp>(b.convert(parts, b.builder.getF32Type()));
  return b.reshape(b.reduce(ReduceKind::Max, parts, reduced), counts);
}

Value Quantizer::scale(Build &b, Value amax, const OperandPolicy &policy) const {
  return QuantizeScaleOp::create(b.builder, b.loc, amax.getType(), policy.rounding, amax,
                                 train::getType(b.builder.getContext(), policy.format), oneIfNotFinite);
}

static Value invert(Build &b, Value scale) { return b.div(b.splatLike(scale, 1.0), scale); }

static Value cast(Build &b, Value value, Value scale, const OperandPolicy &policy) {
  FloatType format = train::getType(b.builder.getContext(), policy.format);
  return QuantizeOp::create(b.builder, b.loc, tensorType(value).clone(format), value, scale);
}

Quantized Quantizer::quantize(Build &b, Value matrix, ArrayRef<int64_t> blocks, const OperandPolicy &policy) const {
  Value scales = scale(b, maxima(b, matrix, blocks, /*ofMagnitudes=*/true), policy);
  return {cast(b, matrix, scales, policy), invert(b, scales)};
}

// --- Where weights are -----------------------------------------------------------

/// The views between a unit and `value`, the last one first; the unit.
static std::pair<SmallVector<Operation *>, BlockArgument> viewsOf(Value value) {
  SmallVector<Operation *> views;
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<SliceOp, ReshapeOp, TransposeOp>(op))
      return {};
    views.push_back(op);
    value = op->getOperand(0);
  }
  return {std::move(views), cast<BlockArgument>(value)};
}

std::optional<Fp8Weights::Stored> Fp8Weights::locate(Value matrix, ArrayRef<int64_t> blocks,
                                                     const OperandPolicy &policy) const {
  auto [views, unit] = viewsOf(matrix);
  if (!unit || unit.getOwner()->getParentOp() != func || getSegments(func, unit.getArgNumber()).empty())
    return std::nullopt;
  // The offset of the first element, and how far the next one along each dimension is.
  int64_t offset = 0;
  SmallVector<int64_t> strides = {1};
  for (Operation *view : llvm::reverse(views)) {
    if (auto slice = dyn_cast<SliceOp>(view)) {
      for (auto [start, step, stride] : llvm::zip_equal(slice.getStarts(), slice.getStrides(), strides)) {
        offset += start * stride;
        if (step != 1)
          return std::nullopt;
      }
    } else if (auto transpose = dyn_cast<TransposeOp>(view)) {
      SmallVector<int64_t> moved;
      for (int64_t from : transpose.getPermutation())
        moved.push_back(strides[from]);
      strides = moved;
    } else {
      // Only of what lies in order and without gaps.
      ArrayRef<int64_t> from = shapeOf(view->getOperand(0)), to = shapeOf(view->getResult(0));
      int64_t next = 1;
      for (size_t dim = from.size(); dim-- > 0; next *= from[dim])
        if (from[dim] != 1 && strides[dim] != next)
          return std::nullopt;
      strides.assign(to.size(), 1);
      for (size_t dim = to.size(); dim-- > 1;)
        strides[dim - 1] = strides[dim] * to[dim];
    }
  }
  ArrayRef<int64_t> shape = shapeOf(matrix);
  const bool isTransposed = strides[0] == 1 && strides[1] == shape[0];
  if (!isTransposed && !(strides[1] == 1 && strides[0] == shape[1]))
    return std::nullopt;
  const int64_t major = isTransposed ? 1 : 0;
  return Stored{unit, offset, shape[major], shape[1 - major], isTransposed, {blocks[major], blocks[1 - major]}, policy};
}

bool Fp8Weights::Copy::hasRoomFor(const Stored &weight) const {
  return llvm::none_of(weights, [&](const auto &one) {
    return one.first.overlaps(weight) || one.first.policy.format != weight.policy.format ||
           one.first.isByColumn() != weight.isByColumn() ||
           (weight.isByColumn() && !(one.first.policy == weight.policy));
  });
}

StringRef Fp8Weights::request(Value matrix, ArrayRef<int64_t> blocks, const OperandPolicy &policy) {
  const BlockArgument unit = viewsOf(matrix).second;
  if (unit && unit.getOwner()->getParentOp() == func && getPlacement(getSegments(func, unit.getArgNumber())))
    return "model axes split its unit";
  std::optional<Stored> stored = locate(matrix, blocks, policy);
  if (!stored)
    return "it does not lie in a unit as a matrix";
  // Whole chunks share a scale, also where all of a row does; or columns do, or blocks of their rows, whose largest
  // values are gathered where ranks have shards.
  const bool isByColumn = stored->isByColumn() && shards > 1 && shapeOf(stored->unit)[0] % shards == 0;
  if (stored->block[1] % kLeastFloat8Chunk != 0 && !isByColumn)
    return "what shares a scale is spread over its unit";
  if (stored->offset % kLeastFloat8Chunk != 0)
    return "it does not begin at a multiple of 16 elements of its unit";
  SmallVector<Copy> &copies = units[stored->unit];
  auto holds = [&](const Copy &copy) {
    return llvm::any_of(copy.weights, [&](auto &one) { return one.first == *stored; });
  };
  if (llvm::any_of(copies, holds))
    return "";
  auto *copy = llvm::find_if(copies, [&](const Copy &copy) { return copy.hasRoomFor(*stored); });
  if (copy == copies.end())
    copy = &copies.emplace_back();
  copy->weights.emplace_back(*stored, Value());
  return "";
}

// --- Units in 8 bits -------------------------------------------------------------

void Fp8Weights::build() {
  Block &body = func.getBody().front();
  OpBuilder builder(&body, body.begin());
  for (auto &[unit, copies] : units)
    build(builder, unit, copies);
}

void Fp8Weights::build(OpBuilder &builder, BlockArgument unit, MutableArrayRef<Copy> copies) {
  Build b(builder, unit.getLoc());
  const int64_t elements = shapeOf(unit)[0];
  int64_t chunk = std::gcd(kFloat8Chunk, elements);
  for (const Copy &copy : copies)
    for (const auto &[weight, inverse] : copy.isByColumn() ? ArrayRef<std::pair<Stored, Value>>() : copy.weights)
      chunk = std::gcd(chunk, std::gcd(weight.block[1], weight.offset));
  Value chunks = b.reshape(unit, {elements / chunk, chunk});
  Value amax = b.reshape(maxima(b, chunks, {1, chunk}, /*ofMagnitudes=*/true), {elements / chunk});
  for (Copy &copy : copies) {
    if (copy.isByColumn()) {
      buildByColumn(b, unit, copy);
      continue;
    }
    llvm::sort(copy.weights, [](auto &x, auto &y) { return x.first.offset < y.first.offset; });
    SmallVector<Value> scales;
    int64_t end = 0;
    auto fill = [&](int64_t until) { // what no product reads
      if (until > end)
        scales.push_back(b.splat(RankedTensorType::get({(until - end) / chunk}, builder.getF32Type()), 1.0));
    };
    for (auto &[weight, inverse] : copy.weights) {
      fill(weight.offset);
      end = weight.end();
      const int64_t perRow = weight.columns / chunk;
      Value own = b.reshape(b.slice(amax, {weight.offset / chunk}, {end / chunk}), {weight.rows, perRow});
      Value scale = quantizer.scale(b, maxima(b, own, {weight.block[0], weight.block[1] / chunk}), weight.policy);
      inverse = invert(b, scale);
      scales.push_back(b.reshape(b.repeatBlocks(scale, {weight.rows, perRow}), {weight.rows * perRow}));
    }
    fill(elements);
    Value all = scales.size() == 1 ? scales.front() : b.concat(scales, 0);
    copy.chunks =
        tessera::precision::cast(b, chunks, b.reshape(all, {elements / chunk, 1}), copy.weights.front().first.policy);
  }
}

void Fp8Weights::buildByColumn(Build &b, BlockArgument unit, Copy &copy) {
  UnitShards rows(b, unit, shards);
  SmallVector<ColumnWeight> weights;
  for (const auto &[weight, inverse] : copy.weights)
    weights.push_back({weight.offset, weight.rows, weight.columns, weight.block[0]});
  weights = joinBlocks(std::move(weights));
  SmallVector<Value> scales, inverses;
  for (Value amax : rows.maxima(b, weights)) {
    scales.push_back(quantizer.scale(b, amax, copy.weights.front().first.policy));
    inverses.push_back(invert(b, scales.back()));
  }
  for (auto &[weight, inverse] : copy.weights) {
    const auto *joined = llvm::find_if(weights, [&, offset = weight.offset](const ColumnWeight &one) {
      return one.offset <= offset && offset < one.end();
    });
    const int64_t begin = (weight.offset - joined->offset) / weight.block[0];
    const int64_t blocks = weight.rows / weight.block[0];
    Value own = b.slice(inverses[joined - weights.begin()], {begin}, {begin + blocks * weight.columns});
    inverse = b.reshape(own, {blocks, weight.columns});
  }
  copy.chunks = tessera::precision::cast(b, rows.getRows(), rows.scalesOfElements(b, weights, scales),
                                         copy.weights.front().first.policy);
}

Quantized Fp8Weights::read(Build &b, Value matrix, ArrayRef<int64_t> blocks, const OperandPolicy &policy) {
  const Stored stored = *locate(matrix, blocks, policy);
  for (const Copy &copy : units[stored.unit])
    for (const auto &[weight, inverse] : copy.weights) {
      if (!(weight == stored))
        continue;
      Value value = b.reshape(copy.chunks, {tensorType(copy.chunks).getNumElements()});
      const SmallVector<Operation *> views = viewsOf(matrix).first;
      for (Operation *view : llvm::reverse(views)) {
        Operation *same = b.builder.clone(*view);
        same->setOperand(0, value);
        value = same->getResult(0);
        value.setType(tensorType(value).clone(tensorType(copy.chunks).getElementType()));
      }
      return {value, stored.isTransposed ? b.transpose(inverse, {1, 0}) : inverse};
    }
  llvm_unreachable("read without a request");
}

} // namespace tessera::precision
