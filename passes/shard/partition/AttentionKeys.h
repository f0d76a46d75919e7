//===- AttentionKeys.h - which keys local queries see -----------*- C++ -*-===//
//
// Where queries or keys are split along the sequence, what an attention says of positions (causal, a window, ranges of
// keys) becomes a range of keys for each local query.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_PARTITION_ATTENTIONKEYS_H
#define TESSERA_PASSES_SHARD_PARTITION_ATTENTIONKEYS_H

#include "compiler/cost/Flops.h"
#include "compiler/dialect/dist/CollectiveBuilder.h"
#include "compiler/dialect/train/Train.h"

namespace tessera::shard {

/// Query i sees key j only if begin[i] <= j < end[i]: tensor<B or 1 x queries x i64>, or null where all are seen.
struct SeenKeys {
  mlir::Value begin, end;
};

/// What an attention, or its gradient, says of positions.
struct AttentionMasks {
  template <typename Op>
  explicit AttentionMasks(Op op)
      : causal(op.getCausal()), window(op.getWindow()), queries(op.getQuery().getType().getShape()[2]),
        keys(op.getKey().getType().getShape()[2]) {}

  bool operator==(const AttentionMasks &) const = default;

  bool causal;
  std::optional<int64_t> window;
  int64_t queries, keys; ///< of the global op
};

/// For queries at `indices` (tensor<n x i64>) of the sequence, in positions of all keys. `given` is what the op says of
/// these queries.
SeenKeys seenKeys(train::Build &build, const AttentionMasks &masks, mlir::Value indices, SeenKeys given);

/// The same among those keys alone that the member at `position` of the group has, in the order in which it has them.
/// All positions of a layout without blocks are in ascending order, so that a range of all keys is a range of them.
SeenKeys seenKeysOf(dist::CollectiveBuilder &collectives, train::Build &build, const SeenKeys &seen,
                    const dist::Split &split, int64_t keys, dist::MeshAttr mesh, mlir::Value position);

/// Says in `local`, an attention to all keys that is a copy of `op`, of which of them the queries of a rank see: `seen`
/// instead of what `op` says of positions. `isBalanced`: each rank has early and late ones.
template <typename Op> void saySeenKeys(Op local, Op op, const SeenKeys &seen, bool isBalanced) {
  if (!op.getCausal())
    return; // `local` has the ranges of its queries, if there are any
  local.getBeginMutable().assign(seen.begin);
  local.getEndMutable().assign(seen.end);
  local.setCausal(false);
  local.removeWindowAttr();
  // The last range of queries sees all keys, an early and a late one together half of them.
  const auto keys = static_cast<double>(op.getKey().getType().getDimSize(2));
  const std::optional<uint64_t> window = op.getWindow();
  if (isBalanced)
    local.setDensity(llvm::APFloat(seenPart(true, window, std::nullopt, keys)));
  else if (window)
    local.setDensity(llvm::APFloat(std::min(1.0, static_cast<double>(*window) / keys)));
}

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_PARTITION_ATTENTIONKEYS_H
