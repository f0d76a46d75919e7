//===- Strategy.h - how data-parallel training divides memory ---*- C++ -*-===//
//
// The table of strategies. A strategy is what is split, and when it is put
// together and added up; all that is said of one follows from its row.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_STRATEGY_H
#define TESSERA_PASSES_SHARD_STRATEGY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace tessera::shard {

/// When the whole of a unit is put together for computation.
enum class Gather {
  Never,        ///< it is whole at rest
  OncePerStep,  ///< before its first use, and kept until its last
  ForEachPhase, ///< for forward, and again for backward, in every micro-batch
};

/// How gradients become whole, or parts.
enum class Reduce {
  ToWhole,          ///< all-reduced once per step
  ToPartsOnce,      ///< accumulated whole, reduce-scattered once per step
  ToPartsEachMicro, ///< reduce-scattered in every micro-batch into an accumulator that is split
};

struct Strategy {
  llvm::StringLiteral name;
  llvm::StringLiteral description;
  bool splitsState; ///< master parameters and optimizer state at rest are split over the axes that split state
  Gather gather;
  Reduce reduce;
  bool needsReplicas = false; ///< needs an axis of replicas beside one that splits state

  /// Whether a step of so many micro-batches needs another division of memory than under `other`.
  bool differsFrom(const Strategy &other, int64_t microBatches) const;
};

/// The table; each row splits at least as much as the one before it.
llvm::ArrayRef<Strategy> strategies();
/// The strategy of this name; null if there is none.
const Strategy *findStrategy(llvm::StringRef name);
/// "ddp, zero1, zero2, zero3 or hsdp": the names of those that `isMeant`.
std::string strategyNames(llvm::function_ref<bool(const Strategy &)> isMeant = [](const Strategy &) { return true; });

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_STRATEGY_H
