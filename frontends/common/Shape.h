//===- Shape.h - axes and shapes as frameworks give them --------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_SHAPE_H
#define TESSERA_FRONTENDS_COMMON_SHAPE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace tessera::frontend {

/// `axis` counted from the front, or nullopt if it is not in [-rank, rank).
inline std::optional<int64_t> axisOf(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}
/// Sorted axes without duplicates; nullopt if one is out of range or occurs twice.
std::optional<llvm::SmallVector<int64_t>> axesOf(llvm::ArrayRef<int64_t> axes, int64_t rank);
/// NumPy's common shape, or nullopt if there is none or it is too large.
std::optional<llvm::SmallVector<int64_t>> broadcastShape(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);
/// "[2, 3]", for messages.
std::string shapeText(llvm::ArrayRef<int64_t> shape);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_SHAPE_H
