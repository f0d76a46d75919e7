//===- Convolution.h - convolutions of one to three dimensions --*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_CONVOLUTION_H
#define TESSERA_FRONTENDS_COMMON_CONVOLUTION_H

#include "frontends/common/Window.h"

namespace tessera::frontend {

/// The convolution of `x`, [N, C, spatial…], with a filter [O, C / groups, spatial…].
mlir::Value convolve(train::Build &b, mlir::Value x, mlir::Value filter, const Window &w, int64_t groups);
/// The gradient of a convolution with respect to its input, for the gradient `y` of its result: `w` is the
/// convolution's window. `extra`: rows at the end that no window reaches.
mlir::Value convolveTransposed(train::Build &b, mlir::Value y, mlir::Value filter, const Window &w,
                               llvm::ArrayRef<int64_t> extra, int64_t groups);

/// How far the windows of a transposed convolution reach along dimension `d`, with `after` more elements: its size
/// before padding takes some of it. `w` has the sizes of the call's input as `output`. Nothing if the call failed.
std::optional<int64_t> transposedReach(Call &n, const Window &w, size_t d, int64_t after);
/// Fills in the result's size as `input`, and `extra`, the elements at its end that no window reaches. False if the
/// call failed.
bool finishTransposed(Call &n, Window &w, size_t d, int64_t reach, int64_t after, int64_t &extra);

/// Whether filters, input 1 of a call, have a rank that fits input 0 and is supported; to be asked before the window.
mlir::LogicalResult checkFilterRank(Call &n);
/// Whether they have the types and the sizes for an input of so many channels.
mlir::LogicalResult checkFilter(Call &n, int64_t channels, int64_t groups);
/// Sets the result [N, C, spatial…] of a call, with the bias, input 2, if there is one.
mlir::LogicalResult setWithBias(Call &n, mlir::Value result);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_CONVOLUTION_H
