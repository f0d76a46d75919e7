//===- Scatter.h - writing elements by index --------------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_SCATTER_H
#define TESSERA_FRONTENDS_COMMON_SCATTER_H

#include "frontends/common/Indexing.h"

namespace tessera::frontend {

/// Fails, as there are too many indices.
mlir::LogicalResult tooManyIndices(Call &n, ScatterKind kind);
/// Whether an index occurs twice.
bool repeats(KnownIndices indices);
/// `data`, of the type of input 0, with updates[i…] written where the indices, input 1 along `axis`, say: to
/// [i… with i_axis replaced by indices[i…]]. Fails with the call's reason.
mlir::FailureOr<mlir::Value> scattered(Call &n, int64_t axis, ScatterKind kind, mlir::Value data, mlir::Value updates);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_SCATTER_H
