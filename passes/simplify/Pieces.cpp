//===- Pieces.cpp - rows of numbers as few pieces -------------------------===//

#include "passes/simplify/Pieces.h"

#include "compiler/dialect/train/Running.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

static constexpr double kMaxWhole = 9007199254740992.0; // 2^53

bool isWhole(double value) { return std::abs(value) < kMaxWhole && value == std::floor(value); }

bool append(Row &row, int64_t length, double first, double slope) {
  if (length == 0)
    return true;
  const int64_t begin = row.empty() ? 0 : row.back().end;
  // Two numbers are two pieces: a step from 0 to 1 is not an ascent.
  if (length == 2 && slope != 0)
    return append(row, 1, first, 0) && append(row, 1, first + slope, 0);
  if (length == 1)
    slope = 0;
  const Piece piece{begin + length, first, slope};
  if (slope != 0 && !(isWhole(first) && isWhole(slope) && isWhole(piece.at(length - 1))))
    return false;
  if (!row.empty() && row.back().slope == 0 && slope == 0 &&
      (row.back().first == first || (std::isnan(row.back().first) && std::isnan(first))))
    row.back().end = piece.end;
  else
    row.push_back(piece);
  return true;
}

bool zipRows(const Row &a, const Row &b, llvm::function_ref<bool(int64_t, const Piece &, const Piece &)> visit) {
  size_t i = 0, j = 0;
  int64_t begin = 0, beginA = 0, beginB = 0;
  while (i < a.size() && j < b.size()) {
    const int64_t end = std::min(a[i].end, b[j].end);
    if (!visit(end - begin, Piece{end, a[i].at(begin - beginA), a[i].slope},
               Piece{end, b[j].at(begin - beginB), b[j].slope}))
      return false;
    if (a[i].end == end)
      beginA = a[i++].end;
    if (b[j].end == end)
      beginB = b[j++].end;
    begin = end;
  }
  return true;
}

double roundedTo(double value, Type type) {
  if (auto floating = dyn_cast<FloatType>(type)) {
    APFloat number(value);
    bool losesInfo = false;
    number.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    return number.convertToDouble();
  }
  return value;
}

static bool holds(CompareDirection direction, int sign) {
  switch (direction) {
  case CompareDirection::Eq:
    return sign == 0;
  case CompareDirection::Ne:
    return sign != 0;
  case CompareDirection::Lt:
    return sign < 0;
  case CompareDirection::Le:
    return sign <= 0;
  case CompareDirection::Gt:
    return sign > 0;
  case CompareDirection::Ge:
    return sign >= 0;
  }
  return false;
}

bool appendCompare(Row &row, int64_t length, const Piece &a, const Piece &b, CompareDirection direction) {
  auto add = [&](int64_t count, int sign) { return append(row, count, holds(direction, sign), 0); };
  if (std::isnan(a.first) || std::isnan(b.first))
    return append(row, length, direction == CompareDirection::Ne, 0);
  if (a.slope == b.slope)
    return add(length, a.first < b.first ? -1 : a.first > b.first);
  if (!std::isfinite(a.first) || !std::isfinite(b.first))
    return add(length, a.first < b.first ? -1 : 1);
  // The difference goes one way: all of one sign, then perhaps one zero, then all of the other.
  const bool rises = a.slope > b.slope;
  auto signAt = [&](int64_t offset) {
    const double x = a.at(offset), y = b.at(offset);
    return x < y ? -1 : x > y ? 1 : 0;
  };
  auto firstNot = [&](auto isBefore) {
    int64_t low = 0, high = length;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (isBefore(signAt(middle)))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  const int64_t zero = firstNot([&](int sign) { return rises ? sign < 0 : sign > 0; });
  const int64_t after = firstNot([&](int sign) { return rises ? sign <= 0 : sign >= 0; });
  return add(zero, rises ? -1 : 1) && add(after - zero, 0) && add(length - after, rises ? 1 : -1);
}

bool appendMax(Row &row, int64_t length, const Piece &a, const Piece &b) {
  Row larger;
  if (!appendCompare(larger, length, a, b, CompareDirection::Ge))
    return false;
  int64_t begin = 0;
  for (const Piece &piece : larger) {
    const Piece &chosen = piece.first != 0 ? a : b;
    if (!append(row, piece.end - begin, chosen.at(begin), chosen.slope))
      return false;
    begin = piece.end;
  }
  return true;
}

bool appendAs(Row &row, int64_t length, double first, double slope, Type type) {
  const Piece piece{length, first, length > 1 ? slope : 0};
  if (type.isInteger(1) || (piece.slope == 0 && isa<FloatType>(type)))
    return append(row, length, roundedTo(first, type), piece.slope);
  // Larger integers would come back as others, and floats would round each in its own way.
  const double most = std::max(std::abs(first), std::abs(piece.at(length - 1)));
  return isWhole(most) && holdsWhole(type, most) && append(row, length, first, piece.slope);
}

bool appendArithmetic(Row &row, int64_t length, const Piece &a, const Piece &b, Operation *op, Type type) {
  if ((a.slope != 0 && !std::isfinite(b.first)) || (b.slope != 0 && !std::isfinite(a.first)))
    return false;
  if (isa<AddOp>(op))
    return appendAs(row, length, a.first + b.first, a.slope + b.slope, type);
  if (isa<SubOp>(op))
    return appendAs(row, length, a.first - b.first, a.slope - b.slope, type);
  if (a.slope != 0 && b.slope != 0)
    return false;
  return appendAs(row, length, a.first * b.first, a.slope != 0 ? a.slope * b.first : b.slope * a.first, type);
}

} // namespace tessera::simplify
