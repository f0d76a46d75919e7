//===- KnownRows.cpp - values known at compile time, row by row -----------===//

#include "passes/simplify/KnownRows.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

namespace {
constexpr int64_t kMaxWork = int64_t{1} << 27; ///< a second or two
constexpr int kDeepestRow = 64;

/// The index of an element of `shape` from its row-major number, and back.
SmallVector<int64_t> indexOf(int64_t flat, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; flat /= shape[dim])
    index[dim] = flat % shape[dim];
  return index;
}
int64_t flatOf(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t flat = 0;
  for (auto [at, size] : llvm::zip_equal(index, shape))
    flat = flat * size + at;
  return flat;
}

double numberOf(const APFloat &value) { return value.convertToDouble(); }
double numberOf(const APInt &value) {
  return value.getBitWidth() == 1 ? (value.isZero() ? 0 : 1) : static_cast<double>(value.getSExtValue());
}

double elementOf(DenseElementsAttr elements, int64_t flat) {
  if (isa<FloatType>(elements.getElementType()))
    return numberOf(*(elements.value_begin<APFloat>() + flat));
  return numberOf(*(elements.value_begin<APInt>() + flat));
}

/// The dimensions along which neighbours in a constant differ.
BitVector constantVaries(DenseElementsAttr elements) {
  ArrayRef<int64_t> shape = elements.getType().getShape();
  BitVector varies(shape.size());
  if (elements.isSplat())
    return varies;
  std::vector<double> values;
  values.reserve(elements.getNumElements());
  for (int64_t flat = 0; flat < elements.getNumElements(); ++flat)
    values.push_back(elementOf(elements, flat));
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0; stride *= shape[dim])
    for (int64_t flat = 0; flat < elements.getNumElements() && !varies[dim]; ++flat)
      if (flat / stride % shape[dim] != 0 && values[flat] != values[flat - stride])
        varies.set(dim);
  return varies;
}

std::optional<Row> negated(const Row &row, Type type) {
  Row made;
  int64_t begin = 0;
  for (const Piece &piece : row) {
    if (!appendAs(made, piece.end - begin, -piece.first, -piece.slope, type))
      return std::nullopt;
    begin = piece.end;
  }
  return made;
}
} // namespace

std::optional<Row> KnownRows::row(Value value, ArrayRef<int64_t> index) {
  if (depth >= kDeepestRow || work > kMaxWork)
    return std::nullopt;
  ++depth;
  std::optional<Row> result = compute(value, index);
  --depth;
  work += result ? static_cast<int64_t>(result->size()) : 1;
  return result;
}

std::optional<double> KnownRows::element(Value value, ArrayRef<int64_t> index) {
  std::optional<Row> all = row(value, index.drop_back());
  if (!all)
    return std::nullopt;
  int64_t begin = 0;
  for (const Piece &piece : *all) {
    if (index.back() < piece.end)
      return piece.at(index.back() - begin);
    begin = piece.end;
  }
  return std::nullopt;
}

std::optional<Row> KnownRows::compute(Value value, ArrayRef<int64_t> index) {
  Operation *op = value.getDefiningOp();
  if (!op || shapeOf(value).empty() || shapeOf(value).back() == 0)
    return std::nullopt;
  using Result = std::optional<Row>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](ConstantOp constant) -> Result {
        auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
        return elements ? constantRow(elements, index) : std::nullopt;
      })
      .Case([&](IotaOp iota) -> Result {
        if (iota.getOffset())
          return std::nullopt;
        Row made;
        const auto dim = static_cast<size_t>(iota.getDim());
        const bool along = dim == index.size();
        const bool isFine = appendAs(made, shapeOf(value).back(), along ? 0 : static_cast<double>(index[dim]), along,
                                     tensorType(value).getElementType());
        return isFine ? Result(made) : std::nullopt;
      })
      .Case([&](BroadcastOp broadcast) { return broadcastRow(broadcast, index); })
      .Case([&](ReshapeOp reshape) { return reshapeRow(reshape, index); })
      .Case([&](TransposeOp transpose) { return transposeRow(transpose, index); })
      .Case([&](SliceOp slice) { return sliceRow(slice, index); })
      .Case([&](ConvertOp convert) { return convertRow(convert, index); })
      .Case([&](SelectOp select) { return selectRow(select, index); })
      .Case([&](NegOp neg) -> Result {
        Result operand = row(neg.getOperand(), index);
        return operand ? negated(*operand, tensorType(value).getElementType()) : std::nullopt;
      })
      .Case<AddOp, SubOp, MulOp, MaxOp, CompareOp>([&](Operation *binary) { return binaryRow(binary, index); })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<Row> KnownRows::constantRow(DenseElementsAttr elements, ArrayRef<int64_t> index) {
  const ArrayRef<int64_t> shape = elements.getType().getShape();
  const int64_t length = shape.back();
  if (elements.isSplat()) {
    Row made;
    append(made, length, elementOf(elements, 0), 0);
    return made;
  }
  const int64_t number = flatOf(index, shape.drop_back());
  auto [entry, isNew] = constantRows.try_emplace({elements, number});
  if (!isNew)
    return entry->second;
  work += length;
  Row made;
  for (int64_t begin = 0; begin < length;) {
    const double first = elementOf(elements, number * length + begin);
    const double next = begin + 1 < length ? elementOf(elements, number * length + begin + 1) : first;
    const double slope = isWhole(first) && isWhole(next) ? next - first : 0;
    int64_t end = begin + 1;
    while (end < length &&
           elementOf(elements, number * length + end) == first + slope * static_cast<double>(end - begin))
      ++end;
    if (end - begin == 2 && slope != 0) // the second may begin a run
      --end;
    append(made, end - begin, first, slope);
    begin = end;
  }
  return entry->second = made;
}

std::optional<Row> KnownRows::broadcastRow(BroadcastOp op, ArrayRef<int64_t> index) {
  const ArrayRef<int64_t> shape = shapeOf(op.getOperand()), to = shapeOf(op.getResult());
  const int64_t last = static_cast<int64_t>(to.size()) - 1;
  SmallVector<int64_t> from;
  for (auto [dim, target] : llvm::enumerate(op.getBroadcastDimensions()))
    from.push_back(shape[dim] == 1 || target == last ? 0 : index[target]);
  const bool isAlong = !shape.empty() && op.getBroadcastDimensions().back() == last && shape.back() == to.back();
  if (isAlong)
    return row(op.getOperand(), ArrayRef<int64_t>(from).drop_back());
  std::optional<double> value;
  if (!shape.empty())
    value = element(op.getOperand(), from);
  else if (auto constant = op.getOperand().getDefiningOp<ConstantOp>())
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
      value = elementOf(elements, 0);
  if (!value)
    return std::nullopt;
  Row made;
  append(made, to.back(), *value, 0);
  return made;
}

std::optional<Row> KnownRows::reshapeRow(ReshapeOp op, ArrayRef<int64_t> index) {
  const ArrayRef<int64_t> from = shapeOf(op.getOperand()), to = shapeOf(op.getResult());
  if (from.empty())
    return std::nullopt;
  const int64_t number = flatOf(index, to.drop_back());
  if (from.back() == to.back())
    return row(op.getOperand(), indexOf(number, from.drop_back()));
  // Other rows are put together element by element, which only a single one is worth.
  if (to.back() != 1 && tensorType(op.getResult()).getNumElements() != to.back())
    return std::nullopt;
  Row made;
  for (int64_t column = 0; column < to.back(); ++column) {
    std::optional<double> value = element(op.getOperand(), indexOf(number * to.back() + column, from));
    if (!value || !append(made, 1, *value, 0))
      return std::nullopt;
  }
  return made;
}

std::optional<Row> KnownRows::transposeRow(TransposeOp op, ArrayRef<int64_t> index) {
  const ArrayRef<int64_t> permutation = op.getPermutation();
  if (permutation.back() + 1 != static_cast<int64_t>(permutation.size()))
    return std::nullopt;
  SmallVector<int64_t> from(index.size());
  for (auto [dim, source] : llvm::enumerate(permutation.drop_back()))
    from[source] = index[dim];
  return row(op.getOperand(), from);
}

std::optional<Row> KnownRows::sliceRow(SliceOp op, ArrayRef<int64_t> index) {
  if (op.getStrides().back() != 1)
    return std::nullopt;
  SmallVector<int64_t> from;
  for (auto [dim, at] : llvm::enumerate(index))
    from.push_back(op.getStarts()[dim] + at * op.getStrides()[dim]);
  std::optional<Row> whole = row(op.getOperand(), from);
  if (!whole)
    return std::nullopt;
  const int64_t start = op.getStarts().back(), limit = op.getLimits().back();
  Row made;
  int64_t begin = 0;
  for (const Piece &piece : *whole) {
    const int64_t low = std::max(begin, start), high = std::min(piece.end, limit);
    if (low < high)
      append(made, high - low, piece.at(low - begin), piece.slope);
    begin = piece.end;
  }
  return made;
}

std::optional<Row> KnownRows::convertRow(ConvertOp op, ArrayRef<int64_t> index) {
  std::optional<Row> operand = row(op.getOperand(), index);
  const Type type = tensorType(op.getResult()).getElementType();
  Row made;
  int64_t begin = 0;
  for (const Piece &piece : operand ? ArrayRef<Piece>(*operand) : ArrayRef<Piece>()) {
    const int64_t length = piece.end - begin;
    bool isFine = true;
    if (type.isInteger(1))
      isFine = appendCompare(made, length, piece, Piece{piece.end, 0, 0}, CompareDirection::Ne);
    else
      isFine = appendAs(made, length, isa<FloatType>(type) ? piece.first : std::trunc(piece.first), piece.slope, type);
    if (!isFine)
      return std::nullopt;
    begin = piece.end;
  }
  return operand ? std::optional<Row>(made) : std::nullopt;
}

std::optional<Row> KnownRows::selectRow(SelectOp op, ArrayRef<int64_t> index) {
  std::optional<Row> predicate = row(op.getPredicate(), index);
  if (!predicate)
    return std::nullopt;
  std::optional<Row> onTrue = row(op.getOnTrue(), index), onFalse = row(op.getOnFalse(), index);
  if (!onTrue || !onFalse)
    return std::nullopt;
  Row made;
  int64_t begin = 0;
  auto take = [&](const Row &source, int64_t end) {
    int64_t from = 0;
    for (const Piece &piece : source) {
      const int64_t low = std::max(from, begin), high = std::min(piece.end, end);
      if (low < high)
        append(made, high - low, piece.at(low - from), piece.slope);
      from = piece.end;
    }
  };
  for (const Piece &piece : *predicate) {
    take(piece.first != 0 ? *onTrue : *onFalse, piece.end);
    begin = piece.end;
  }
  return made;
}

std::optional<Row> KnownRows::binaryRow(Operation *op, ArrayRef<int64_t> index) {
  std::optional<Row> a = row(op->getOperand(0), index);
  std::optional<Row> b = a ? row(op->getOperand(1), index) : std::nullopt;
  if (!a || !b)
    return std::nullopt;
  const Type type = tensorType(op->getResult(0)).getElementType();
  Row made;
  const bool isFine = zipRows(*a, *b, [&](int64_t length, const Piece &x, const Piece &y) {
    if (auto compare = dyn_cast<CompareOp>(op))
      return appendCompare(made, length, x, y, compare.getDirection());
    if (isa<MaxOp>(op))
      return appendMax(made, length, x, y);
    return appendArithmetic(made, length, x, y, op, type);
  });
  return isFine ? std::optional<Row>(made) : std::nullopt;
}

BitVector KnownRows::variesAlong(Value value) {
  const ArrayRef<int64_t> shape = shapeOf(value);
  BitVector all(shape.size(), true);
  Operation *op = value.getDefiningOp();
  if (!op || depth >= kDeepestRow)
    return all;
  ++depth;
  BitVector varies(shape.size());
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    varies = elements ? constantVaries(elements) : all;
  } else if (auto iota = dyn_cast<IotaOp>(op)) {
    varies.set(static_cast<unsigned>(iota.getDim()));
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    BitVector from = variesAlong(broadcast.getOperand());
    for (auto [dim, target] : llvm::enumerate(broadcast.getBroadcastDimensions()))
      if (from[dim])
        varies.set(static_cast<unsigned>(target));
  } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
    BitVector from = variesAlong(transpose.getOperand());
    for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
      if (from[source])
        varies.set(dim);
  } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    // Dimensions keep their order when only sizes of 1 come and go.
    BitVector from = variesAlong(reshape.getOperand());
    SmallVector<unsigned> sources, targets;
    for (auto [dim, size] : llvm::enumerate(shapeOf(reshape.getOperand())))
      if (size != 1)
        sources.push_back(dim);
    for (auto [dim, size] : llvm::enumerate(shape))
      if (size != 1)
        targets.push_back(dim);
    auto sizes = [](ArrayRef<unsigned> dims, ArrayRef<int64_t> of) {
      return llvm::map_to_vector(dims, [&](unsigned dim) { return of[dim]; });
    };
    if (from.none())
      varies.reset();
    else if (sizes(sources, shapeOf(reshape.getOperand())) != sizes(targets, shape))
      varies = all;
    else
      for (auto [source, target] : llvm::zip_equal(sources, targets))
        if (from[source])
          varies.set(target);
  } else if (op->hasTrait<OpTrait::Elementwise>() || isa<SliceOp>(op)) {
    for (Value operand : op->getOperands())
      varies |= variesAlong(operand);
  } else {
    varies = all;
  }
  --depth;
  return varies;
}

} // namespace tessera::simplify
