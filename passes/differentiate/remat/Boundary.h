//===- Boundary.h - what the backward pass reads of the forward pass -------*- C++ -*-===//
//
// The forward pass of a differentiated step as a graph of the ops that compute something, cut into segments (the blocks
// of the model). Views, parameters and what follows from constants alone are looked through: they cost nothing to have
// again.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_REMAT_BOUNDARY_H
#define TESSERA_PASSES_DIFFERENTIATE_REMAT_BOUNDARY_H

#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/PhaseAnalysis.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"

#include <string>
#include <vector>

namespace tessera::remat {

/// A forward op that computes something.
struct Node {
  explicit Node(mlir::Operation *op) : op(op) {}

  mlir::Operation *op;
  int segment = -1;                   ///< -1: outside of all segments
  double flops = 0;                   ///< of running it once more
  bool fixed = false;                 ///< never recomputed: outside of segments, or read by other segments
  llvm::SmallVector<unsigned> values; ///< its results
  llvm::SmallVector<unsigned> reads;  ///< values that it reads, perhaps through views
};

/// A result of a node.
struct NodeValue {
  mlir::Value value;
  unsigned node;
  int64_t bytes;
  bool needed = false; ///< the backward pass reads it, perhaps through views
};

/// Which nodes are recomputed if the backward pass comes to need them.
using Plan = llvm::BitVector;

/// What a plan costs.
struct Cost {
  int64_t bytes = 0; ///< that live from the forward to the backward pass
  double flops = 0;  ///< that are computed again
};

class Boundary {
public:
  /// `narrow`: the element type in which the precision phase will keep f32 values; null if it keeps them as they are.
  explicit Boundary(mlir::func::FuncOp func, mlir::Type narrow = {});

  llvm::ArrayRef<Node> getNodes() const { return nodes; }
  llvm::ArrayRef<NodeValue> getValues() const { return values; }
  /// Names of the segments in the order of the forward pass: block scopes, or "root" if the model has no blocks.
  llvm::ArrayRef<std::string> getSegments() const { return segments; }
  bool hasBlocks() const { return blocks; }

  bool isBackward(mlir::Operation *op) const { return phases.isBackward(op); }
  /// The number of the node that computes a value; -1 for arguments, views and what follows from constants.
  int nodeOf(mlir::Value value) const;
  /// What a value shows, through views.
  static mlir::Value rootOf(mlir::Value value);
  /// An op that shows one operand in another way, or casts a parameter.
  static bool isView(mlir::Operation *op);
  /// A value that follows from constants alone.
  bool isInert(mlir::Value value) const { return value.getDefiningOp() && inert.contains(value.getDefiningOp()); }
  /// An argument that no pass gives up (a parameter, trained or frozen).
  bool isParameter(mlir::Value value) const;

  /// Values that a plan keeps, ascending, and nodes that it recomputes.
  struct Outcome {
    llvm::SmallVector<unsigned> saved, recomputed;
  };
  Outcome follow(const Plan &plan) const;
  Cost cost(const Outcome &outcome) const;

private:
  void assignSegments();
  std::string scopeOf(const Node &node) const;
  int64_t bytesOf(mlir::Value value) const;
  void finishNodes();

  mlir::func::FuncOp func;
  mlir::Type narrow;
  train::F32Values exact; ///< is not narrowed
  train::PhaseAnalysis phases;
  std::vector<mlir::Operation *> backward; ///< in their order
  llvm::DenseSet<mlir::Operation *> inert;
  std::vector<Node> nodes;
  std::vector<NodeValue> values;
  std::vector<std::string> segments;
  llvm::DenseMap<mlir::Operation *, unsigned> nodeNumbers;
  llvm::DenseMap<mlir::Value, unsigned> valueNumbers;
  bool blocks = false;
};

} // namespace tessera::remat

#endif // TESSERA_PASSES_DIFFERENTIATE_REMAT_BOUNDARY_H
