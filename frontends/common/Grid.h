//===- Grid.h - images read at computed positions --------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_GRID_H
#define TESSERA_FRONTENDS_COMMON_GRID_H

#include "frontends/common/Call.h"

namespace tessera::frontend {

enum class GridMode { Linear, Nearest, Cubic };
/// What is outside of an image.
enum class GridPadding { Zeros, Border, Reflection };
struct GridOptions {
  GridMode mode = GridMode::Linear;
  GridPadding padding = GridPadding::Zeros;
  bool alignCorners = false; ///< whether -1 and 1 are the centres of the outermost elements, not their outer edges
};

/// Whether images, input 0 of a call, and grids, input 1, fit each other.
mlir::LogicalResult checkGrid(Call &n);
/// The elements of images [N, C, spatial…] at the positions of grids [N, result's spatial…, dimensions], the last
/// dimension's first, which go from -1 to 1.
mlir::Value gridSample(train::Build &b, mlir::Value image, mlir::Value grid, const GridOptions &options);
/// The grids that matrices, input 0 of a call, [N, dimensions, dimensions + 1], make of regular ones for images of the
/// sizes [N, C, spatial…]. `matrices` is the input in the type to compute in. Fails with the call's reason.
mlir::FailureOr<mlir::Value> affineGrid(Call &n, mlir::Value matrices, llvm::ArrayRef<int64_t> size, bool alignCorners);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_GRID_H
