//===- ParameterPart.h - which part of a parameter a segment is -------------===//
//
// Model axes of a mesh split one dimension of a parameter into equal parts. A unit then lists the parts, each as a
// segment of its own.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_PARAMETERPART_H
#define TESSERA_RUNTIME_ARTIFACT_PARAMETERPART_H

#include "runtime/artifact/artifact_generated.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera {

/// Part `index` of `count` equal ones of dimension `dim`; of one part, the whole, and `dim` is -1.
struct ParameterPart {
  int64_t dim = -1, count = 1, index = 0;

  /// Whether a parameter of this shape has such a part.
  bool fits(std::span<const int64_t> shape) const;

  friend bool operator==(const ParameterPart &, const ParameterPart &) = default;
};

/// A part, and the shape of the whole parameter.
struct ShapedPart {
  std::vector<int64_t> shape;
  ParameterPart part;
};

ShapedPart partOf(const artifact::Segment &segment);

/// What keeps parts that go by one name from being a parameter, to be said of it: "appears twice". Empty: they are all
/// of its parts. There is at least one, and each fits its shape.
std::string checkParts(const std::vector<ShapedPart> &parts);

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_PARAMETERPART_H
