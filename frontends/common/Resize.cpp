//===- Resize.cpp - interpolation along one dimension -----------------------===//
//
// A product with a constant matrix of weights. The formulas are those of the
// ONNX specification (Resize, opset 19) and of its reference implementation,
// which are PyTorch's, too.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Resize.h"

#include "frontends/common/Axis.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

/// The weight of an element at this distance.
double Interpolation::kernel(double distance) const {
  const double x = std::abs(distance), a = cubic;
  if (!isCubic)
    return std::max(0.0, 1 - x);
  // Keys, Cubic convolution interpolation for digital image processing, 1981.
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Adds the weights of the elements around `x` to a row of the matrix.
void Interpolation::addWeights(double x, double scale, MutableArrayRef<double> row) const {
  const double shrink = antialias ? std::min(scale, 1.0) : 1.0, reach = isCubic ? 2 : 1;
  const double base = std::ceil(x) - 1;
  const int64_t first = static_cast<int64_t>(std::floor(-reach / shrink)) + 1, size = static_cast<int64_t>(row.size());
  double total = 0;
  SmallVector<std::pair<int64_t, double>> weights;
  for (int64_t offset = first; offset <= 1 - first; ++offset) {
    const double weight = kernel((base + static_cast<double>(offset) - x) * shrink);
    const int64_t at = static_cast<int64_t>(base) + offset;
    if (excludeOutside && (at < 0 || at >= size))
      continue;
    weights.emplace_back(std::clamp<int64_t>(at, 0, size - 1), weight);
    total += weight;
  }
  // Without antialiasing and exclusion weights add up to 1 but for rounding.
  for (auto [at, weight] : weights)
    row[at] += excludeOutside || antialias ? weight / total : weight;
}

FailureOr<Value> Interpolation::along(Call &n, Value x, int64_t axis, ArrayRef<double> positions, double scale) const {
  const int64_t from = shapeOf(x)[axis], to = static_cast<int64_t>(positions.size());
  if (to * from > kMaxConstantElements)
    return n.fail("dimension " + Twine(axis) + " is too large to be interpolated");
  std::vector<double> matrix(to * from);
  for (auto [at, position] : llvm::enumerate(positions))
    addWeights(position, scale, MutableArrayRef<double>(matrix).slice(at * from, from));
  return multiplyAlong(n.b, x, axis, matrix);
}

} // namespace tessera::frontend
