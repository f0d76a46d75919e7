//===- ReductionKind.h - what ranks make of their values --------*- C++ -*-===//
//
// The enumeration alone, for those who need no dialect.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_DIST_REDUCTIONKIND_H
#define TESSERA_COMPILER_DIALECT_DIST_REDUCTIONKIND_H

#include "mlir/IR/OpImplementation.h"

#include "compiler/dialect/dist/DistEnums.h.inc"

namespace tessera::dist {

/// Combining a value with itself gives the value: it is its own part of the reduction.
inline bool isIdempotent(ReductionKind kind) { return kind != ReductionKind::Sum; }

} // namespace tessera::dist

#endif // TESSERA_COMPILER_DIALECT_DIST_REDUCTIONKIND_H
