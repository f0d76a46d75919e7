//===- Order.h - the largest, the smallest, and all in order ----*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_ORDER_H
#define TESSERA_FRONTENDS_COMMON_ORDER_H

#include "frontends/common/Axis.h"

namespace tessera::frontend {

/// Numbers in the opposite order: largest for smallest.
mlir::Value reversed(train::Build &b, mlir::Value x);
/// The index (i64) of the first of the largest or smallest elements along a dimension that is not empty and disappears.
mlir::Value argExtreme(train::Build &b, mlir::Value x, int64_t axis, bool isMin);

struct Ordered {
  mlir::Value values, indices;
};
/// The first `count` elements along a dimension in their order, and where they were (i64). Equal elements keep their
/// order.
Ordered inOrder(train::Build &b, mlir::Value x, int64_t axis, int64_t count, bool descending);

/// `combine` of each element along a dimension with all before it, which is associative and of which `neutral` changes
/// nothing: in as many steps as the size has bits.
mlir::Value scan(train::Build &b, mlir::Value x, int64_t axis, double neutral,
                 llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_ORDER_H
