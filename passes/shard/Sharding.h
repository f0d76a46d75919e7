//===- Sharding.h - layouts of all values of a step function ----*- C++ -*-===//
//
// What the passes of this phase share: the mesh, and a table of layouts that is
// read from and written to the attributes of the IR.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_SHARDING_H
#define TESSERA_PASSES_SHARD_SHARDING_H

#include "passes/shard/Candidates.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::shard {

/// Runs `run(func, mesh)` on a function of tensors in a module with a mesh; reports where it is not one. A declaration
/// has nothing to shard.
llvm::LogicalResult runOnMesh(mlir::func::FuncOp func,
                              llvm::function_ref<llvm::LogicalResult(mlir::func::FuncOp, dist::MeshAttr)> run);

int64_t rankOf(mlir::Value value);

/// The layout that an accumulate operand must have (its leading dimension is whole, nothing is owed) and the layout of
/// the region's argument, which lacks that dimension.
dist::Layout accumulateOperand(const dist::Layout &layout);
dist::Layout accumulateArgument(const dist::Layout &operand);

/// Layouts of values by value. Only looked up, never iterated.
class LayoutTable {
public:
  explicit LayoutTable(dist::MeshAttr mesh) : mesh(mesh) {}

  /// Reads `dist.sharding` of the arguments (without one they are replicated).
  mlir::LogicalResult readArguments(mlir::func::FuncOp func);
  /// Reads `dist.shardings` of all ops and the arguments of regions.
  mlir::LogicalResult readOps(mlir::Block &block);

  const dist::Layout *lookup(mlir::Value value) const;
  const dist::Layout &at(mlir::Value value) const;
  /// True if that changed the table.
  bool set(mlir::Value value, dist::Layout layout);
  void setBlockArguments(mlir::Operation *accumulate);

  /// How `op`, which has a rule, can run on the present layouts, and how it does.
  std::vector<Candidate> listCandidates(ShardingRuleOpInterface op) const;
  Solution solveOp(ShardingRuleOpInterface op) const;
  /// The layout an attribute describes, or an error at `loc`.
  mlir::FailureOr<dist::Layout> parse(dist::ShardingAttr sharding, mlir::Location loc, int64_t rank) const;

  dist::MeshAttr mesh;

private:
  llvm::DenseMap<mlir::Value, dist::Layout> layouts;
};

/// The layout of the result of `op`, whose operand is laid out as `operand`.
dist::Layout movedLayout(dist::MoveAxesOp op, const dist::Layout &operand, dist::MeshAttr mesh);

/// The layout of an order that positions are dealt in: of each group of samples where those are, blocks whole.
dist::Layout orderLayout(mlir::Value order, dist::MeshAttr mesh);

/// The layout that result `index` of a function must have; null if it is free (role `output` without an annotation).
dist::ShardingAttr resultSharding(mlir::func::FuncOp func, unsigned index);

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_SHARDING_H
