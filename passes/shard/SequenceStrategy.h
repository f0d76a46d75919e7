//===- SequenceStrategy.h - attention over a split sequence -----*- C++ -*-===//
//
// What ranks that have parts of one sequence send for attention, and how positions are dealt to them. A row of a table
// each; which one runs is decided here, for all attentions of a step.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_SEQUENCESTRATEGY_H
#define TESSERA_PASSES_SHARD_SEQUENCESTRATEGY_H

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::shard {

/// One row of the table.
struct SequenceStrategyInfo {
  llvm::StringLiteral name; ///< as in `--attention ring`
  llvm::StringLiteral description;
  bool movesHeads;    ///< axes split heads instead of positions while attention is computed
  bool movesKeys;     ///< keys go from rank to rank, over the axes that still split positions; else they are gathered
  unsigned leastAxes; ///< sequence axes larger than 1 that it needs

  /// Of the sequence axes those that split heads meanwhile: the last one beside a ring, else all.
  llvm::ArrayRef<unsigned> exchangedAxes(llvm::ArrayRef<unsigned> axes) const {
    return !movesHeads ? axes.take_back(0) : movesKeys ? axes.take_back(1) : axes;
  }
};

llvm::ArrayRef<SequenceStrategyInfo> sequenceStrategies();

/// What `--attention` asks for.
struct AttentionChoice {
  const SequenceStrategyInfo *strategy = nullptr; ///< null: auto
  int64_t headsAtATime = 0;                       ///< query heads that chunk-heads takes at a time; 0: all
  std::string error;                              ///< why the text is not understood
};
/// Reads the name of a row or "auto"; a row that moves heads may be followed by ":chunk=<heads>".
AttentionChoice parseAttention(llvm::StringRef text);

/// What `--sequence-order` asks for.
struct OrderChoice {
  enum Kind { Auto, Contiguous, Zigzag, Dealt } kind = Auto;
  int64_t blocksPerRank = 0; ///< of Dealt; 0: what suits the length
  std::string error;         ///< why the text is not understood
};
/// Reads "contiguous", "zigzag", "dealt", "dealt:blocks=<of a rank>" or "auto".
OrderChoice parseOrder(llvm::StringRef text);

/// Why positions are dealt as they are.
enum class OrderReason { Asked, Balances, NotCausal, HeadsSplit, NotDivided, Documents, NotDealt };

/// How the attentions of a step are computed.
struct SequencePlan {
  const SequenceStrategyInfo *strategy = nullptr; ///< null: no sequence axis is larger than 1
  bool isZigzag = false;
  int64_t dealt = 0; ///< blocks that positions are dealt in, by their work; 0: they are not
  OrderReason orderReason = OrderReason::Asked;
  std::string reason;   ///< of what was left open
  std::string notDealt; ///< why positions are not dealt although the keys that queries see follow from the batch

  /// Positions are cut in as many ranges, or a multiple of it.
  int64_t ranges(dist::MeshAttr mesh) const;
};

/// Whether the work of an attention of these queries counts where positions are dealt in `blocks`, and samples are
/// split over `ranks`: others have other queries or samples.
bool isDealtBy(mlir::RankedTensorType queries, int64_t blocks, int64_t ranks);

/// Why keys cannot travel for `op`, an attention or its gradient; empty if they can.
std::string ringRefusal(mlir::Operation *op);

/// `attention` is as of parseAttention, `order` as of parseOrder. Once positions are dealt in `func`, they stay so.
/// Fails, with an error at the attention that does not allow it, where what is asked for cannot be done.
mlir::FailureOr<SequencePlan> planSequence(mlir::func::FuncOp func, dist::MeshAttr mesh, llvm::StringRef attention,
                                           llvm::StringRef order);

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_SEQUENCESTRATEGY_H
