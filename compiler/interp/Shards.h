//===- Shards.h - global tensors and their parts on the ranks ---*- C++ -*-===//

#ifndef TESSERA_COMPILER_INTERP_SHARDS_H
#define TESSERA_COMPILER_INTERP_SHARDS_H

#include "compiler/dialect/dist/Dist.h"
#include "compiler/interp/Tensor.h"

namespace tessera::interp {

/// `size` slices of `whole` along `dim`, from `start` on.
Tensor extractPart(const Tensor &whole, int64_t dim, int64_t start, int64_t size);
/// Overwrites the slices of `whole` along `dim` from `start` on with `part`.
void copyPartInto(Tensor &whole, const Tensor &part, int64_t dim, int64_t start);

/// The ranks that differ only in their position on `axes`, ordered by it: the first axis is the major one.
std::vector<llvm::SmallVector<int64_t>> groupsOf(dist::MeshAttr mesh, mlir::ArrayAttr axes);
/// Position of `rank` among the parts that `axes` (major first) make.
int64_t partOf(dist::MeshAttr mesh, mlir::ArrayAttr axes, int64_t rank);

/// total = total + next, elementwise, or the larger or smaller of the two: NaN where either is, and 0 is above -0.
void combineInto(Tensor &total, const Tensor &next, dist::ReductionKind kind);

/// Each rank's part of a global tensor. Over unreduced axes the first rank holds the value and the others zero; of a
/// maximum or minimum all hold the value.
/// Fails (with `error()`) if a dimension does not divide.
mlir::FailureOr<std::vector<Tensor>> split(const Tensor &global, dist::ShardingAttr sharding, dist::MeshAttr mesh,
                                           llvm::function_ref<mlir::InFlightDiagnostic()> error);

/// The global tensor that the ranks hold: parts are joined, unreduced parts reduced, and copies must be equal bit by
/// bit.
mlir::FailureOr<Tensor> join(llvm::ArrayRef<Tensor> locals, mlir::RankedTensorType globalType,
                             dist::ShardingAttr sharding, dist::MeshAttr mesh,
                             llvm::function_ref<mlir::InFlightDiagnostic()> error);

} // namespace tessera::interp

#endif // TESSERA_COMPILER_INTERP_SHARDS_H
