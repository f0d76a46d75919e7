//===- ParameterPart.cpp - which part of a parameter a segment is -----------===//

#include "runtime/artifact/ParameterPart.h"

#include <set>

namespace tessera {

bool ParameterPart::fits(std::span<const int64_t> shape) const {
  if (dim == -1)
    return count == 1 && index == 0;
  if (dim < 0)
    return false;
  return count > 1 && index >= 0 && index < count && dim < static_cast<int64_t>(shape.size()) &&
         shape[dim] % count == 0;
}

ShapedPart partOf(const artifact::Segment &segment) {
  ShapedPart made{{}, {segment.split_dim(), segment.parts(), segment.part()}};
  if (const auto *sizes = segment.shape())
    made.shape.assign(sizes->begin(), sizes->end());
  return made;
}

std::string checkParts(const std::vector<ShapedPart> &parts) {
  const ShapedPart &first = parts.front();
  std::set<int64_t> seen;
  for (const auto &[shape, part] : parts) {
    if (!seen.insert(part.index).second)
      return "appears twice";
    if (shape != first.shape || part.dim != first.part.dim || part.count != first.part.count)
      return "has parts that do not belong together";
  }
  if (static_cast<int64_t>(seen.size()) != first.part.count)
    return "has " + std::to_string(seen.size()) + " of " + std::to_string(first.part.count) + " parts";
  return "";
}

} // namespace tessera
