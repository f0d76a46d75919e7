//===- Running.cpp - running sums and maxima ------------------------------===//

#include "compiler/dialect/train/Running.h"

#include "compiler/dialect/train/Constants.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace tessera::train {

namespace {
/// The largest dimension that is one triangle, and what a longer one is cut into.
struct Lengths {
  int64_t most, block;
};
/// Sums of floats are products of a library, which large triangles suit.
constexpr Lengths kSums{kLongestTriangle, 1024}, kMaxima{128, 64};

Value triangular(Build &b, ReduceKind kind, Value x, int64_t axis, RunningDirection direction) {
  const auto rank = static_cast<int64_t>(shapeOf(x).size());
  const int64_t size = shapeOf(x)[axis];
  auto index = RankedTensorType::get({size, size}, b.builder.getI64Type());
  Value from = b.iota(index, direction.reverse ? 1 : 0), to = b.iota(index, direction.reverse ? 0 : 1);
  Value takes = b.compare(direction.exclusive ? CompareDirection::Lt : CompareDirection::Le, from, to);
  Type element = tensorType(x).getElementType();
  Value product;
  if (isa<FloatType>(element)) {
    product = b.dot(x, b.convert(takes, element), {}, {}, {axis}, {0});
  } else { // no library has products of integers
    SmallVector<int64_t> wide(shapeOf(x));
    wide.push_back(size);
    Value terms = b.broadcast(x, wide, llvm::to_vector(llvm::seq<int64_t>(0, rank)));
    terms = b.select(b.broadcast(takes, wide, {axis, rank}), terms, b.splatLike(terms, 0));
    product = b.reduce(kind, terms, {axis});
  }
  SmallVector<int64_t> back;
  for (int64_t dim = 0; dim < rank; ++dim)
    back.push_back(dim == axis ? rank - 1 : dim < axis ? dim : dim - 1);
  return b.transpose(product, back);
}

/// Within blocks, and of what the blocks before give.
Value running(Build &b, ReduceKind kind, Value x, int64_t axis, RunningDirection direction, Lengths lengths) {
  const SmallVector<int64_t> shape(shapeOf(x));
  const auto rank = static_cast<int64_t>(shape.size());
  if (shape[axis] <= lengths.most)
    return triangular(b, kind, x, axis, direction);
  const int64_t blocks = llvm::divideCeil(shape[axis], lengths.block);
  SmallVector<int64_t> none(rank, 0), missing(rank, 0), padded(shape), split(shape);
  missing[axis] = blocks * lengths.block - shape[axis];
  padded[axis] = blocks * lengths.block;
  split[axis] = blocks;
  split.insert(split.begin() + axis + 1, lengths.block);
  if (missing[axis] != 0)
    x = b.pad(x, none, missing);
  x = b.reshape(x, split);
  Value before = running(b, kind, b.reduce(kind, x, {axis + 1}), axis, {true, direction.reverse}, lengths);
  before = b.broadcastReduced(before, split, {axis + 1});
  Value within = triangular(b, kind, x, axis + 1, direction);
  Value all = b.reshape(kind == ReduceKind::Sum ? b.add(within, before) : b.max(within, before), padded);
  return missing[axis] != 0 ? b.slice(all, none, shape) : all;
}

/// The direction of a triangle of pairs, repeated along leading dimensions. Its indices are exact: rounded ones that
/// are equal would take in what lies ahead.
std::optional<RunningDirection> directionOf(Value takes) {
  if (auto broadcast = takes.getDefiningOp<BroadcastOp>()) {
    const auto rank = static_cast<int64_t>(shapeOf(takes).size());
    if (broadcast.getBroadcastDimensions() != ArrayRef<int64_t>{rank - 2, rank - 1} ||
        shapeOf(broadcast.getOperand()) != shapeOf(takes).take_back(2))
      return std::nullopt;
    takes = broadcast.getOperand();
  }
  auto compare = takes.getDefiningOp<CompareOp>();
  auto from = compare ? compare.getLhs().getDefiningOp<IotaOp>() : IotaOp();
  auto to = compare ? compare.getRhs().getDefiningOp<IotaOp>() : IotaOp();
  const ArrayRef<int64_t> shape = shapeOf(takes);
  if (!from || !to || from.getOffset() || to.getOffset() || shape.size() != 2 || shape[0] != shape[1] ||
      from.getDim() == to.getDim() ||
      !holdsWhole(tensorType(from).getElementType(), static_cast<double>(shape[0] - 1)) ||
      (compare.getDirection() != CompareDirection::Lt && compare.getDirection() != CompareDirection::Le))
    return std::nullopt;
  return RunningDirection{compare.getDirection() == CompareDirection::Lt, from.getDim() == 1};
}

std::optional<RunningSums> matchTriangular(Value value) {
  const auto rank = static_cast<int64_t>(shapeOf(value).size());
  if (auto dot = value.getDefiningOp<DotGeneralOp>()) {
    auto takes = dot.getRhs().getDefiningOp<ConvertOp>();
    const auto direction = takes ? directionOf(takes.getOperand()) : std::nullopt;
    if (!direction || !dot.getLhsBatch().empty() || dot.getLhsContract() != ArrayRef<int64_t>{rank - 1} ||
        dot.getRhsContract() != ArrayRef<int64_t>{0})
      return std::nullopt;
    return RunningSums{dot.getLhs(), *direction};
  }
  auto reduce = value.getDefiningOp<ReduceOp>();
  auto select = reduce ? reduce.getOperand().getDefiningOp<SelectOp>() : SelectOp();
  auto terms = select ? select.getOnTrue().getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!terms || reduce.getKind() != ReduceKind::Sum || reduce.getDimensions() != ArrayRef<int64_t>{rank - 1} ||
      splatOf(select.getOnFalse()) != 0.0 || shapeOf(terms).drop_back() != shapeOf(terms.getOperand()) ||
      terms.getBroadcastDimensions() != ArrayRef<int64_t>(llvm::to_vector(llvm::seq<int64_t>(0, rank))))
    return std::nullopt;
  const auto direction = directionOf(select.getPredicate());
  return direction ? std::optional(RunningSums{terms.getOperand(), *direction}) : std::nullopt;
}

/// Without sizes of 1, which come and go where reshapes are merged.
SmallVector<int64_t> squeezed(ArrayRef<int64_t> shape) {
  return llvm::to_vector(llvm::make_filter_range(shape, [](int64_t size) { return size != 1; }));
}

/// Whether `shape` is that of the first elements along the last dimension of `whole`.
bool isFirstOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> whole) {
  const SmallVector<int64_t> part = squeezed(shape), all = squeezed(whole);
  return !part.empty() && part.size() == all.size() &&
         llvm::equal(ArrayRef(part).drop_back(), ArrayRef(all).drop_back()) && part.back() <= all.back();
}

/// Whether `split` is `whole` with its last dimension cut into blocks: sums do not run on from row to row.
bool isCutIntoBlocks(ArrayRef<int64_t> whole, ArrayRef<int64_t> split) {
  if (split.size() < 2)
    return false;
  SmallVector<int64_t> joined(split.drop_back());
  joined.back() *= split.back();
  return joined.back() != 1 && squeezed(whole) == squeezed(joined);
}

/// Of blocks, of which the first elements make up `shape`.
std::optional<RunningSums> matchBlocks(Value sums, ArrayRef<int64_t> shape) {
  auto whole = sums.getDefiningOp<ReshapeOp>();
  auto add = whole ? whole.getOperand().getDefiningOp<AddOp>() : AddOp();
  if (!add)
    return std::nullopt;
  auto isNone = [](int64_t size) { return size == 0; };
  const auto last = static_cast<int64_t>(shapeOf(add).size()) - 1;
  const auto leading = llvm::to_vector(llvm::seq<int64_t>(0, last));
  for (auto [within, before] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())}) {
    auto repeated = before.getDefiningOp<BroadcastOp>();
    const auto parts = repeated ? matchTriangular(within) : std::nullopt;
    const auto blocks = parts ? matchRunningSums(repeated.getOperand()) : std::nullopt;
    auto totals = blocks ? blocks->operand.getDefiningOp<ReduceOp>() : ReduceOp();
    const bool isOfBlocks = totals && shapeOf(repeated.getOperand()) == shapeOf(add).drop_back() &&
                            totals.getKind() == ReduceKind::Sum && totals.getDimensions() == ArrayRef<int64_t>{last} &&
                            totals.getOperand() == parts->operand && blocks->direction.exclusive &&
                            blocks->direction.reverse == parts->direction.reverse &&
                            repeated.getBroadcastDimensions() == ArrayRef<int64_t>(leading);
    auto split = isOfBlocks ? parts->operand.getDefiningOp<ReshapeOp>() : ReshapeOp();
    if (!split || !isCutIntoBlocks(shapeOf(split.getOperand()), shapeOf(split)) ||
        !isCutIntoBlocks(shapeOf(sums), shapeOf(split)) || !isFirstOf(shape, shapeOf(sums)))
      continue;
    auto pad = split.getOperand().getDefiningOp<PadOp>();
    if (pad && isFirstOf(shape, shapeOf(pad.getOperand())) && pad.getValue().isZero() &&
        llvm::all_of(pad.getLow(), isNone) && llvm::all_of(pad.getInterior(), isNone))
      return RunningSums{pad.getOperand(), parts->direction};
    return RunningSums{split.getOperand(), parts->direction};
  }
  return std::nullopt;
}
} // namespace

bool holdsWhole(Type type, double most) {
  if (auto floating = dyn_cast<FloatType>(type))
    return most <= std::ldexp(1.0, static_cast<int>(floating.getFPMantissaWidth()));
  return !type.isInteger(1) && most < std::ldexp(1.0, static_cast<int>(type.getIntOrFloatBitWidth()) - 1);
}

Value runningSums(Build &b, Value x, int64_t axis, RunningDirection direction) {
  return running(b, ReduceKind::Sum, x, axis, direction, kSums);
}

Value runningMaxima(Build &b, Value x, int64_t axis, RunningDirection direction) {
  return running(b, ReduceKind::Max, x, axis, direction, kMaxima);
}

std::optional<RunningSums> matchRunningSums(Value value) {
  if (shapeOf(value).empty())
    return std::nullopt;
  if (auto sums = matchTriangular(value))
    return sums;
  // What was added to the last block is cut off.
  auto slice = value.getDefiningOp<SliceOp>();
  if (!slice)
    return matchBlocks(value, shapeOf(value));
  const bool fromStart = llvm::all_of(slice.getStarts(), [](int64_t start) { return start == 0; }) &&
                         llvm::all_of(slice.getStrides(), [](int64_t stride) { return stride == 1; });
  return fromStart ? matchBlocks(slice.getOperand(), shapeOf(value)) : std::nullopt;
}

} // namespace tessera::train
