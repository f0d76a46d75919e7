//===- ParameterSegment.h - where a parameter lies in a unit -----------------===//
//
// A unit holds a parameter as a whole, or one of the equal parts that the model
// axes of a mesh split one of its dimensions in. Either way some runs of elements
// of the unit are runs of elements of the parameter.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_PARAMETERSEGMENT_H
#define TESSERA_RUNTIME_STATE_PARAMETERSEGMENT_H

#include "runtime/artifact/ParameterPart.h"
#include "runtime/artifact/Reader.h"
#include "runtime/base/Status.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// Constant: a. Normal: mean a, deviation b. Uniform: [a, b).
struct InitSpec {
  artifact::InitKind kind = artifact::InitKind::Constant;
  double a = 0, b = 0;
  bool isAsked = false; ///< By the user: it counts more than a value in the model file.
};

/// `count` elements from `inUnit` of a unit on, which are those from `inParameter` of a parameter on, both in row-major
/// order.
struct ElementRun {
  int64_t inUnit, inParameter, count;
};

/// A parameter inside a unit, or a part of one.
struct ParameterSegment {
  std::string name;
  std::vector<int64_t> shape; ///< Of the whole parameter.
  int64_t offset = 0;         ///< Elements from the start of the unit.
  int64_t elements = 0;       ///< In the unit.
  std::optional<InitSpec> init;
  ParameterPart part;

  int64_t end() const { return offset + elements; }
  int64_t parameterElements() const { return elements * part.count; }

  using RunFunction = std::function<Status(const ElementRun &)>;
  /// Calls `fn` for the runs of the unit's elements [begin, end), which are the segment's, in their order.
  Status forEachRun(int64_t begin, int64_t end, const RunFunction &fn) const;
  /// Calls `fn` for the runs of what the segment has of the parameter's elements [first, last), in their order.
  Status forEachRunOf(int64_t first, int64_t last, const RunFunction &fn) const;

private:
  /// Elements that lie side by side in the parameter, too.
  int64_t runLength() const;
};

/// Elements of the part; nothing if the sizes are negative, their product is too large for elements of `width` bytes,
/// or the part is none of such a shape.
std::optional<int64_t> elementsOfPart(const std::vector<int64_t> &shape, const ParameterPart &part, int64_t width = 1);

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_PARAMETERSEGMENT_H
