//===- Window.h - windows of convolutions and poolings ----------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_ONNX_WINDOW_H
#define TESSERA_FRONTENDS_ONNX_WINDOW_H

#include "frontends/onnx/Node.h"

namespace tessera::onnx_import {

/// A window that moves over one to three spatial dimensions, one value for each.
struct Window {
  llvm::SmallVector<int64_t, 3> input, kernel, strides, dilations, low, high, output;

  size_t rank() const { return kernel.size(); }
  int64_t extent(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  /// How far windows of dimension `d` reach, counted from the start of the padding.
  int64_t reach(size_t d) const { return (output[d] - 1) * strides[d] + extent(d); }
};

inline constexpr int64_t kMaxSpatial = int64_t{1} << 24;

/// Values of an attribute for `count` spatial dimensions, 1 by default; nullopt if one is out of (0, kMaxSpatial].
std::optional<llvm::SmallVector<int64_t, 3>> spatialAttr(Node &n, llvm::StringRef name, int64_t count);
/// Reads kernel, strides, dilations and `pads` of a node whose input 0 is [N, C, spatial…]; pads stay 0 if there are
/// none. False if the node failed.
bool readWindowShape(Node &n, llvm::ArrayRef<int64_t> kernel, Window &w);
/// The window of a convolution or pooling, with its padding and output.
bool readWindow(Node &n, llvm::ArrayRef<int64_t> kernel, Window &w);
/// The elements that element `offset` of each window of dimension `d` of `x` is; `x` is padded already, and has the
/// dimension at `axis`.
mlir::Value windowSlice(train::Build &b, mlir::Value x, int64_t axis, const Window &w, size_t d, int64_t offset);
/// The reverse: `x` holds the elements of each window of dimension `d` along `elements` and the windows along `axis`.
/// `elements` disappears and `axis` becomes the input's dimension, each element the sum of those that stand for it.
mlir::Value foldWindows(train::Build &b, mlir::Value x, int64_t elements, int64_t axis, const Window &w, size_t d);

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_WINDOW_H
