//===- Placement.h - where the collectives of a block may stand -*- C++ -*-===//
//
// What the prefetch passes share: which collectives of a block move, moving them with what assembles their operands or
// shows their results, and the placing of reductions. The policies decide only where gathers of units start.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_PLACEMENT_H
#define TESSERA_PASSES_SCHEDULE_PLACEMENT_H

#include "passes/schedule/Collectives.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::schedule {

/// Ops that only show another op's result, or a part of it, in another shape.
bool isView(mlir::Operation *op);
/// Views, and ops that join such results: they move with their collective.
bool isAssembly(mlir::Operation *op);

/// The order of a block's ops while they move. A block itself numbers all of its ops anew whenever it is asked after a
/// move; here a move costs about the logarithm of their number.
class BlockOrder {
public:
  explicit BlockOrder(mlir::Block &block);

  bool isBefore(mlir::Operation *a, mlir::Operation *b) const { return labels.lookup(a) < labels.lookup(b); }
  void moveBefore(mlir::Operation *op, mlir::Operation *next);
  void moveAfter(mlir::Operation *op, mlir::Operation *previous);
  void moveToFront(mlir::Operation *op);

private:
  /// Gives the op a label between those of its neighbours.
  void place(mlir::Operation *op);
  /// Spreads the labels around `op` evenly over a range in which they are not dense.
  void spread(mlir::Operation *op);

  mlir::Block &block;
  llvm::DenseMap<mlir::Operation *, uint64_t> labels; ///< they grow along the block
};

/// The gather of a unit: of a value that exists when the block begins, or that the block makes of one.
struct Gather {
  dist::CollectiveOpInterface start;
  dist::DoneOp done; ///< at the unit's point: the first op that computes with it
  bool isBackward() const { return train::isMarkedBackward(start); }
  /// Its origin in words.
  std::string getText() const { return dist::CollectiveOpInterface(start).getText(); }
};

/// The collectives of one block. Invariant: the block stays a valid SSA block after every move.
class BlockPlacement {
public:
  /// Finds the collectives that are whole in this block.
  explicit BlockPlacement(mlir::Block &block);

  /// What a collective of a unit is counted as: the module whose units differ only in type or axes, else the unit.
  /// Empty for what is of several units, or of none.
  llvm::StringRef moduleOf(dist::CollectiveOpInterface collective) const;
  /// Whether two collectives are of different units of one module.
  bool isOtherOfModule(dist::CollectiveOpInterface a, dist::CollectiveOpInterface b) const;

  /// What goes from rank to rank starts where it stands, in front of what is computed meanwhile, and ends at its first
  /// use.
  void placePermutes();
  /// Reductions start when their operand is complete and end at their first use, or where the next of their kind
  /// starts, other units of their module aside.
  void placeReductions();
  /// Moves every gather's done to its unit's point. Returns the gathers in the order of their points.
  llvm::SmallVector<Gather> placeDones();

  /// A gather of what the block computes starts where it stands, in front of what may be computed meanwhile, and ends
  /// at its first use; in front of the end of the next gather over its axes. When the starts of all others are placed.
  void placeFixedGathers();

  /// Moves the start right behind `after` (null: to the beginning of the block) with what assembles its operand; behind
  /// `previous`, the gather that starts before it, and behind gathers of activations that end before its point.
  void moveStart(const Gather &gather, mlir::Operation *after, mlir::Operation *previous, const llvm::Twine &reason);
  /// Right in front of the done: no prefetch.
  void keepAtPoint(const Gather &gather, const llvm::Twine &reason);

  /// The last op of the block that computes with the gathered value.
  mlir::Operation *lastUser(mlir::Operation *op) const;
  bool isBefore(mlir::Operation *a, mlir::Operation *b) const { return order.isBefore(a, b); }

private:
  bool isReadyAtStart(mlir::Value value) const;
  mlir::Operation *readyAfter(mlir::Value value) const;
  mlir::Operation *firstUser(mlir::Operation *op) const;
  void hoist(mlir::Operation *op);
  void sinkUsers(mlir::Operation *op);
  void moveOperandsBefore(mlir::Operation *op);
  void keepQueue(const Gather &gather);

  mlir::Block &block;
  BlockOrder order;
  llvm::StringMap<llvm::StringRef> modules; ///< by the names of their units
  llvm::SmallVector<dist::CollectiveOpInterface> gathers, reductions, permutes;
  /// All-gathers of values that the block computes; they start where they are.
  llvm::SmallVector<dist::CollectiveOpInterface> fixedGathers;
};

} // namespace tessera::schedule

#endif // TESSERA_PASSES_SCHEDULE_PLACEMENT_H
