//===- ParameterSegment.cpp - where a parameter lies in a unit ---------------===//

#include "runtime/state/ParameterSegment.h"

#include "runtime/state/DataTypes.h"

#include <algorithm>

namespace tessera {

int64_t ParameterSegment::runLength() const {
  if (part.count == 1)
    return std::max<int64_t>(elements, 1);
  int64_t length = shape[part.dim] / part.count;
  for (size_t dim = part.dim + 1; dim < shape.size(); ++dim)
    length *= shape[dim];
  return std::max<int64_t>(length, 1);
}

Status ParameterSegment::forEachRun(int64_t begin, int64_t end, const RunFunction &fn) const {
  const int64_t length = runLength();
  while (begin < end) {
    const int64_t block = (begin - offset) / length, within = (begin - offset) % length;
    const int64_t count = std::min(end - begin, length - within);
    TESSERA_RETURN_IF_ERROR(fn({begin, (block * part.count + part.index) * length + within, count}));
    begin += count;
  }
  return Status::ok();
}

Status ParameterSegment::forEachRunOf(int64_t first, int64_t last, const RunFunction &fn) const {
  const int64_t length = runLength(), stride = length * part.count;
  for (int64_t block = first / stride; block * stride < last; ++block) {
    const int64_t start = block * stride + part.index * length;
    const int64_t from = std::max(first, start), to = std::min(last, start + length);
    if (from < to)
      TESSERA_RETURN_IF_ERROR(fn({offset + block * length + (from - start), from, to - from}));
  }
  return Status::ok();
}

std::optional<int64_t> elementsOfPart(const std::vector<int64_t> &shape, const ParameterPart &part, int64_t width) {
  const std::optional<int64_t> elements = checkedElements(shape, width);
  if (!elements || !part.fits(shape))
    return std::nullopt;
  return *elements / part.count;
}

} // namespace tessera
