//===- Masks.h - what masks that depend on data name ------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_MASKS_H
#define TESSERA_FRONTENDS_COMMON_MASKS_H

#include "frontends/common/Axis.h"

namespace tessera::frontend {

/// How many of a boolean mask's dimensions count: it repeats its elements along the others, which are last.
int64_t dimsOfMask(mlir::Value mask);

/// Where among the rows of a source each true element of a boolean mask, with one dimension at least, finds its own:
/// the number of true ones before it, in row-major order. 0 where the mask is false. i64, of the mask's shape.
mlir::Value placesByMask(train::Build &b, mlir::Value mask);

/// `data` with the rows of `source` [rows, trailing…], in their order, where `mask`, of the leading dimensions of
/// `data`, is true. A source that is too short is an error when the step runs; one that is too long, too, if it
/// `mustFit`.
mlir::Value placeByMask(train::Build &b, mlir::Value data, mlir::Value mask, mlir::Value source, bool mustFit);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_MASKS_H
