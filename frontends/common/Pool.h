//===- Pool.h - poolings --------------------------------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_POOL_H
#define TESSERA_FRONTENDS_COMMON_POOL_H

#include "frontends/common/Window.h"

namespace tessera::frontend {

/// The sum or the maximum over dimensions that are whole windows, with the same rule as overWindows.
mlir::Value reduceWindows(train::Build &b, train::ReduceKind kind, mlir::Value x, llvm::ArrayRef<int64_t> dims);
/// The sum or the maximum over each window of `x`, [N, C, spatial…]; of maxima that are equal the first one counts, and
/// what is no number wins. Padding is `padValue`. Fails with the call's reason.
mlir::FailureOr<mlir::Value> overWindows(Call &n, const Window &w, mlir::Value x, train::ReduceKind kind,
                                         double padValue);
/// The maximum over each window; padding never wins.
mlir::FailureOr<mlir::Value> maxPool(Call &n, const Window &w, mlir::Value x);
/// The same, and where each maximum is among the spatial elements of its channel, counted row by row, as i64.
mlir::FailureOr<std::pair<mlir::Value, mlir::Value>> maxPoolWithPlaces(Call &n, const Window &w, mlir::Value x);
/// The mean over each window, of the elements that are in the input, or in the padded input with `countPadding`; or the
/// sum over `divisor`.
mlir::FailureOr<mlir::Value> averagePool(Call &n, const Window &w, mlir::Value x, bool countPadding,
                                         std::optional<double> divisor = std::nullopt);
/// The mean or the maximum over each of `counts` parts of the last dimensions, which are not empty: part i of n goes
/// from floor(i * size / n) to ceil((i + 1) * size / n).
mlir::FailureOr<mlir::Value> adaptivePool(Call &n, mlir::Value x, llvm::ArrayRef<int64_t> counts,
                                          train::ReduceKind kind);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_POOL_H
