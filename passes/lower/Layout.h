//===- Layout.h - where the elements of a tensor lie ------------*- C++ -*-===//
//
// The strided layouts that values have inside an allocation, and how the layout ops of the train dialect act on them.
// Everything is in elements.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_LAYOUT_H
#define TESSERA_PASSES_LOWER_LAYOUT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace tessera::lower {

struct Layout {
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<int64_t> strides;
  int64_t offset = 0;
  /// Added per iteration of the enclosing loop.
  int64_t iterationStride = 0;
  /// Added per position of the rank in its group over `rankAxes`.
  int64_t rankStride = 0;
  mlir::ArrayAttr rankAxes;

  static Layout contiguous(llvm::ArrayRef<int64_t> shape);

  int64_t numElements() const;
  /// Row-major without gaps (dimensions of size 1 do not count).
  bool isContiguous() const;
  /// Stride 1 in `dim`, or only one element there.
  bool isUnit(int64_t dim) const { return shape[dim] == 1 || strides[dim] == 1; }

  /// The same elements in row-major order under another shape; nothing if that is no strided view.
  std::optional<Layout> reshape(llvm::ArrayRef<int64_t> newShape) const;
  /// Dimension `i` of the result is dimension `permutation[i]`.
  Layout transpose(llvm::ArrayRef<int64_t> permutation) const;
  /// The layout whose transpose by `permutation` is this one.
  Layout transposeInverse(llvm::ArrayRef<int64_t> permutation) const;
  Layout slice(llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> limits, llvm::ArrayRef<int64_t> steps) const;
  /// The part of size `size` that begins at `start` along `dim`.
  Layout part(int64_t dim, int64_t start, int64_t size) const;
  /// The part along `dim` of the rank's position in a group of `ranks`; nothing if the layout depends on the rank
  /// already.
  std::optional<Layout> rankPart(int64_t dim, int64_t ranks, mlir::ArrayAttr axes) const;
  /// Element `i` of dimension 0 in iteration `i`; nothing if the layout depends on the iteration already.
  std::optional<Layout> iterationPart() const;

  bool operator==(const Layout &other) const = default;
};

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_LAYOUT_H
