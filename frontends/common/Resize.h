//===- Resize.h - interpolation along one dimension -----------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_RESIZE_H
#define TESSERA_FRONTENDS_COMMON_RESIZE_H

#include "frontends/common/Call.h"

namespace tessera::frontend {

/// How the elements around a position are weighted.
struct Interpolation {
  bool isCubic = false;
  double cubic = -0.75;
  bool excludeOutside = false; ///< elements outside do not count; else they are the outermost one
  bool antialias = false;      ///< where a dimension shrinks, what a result is made of widens

  /// The product of dimension `axis` of `x` with the weights of the elements around each position, counted in elements.
  /// `scale`: how many times as large the result is. Fails with the call's reason.
  mlir::FailureOr<mlir::Value> along(Call &n, mlir::Value x, int64_t axis, llvm::ArrayRef<double> positions,
                                     double scale) const;

private:
  double kernel(double distance) const;
  void addWeights(double x, double scale, llvm::MutableArrayRef<double> row) const;
};

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_RESIZE_H
