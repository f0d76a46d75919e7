//===- Spatial.h - attributes of convolutions and poolings ------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_ONNX_SPATIAL_H
#define TESSERA_FRONTENDS_ONNX_SPATIAL_H

#include "frontends/common/Window.h"
#include "frontends/onnx/Node.h"

namespace tessera::onnx_import {

/// Values of an attribute for `count` spatial dimensions, 1 by default; nullopt if one is out of (0, kMaxSpatial].
std::optional<llvm::SmallVector<int64_t, 3>> spatialAttr(Node &n, llvm::StringRef name, int64_t count);
/// Reads kernel, strides, dilations and `pads` of a node whose input 0 is [N, C, spatial…]; pads stay 0 if there are
/// none. False if the node failed.
bool readWindowShape(Node &n, llvm::ArrayRef<int64_t> kernel, Window &w);
/// The window of a convolution or pooling, with its padding and output.
bool readWindow(Node &n, llvm::ArrayRef<int64_t> kernel, Window &w);

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_SPATIAL_H
