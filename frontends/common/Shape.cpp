//===- Shape.cpp - axes and shapes as frameworks give them ----------------===//

#include "frontends/common/Shape.h"

#include "frontends/common/HostTensor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tessera::frontend {

std::optional<SmallVector<int64_t>> axesOf(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t axis : axes) {
    auto checked = axisOf(axis, rank);
    if (!checked)
      return std::nullopt;
    result.push_back(*checked);
  }
  llvm::sort(result);
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    return std::nullopt;
  return result;
}

std::optional<SmallVector<int64_t>> broadcastShape(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  SmallVector<int64_t> shape(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return std::nullopt;
    shape[shape.size() - 1 - i] = x == 1 ? y : x;
  }
  if (!countElements(shape))
    return std::nullopt;
  return shape;
}

std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "[";
  llvm::interleaveComma(shape, stream);
  stream << "]";
  return text;
}

} // namespace tessera::frontend
