//===- StridedMap.cpp - maps between strided sets of integers -------------===//
//
// See StridedMap.h. Both operations compare the outermost dimensions of two maps: those of equal stride row by row,
// with a shift; otherwise the dimension of the smaller stride is cut into the rows of the larger. Rows that are cut
// alike are treated as one. Where one stride is no multiple of the other, rows are treated one at a time.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/StridedMap.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace tessera::lower;
using llvm::ArrayRef;
using llvm::divideCeilSigned;
using llvm::divideFloorSigned;

using Dim = StridedMap::Dim;

/// Distance from the first to the last input of some dimensions.
static int64_t spanOf(ArrayRef<Dim> dims) {
  int64_t span = 0;
  for (const Dim &dim : dims)
    span += (dim.size - 1) * dim.in;
  return span;
}

StridedMap StridedMap::get(int64_t in, int64_t out, ArrayRef<Dim> dims) {
  StridedMap map{in, out, {}};
  for (const Dim &dim : dims)
    if (dim.size != 1)
      map.dims.push_back(dim);
  llvm::stable_sort(map.dims, [](const Dim &a, const Dim &b) { return a.in > b.in; });
  for (size_t i = map.dims.size(); i-- > 1;) {
    Dim &outer = map.dims[i - 1], inner = map.dims[i];
    if (outer.in != inner.in * inner.size || outer.out != inner.out * inner.size)
      continue;
    outer = {outer.size * inner.size, inner.in, inner.out};
    map.dims.erase(map.dims.begin() + i);
  }
  return map;
}

StridedMap StridedMap::identity(int64_t size) { return get(0, 0, {{size, 1, 1}}); }

int64_t StridedMap::size() const {
  int64_t size = 1;
  for (const Dim &dim : dims)
    size *= dim.size;
  return size;
}

int64_t StridedMap::lastIn() const { return in + spanOf(dims); }

bool StridedMap::isNested() const {
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i].in <= spanOf(ArrayRef(dims).drop_front(i + 1)))
      return false;
  return true;
}

StridedMap StridedMap::inverse() const {
  llvm::SmallVector<Dim, 4> swapped;
  for (const Dim &dim : dims)
    swapped.push_back({dim.size, dim.out, dim.in});
  return get(out, in, swapped);
}

StridedMap StridedMap::domain() const {
  llvm::SmallVector<Dim, 4> inputs;
  for (const Dim &dim : dims)
    inputs.push_back({dim.size, dim.in, 0});
  return get(in, 0, inputs);
}

namespace {

/// A map whose outermost dimension is looked at on its own.
struct Rows {
  explicit Rows(const StridedMap &map)
      : map(map), top(map.dims.empty() ? Dim{1, 0, 0} : map.dims.front()),
        inner(ArrayRef<Dim>(map.dims).drop_front(map.dims.empty() ? 0 : 1)), innerSpan(spanOf(inner)) {}

  /// `count` rows from `first` on.
  StridedMap rows(int64_t first, int64_t count) const {
    StridedMap part{map.in + first * top.in, map.out + first * top.out, {}};
    if (count != 1)
      part.dims.push_back({count, top.in, top.out});
    part.dims.append(inner.begin(), inner.end());
    return part;
  }
  StridedMap row(int64_t number) const { return rows(number, 1); }

  const StridedMap &map;
  Dim top;
  ArrayRef<Dim> inner;
  int64_t innerSpan;
};

/// Which rows of `fine` lie in the reach of each row of `coarse`, whose stride is a multiple: of row `i` those from
/// `first + i * step` to `last + i * step`, as far as there are such.
struct Windows {
  Windows(const Rows &coarse, const Rows &fine) : step(coarse.top.in / fine.top.in) {
    int64_t distance = coarse.map.in - fine.map.in;
    first = divideCeilSigned(distance - fine.innerSpan, fine.top.in);
    last = divideFloorSigned(distance + coarse.innerSpan, fine.top.in);
    // Coarse rows that reach any fine row, and those whose windows are complete.
    begin = std::max<int64_t>(0, divideCeilSigned(-last, step));
    end = std::min(coarse.top.size, divideFloorSigned(fine.top.size - 1 - first, step) + 1);
    beginWhole = std::max<int64_t>(0, divideCeilSigned(-first, step));
    endWhole = std::min(coarse.top.size, divideFloorSigned(fine.top.size - 1 - last, step) + 1);
    if (first > last)
      end = begin = 0;
    if (beginWhole >= endWhole || begin >= end)
      beginWhole = endWhole = begin;
  }
  /// The part of `fine` that row `i` can reach.
  StridedMap reach(const Rows &fine, int64_t i) const {
    int64_t from = std::max<int64_t>(0, first + i * step), to = std::min(fine.top.size - 1, last + i * step);
    return fine.rows(from, to - from + 1);
  }

  int64_t step, first, last, begin, end, beginWhole, endWhole;
};

/// Rows of `coarse` that may have an input of `fine`, where windows do not repeat.
std::pair<int64_t, int64_t> rowsNear(const Rows &coarse, const StridedMap &fine) {
  int64_t begin = divideCeilSigned(fine.in - coarse.innerSpan - coarse.map.in, coarse.top.in);
  int64_t end = divideFloorSigned(fine.lastIn() - coarse.map.in, coarse.top.in) + 1;
  begin = std::max<int64_t>(begin, 0);
  return {begin, std::max(begin, std::min(end, coarse.top.size))};
}

bool repeats(const Rows &coarse, const Rows &fine) { return fine.top.in != 0 && coarse.top.in % fine.top.in == 0; }

// --- Meeting -------------------------------------------------------------------

/// Collects what two maps have in common; `around` are the dimensions of rows that are treated as one.
class Meeting {
public:
  explicit Meeting(int64_t &effort) : effort(effort) {}

  void run(const StridedMap &a, const StridedMap &b) {
    if (--effort < 0)
      return;
    if (a.lastIn() < b.in || b.lastIn() < a.in)
      return;
    if (a.dims.empty() && b.dims.empty()) {
      result.push_back(StridedMap::get(a.out, b.out, around));
      return;
    }
    Rows left(a), right(b);
    if (left.top.in == right.top.in)
      alike(left, right);
    else if (left.top.in > right.top.in)
      cut(left, right, /*swapped=*/false);
    else
      cut(right, left, /*swapped=*/true);
  }

  StridedMaps result;

private:
  void within(Dim dim, const StridedMap &a, const StridedMap &b) {
    around.push_back(dim);
    run(a, b);
    around.pop_back();
  }

  void alike(const Rows &a, const Rows &b) {
    const int64_t stride = a.top.in, distance = b.map.in - a.map.in;
    const int64_t most = divideFloorSigned(distance + b.innerSpan, stride);
    for (int64_t shift = divideCeilSigned(distance - a.innerSpan, stride); shift <= most; ++shift) {
      int64_t begin = std::max<int64_t>(0, shift), end = std::min(a.top.size, b.top.size + shift);
      if (begin < end)
        within({end - begin, a.top.out, b.top.out}, a.row(begin), b.row(begin - shift));
    }
  }

  void cut(const Rows &coarse, const Rows &fine, bool swapped) {
    auto pair = [&](int64_t row, const StridedMap &part) {
      swapped ? run(part, coarse.row(row)) : run(coarse.row(row), part);
    };
    if (!repeats(coarse, fine)) {
      auto [begin, end] = rowsNear(coarse, fine.map);
      for (int64_t row = begin; row < end && effort >= 0; ++row)
        pair(row, fine.map);
      return;
    }
    Windows windows(coarse, fine);
    for (int64_t row = windows.begin; row < windows.end && effort >= 0; ++row) {
      if (row == windows.beginWhole && windows.beginWhole < windows.endWhole) {
        int64_t count = windows.endWhole - windows.beginWhole, ofFine = windows.step * fine.top.out;
        around.push_back(swapped ? Dim{count, ofFine, coarse.top.out} : Dim{count, coarse.top.out, ofFine});
        pair(row, windows.reach(fine, row));
        around.pop_back();
        row = windows.endWhole - 1;
      } else {
        pair(row, windows.reach(fine, row));
      }
    }
  }

  int64_t &effort;
  llvm::SmallVector<Dim, 4> around;
};

// --- Subtraction ---------------------------------------------------------------

/// Appends `pieces`, each `count` times at a distance of `in`.
void append(StridedMaps &result, StridedMaps pieces, Dim dim) {
  for (StridedMap &piece : pieces) {
    if (dim.size > 1)
      piece.dims.insert(piece.dims.begin(), dim);
    result.push_back(StridedMap::get(piece.in, piece.out, piece.dims));
  }
}

StridedMaps subtractAll(StridedMaps pieces, ArrayRef<StridedMap> others, int64_t &effort) {
  for (const StridedMap &other : others) {
    StridedMaps left;
    for (const StridedMap &piece : pieces)
      left.append(subtract(piece, other, effort));
    pieces = std::move(left);
  }
  return pieces;
}

StridedMaps subtractAlike(const Rows &a, const Rows &b, int64_t &effort) {
  const int64_t stride = a.top.in, distance = b.map.in - a.map.in;
  const int64_t least = divideCeilSigned(distance - a.innerSpan, stride),
                most = divideFloorSigned(distance + b.innerSpan, stride);
  // Rows between two cuts meet the same rows of `b`, each with its shift.
  llvm::SmallVector<int64_t> cuts{0, a.top.size};
  for (int64_t shift = least; shift <= most; ++shift)
    for (int64_t cut : {shift, b.top.size + shift})
      if (cut > 0 && cut < a.top.size)
        cuts.push_back(cut);
  llvm::sort(cuts);
  StridedMaps result;
  for (auto [begin, end] : llvm::zip(cuts, llvm::drop_begin(cuts))) {
    if (begin == end)
      continue;
    StridedMaps others;
    for (int64_t shift = least; shift <= most; ++shift)
      if (begin >= shift && begin - shift < b.top.size)
        others.push_back(b.row(begin - shift));
    append(result, subtractAll({a.row(begin)}, others, effort), {end - begin, a.top.in, a.top.out});
  }
  return result;
}

/// Rows of the map are larger than those of what is taken away.
StridedMaps subtractFine(const Rows &a, const Rows &b, int64_t &effort) {
  StridedMaps result;
  auto keep = [&](int64_t begin, int64_t end) {
    if (begin < end)
      append(result, {a.rows(begin, end - begin)}, {1, 0, 0});
  };
  if (!repeats(a, b)) {
    auto [begin, end] = rowsNear(a, b.map);
    keep(0, begin);
    for (int64_t row = begin; row < end && effort >= 0; ++row)
      append(result, subtract(a.row(row), b.map, effort), {1, 0, 0});
    keep(end, a.top.size);
    return result;
  }
  Windows windows(a, b);
  if (windows.begin >= windows.end)
    return {a.map};
  keep(0, windows.begin);
  for (int64_t row = windows.begin; row < windows.end && effort >= 0; ++row) {
    bool whole = row == windows.beginWhole && windows.beginWhole < windows.endWhole;
    int64_t count = whole ? windows.endWhole - windows.beginWhole : 1;
    append(result, subtract(a.row(row), windows.reach(b, row), effort), {count, a.top.in, a.top.out});
    row += count - 1;
  }
  keep(windows.end, a.top.size);
  return result;
}

/// Rows of what is taken away are larger than those of the map.
StridedMaps subtractCoarse(const Rows &a, const Rows &b, int64_t &effort) {
  auto oneByOne = [&] {
    StridedMaps others;
    auto [begin, end] = rowsNear(b, a.map);
    effort -= end - begin;
    for (int64_t row = begin; row < end && effort >= 0; ++row)
      others.push_back(b.row(row));
    return subtractAll({a.map}, others, effort);
  };
  if (!repeats(b, a))
    return oneByOne();
  Windows windows(b, a);
  const int64_t length = windows.last - windows.first + 1, count = windows.endWhole - windows.beginWhole;
  if (count < 2 || length > windows.step)
    return oneByOne();
  StridedMaps result, others;
  const Dim dim{count, b.top.in, windows.step * a.top.out};
  const int64_t from = windows.first + windows.beginWhole * windows.step,
                to = windows.last + (windows.endWhole - 1) * windows.step + 1;
  append(result, subtract(a.rows(from, length), b.row(windows.beginWhole), effort), dim);
  if (length < windows.step)
    append(result, {a.rows(from + length, windows.step - length)}, {count - 1, dim.in, dim.out});
  // What lies around the complete windows, less the rows whose windows are cut off.
  for (int64_t row = windows.begin; row < windows.end; ++row)
    if (row < windows.beginWhole || row >= windows.endWhole)
      others.push_back(b.row(row));
  if (from > 0)
    result.append(subtractAll({a.rows(0, from)}, others, effort));
  if (to < a.top.size)
    result.append(subtractAll({a.rows(to, a.top.size - to)}, others, effort));
  return result;
}

} // namespace

StridedMaps tessera::lower::meet(const StridedMap &a, const StridedMap &b, int64_t &effort) {
  Meeting meeting(effort);
  meeting.run(a, b);
  return std::move(meeting.result);
}

StridedMaps tessera::lower::meet(const StridedMap &a, const StridedMap &b) {
  int64_t effort = INT64_MAX;
  return meet(a, b, effort);
}

StridedMaps tessera::lower::subtract(const StridedMap &map, const StridedMap &other, int64_t &effort) {
  if (--effort < 0)
    return {};
  if (map.lastIn() < other.in || other.lastIn() < map.in)
    return {map};
  if (map.dims.empty() && other.dims.empty())
    return {};
  Rows a(map), b(other);
  if (a.top.in == b.top.in)
    return subtractAlike(a, b, effort);
  if (a.top.in > b.top.in)
    return subtractFine(a, b, effort);
  return subtractCoarse(a, b, effort);
}

StridedMaps tessera::lower::subtract(const StridedMap &map, const StridedMap &other) {
  int64_t effort = INT64_MAX;
  return subtract(map, other, effort);
}
