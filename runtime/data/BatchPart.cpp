//===- BatchPart.cpp - what a process reads of a batch ----------------------===//

#include "runtime/data/BatchPart.h"

#include <algorithm>

namespace tessera {

ElementRanges unionOf(ElementRanges ranges) {
  std::sort(ranges.begin(), ranges.end(), [](ElementRange a, ElementRange b) { return a.begin < b.begin; });
  ElementRanges merged;
  for (ElementRange range : ranges)
    if (range.size() <= 0)
      continue;
    else if (!merged.empty() && range.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, range.end);
    else
      merged.push_back(range);
  return merged;
}

/// The places of a dimension that a rank has.
static ElementRanges rangesOf(const DimPart &part, int64_t size) {
  if (!part.isZigzag) {
    const int64_t here = size / part.parts;
    return {{part.position * here, (part.position + 1) * here}};
  }
  const int64_t here = size / (2 * part.parts), last = 2 * part.parts - 1 - part.position;
  return unionOf({{part.position * here, (part.position + 1) * here}, {last * here, (last + 1) * here}});
}

ElementRanges rankElements(const BatchSpec &spec, const std::vector<DimPart> &parts) {
  // From the innermost dimension outwards: of one more dimension, the ranges inside of each of its places; of all that
  // is inside, ranges of places.
  ElementRanges ranges = {{0, 1}};
  int64_t inside = 1;
  for (size_t dim = spec.dims.size(); dim-- > 0;) {
    if (spec.dims[dim] == artifact::DimRole::Sample || spec.dims[dim] == artifact::DimRole::MicroBatch)
      continue;
    const int64_t size = spec.globalShape[dim];
    ElementRanges places = {{0, size}};
    for (const DimPart &part : parts)
      if (part.dim == static_cast<int64_t>(dim))
        places = rangesOf(part, size);
    ElementRanges wider;
    const bool isWhole = ranges == ElementRanges{{0, inside}};
    for (ElementRange range : places)
      for (int64_t place = range.begin; place < range.end; ++place) {
        if (isWhole) {
          wider.push_back({range.begin * inside, range.end * inside});
          break;
        }
        for (ElementRange inner : ranges)
          wider.push_back({place * inside + inner.begin, place * inside + inner.end});
      }
    ranges = unionOf(std::move(wider));
    inside *= size;
  }
  return ranges;
}

void markRankRows(const BatchSpec &spec, const std::vector<DimPart> &parts, std::vector<bool> &rows) {
  if (spec.isShared())
    return;
  ElementRanges places = {{0, spec.batch()}};
  for (const DimPart &part : parts)
    if (part.dim == spec.sampleDim())
      places = rangesOf(part, spec.batch());
  rows.resize(spec.rows());
  for (int64_t i = 0; i < spec.accumulate(); ++i)
    for (ElementRange range : places)
      for (int64_t row = range.begin; row < range.end; ++row)
        rows[i * spec.batch() + row] = true;
}

BatchPart partOfRanks(const Artifact &artifact, const std::vector<BatchSpec> &specs, std::span<const int> ranks,
                      size_t program) {
  BatchPart part;
  if (ranks.size() == static_cast<size_t>(artifact.numRanks()))
    return part;
  for (size_t tensor = 0; tensor < specs.size(); ++tensor) {
    ElementRanges elements;
    for (int rank : ranks) {
      const std::vector<DimPart> parts = rankParts(artifact, tensor, rank, program);
      markRankRows(specs[tensor], parts, part.rows);
      // Whether equal elements lie side by side shows in all of them.
      const ElementRanges more = rankElements(specs[tensor], specs[tensor].hasRuns ? std::vector<DimPart>() : parts);
      elements.insert(elements.end(), more.begin(), more.end());
    }
    part.elements.push_back(unionOf(std::move(elements)));
  }
  return part;
}

} // namespace tessera
