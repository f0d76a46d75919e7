//===- Window.h - windows of convolutions and poolings ----------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_WINDOW_H
#define TESSERA_FRONTENDS_COMMON_WINDOW_H

#include "frontends/common/Call.h"

namespace tessera::frontend {

/// A window that moves over one to three spatial dimensions, one value for each.
struct Window {
  llvm::SmallVector<int64_t, 3> input, kernel, strides, dilations, low, high, output;

  size_t rank() const { return kernel.size(); }
  int64_t extent(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  /// How far windows of dimension `d` reach, counted from the start of the padding.
  int64_t reach(size_t d) const { return (output[d] - 1) * strides[d] + extent(d); }
};

inline constexpr int64_t kMaxSpatial = int64_t{1} << 24;

/// Checks the window of a call over an input of these spatial sizes, which it fills in; kernel, strides, dilations and
/// padding have one value for each of them. False if the call failed.
bool checkWindow(Call &n, llvm::ArrayRef<int64_t> input, Window &w);
/// Counts the windows of dimension `d`; with `ceilMode` there is one more where elements are left, unless it would
/// start in the padding at the end. False if the call failed.
bool countWindows(Call &n, Window &w, size_t d, bool ceilMode);
/// The elements that element `offset` of each window of dimension `d` of `x` is; `x` is padded already, and has the
/// dimension at `axis`.
mlir::Value windowSlice(train::Build &b, mlir::Value x, int64_t axis, const Window &w, size_t d, int64_t offset);
/// The reverse: `x` holds the elements of each window of dimension `d` along `elements` and the windows along `axis`.
/// `elements` disappears and `axis` becomes the input's dimension, each element the sum of those that stand for it.
mlir::Value foldWindows(train::Build &b, mlir::Value x, int64_t elements, int64_t axis, const Window &w, size_t d);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_WINDOW_H
