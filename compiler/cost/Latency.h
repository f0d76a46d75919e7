//===- Latency.h - how long ops take on a target ----------------*- C++ -*-===//
//
// The cost model that the scheduler and the report share. Works on ops with local types: train and dist ops between the
// phases shard and lower, exec instructions after it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_COST_LATENCY_H
#define TESSERA_COMPILER_COST_LATENCY_H

#include "compiler/cost/Target.h"
#include "compiler/dialect/dist/Dist.h"

#include "llvm/ADT/DenseMap.h"

namespace tessera::cost {

/// How the ranks of a collective's group lie on nodes. Ranks fill nodes in order.
struct GroupPlacement {
  int64_t ranks = 1; ///< in the group
  int64_t nodes = 1; ///< that the group spans
  int64_t ranksPerNode() const { return (ranks + nodes - 1) / nodes; }
};

/// What a collective moves, from the bytes of the whole tensor: of the result for all_gather, of one rank's operand
/// otherwise. `wire` is the theoretical minimum that each rank must send (and receive).
double wireBytes(Collective kind, double wholeBytes, int64_t ranks);

class LatencyModel {
public:
  LatencyModel(Target target, dist::MeshAttr mesh) : target(std::move(target)), mesh(mesh) {}

  /// Seconds of one op on one rank; of a loop, all iterations of its body one after the other. Nothing for views,
  /// constants, futures' ends and what the lowering fuses away. Of a collective (its start as well), seconds from start
  /// to end if nothing else runs.
  double seconds(mlir::Operation *op) const;

  /// True for what runs on a communication stream: collectives and their starts.
  static bool isCollective(mlir::Operation *op);

  /// Seconds of a collective over `axes` on `wholeBytes` (see wireBytes).
  double collectiveSeconds(Collective kind, double wholeBytes, mlir::ArrayAttr axes) const;
  GroupPlacement placement(mlir::ArrayAttr axes) const;

  /// Seconds of a generated kernel that reads and writes so many bytes and does so many operations (see KernelWork.h).
  double kernelSeconds(double bytes, double operations = 0) const;
  /// Seconds of a product [batch, m, k] x [batch, k, n].
  double gemmSeconds(mlir::Type elementType, double batch, double m, double n, double k) const;

  const Target &getTarget() const { return target; }
  dist::MeshAttr getMesh() const { return mesh; }

private:
  double trainSeconds(mlir::Operation *op) const;
  double execSeconds(mlir::Operation *op) const;
  double flopSeconds(double flops, double bytes, mlir::Type elementType, double efficiency) const;
  /// `scoreFlops`: of one product of the size of QKᵀ.
  double attentionSeconds(mlir::Operation *op, double scoreFlops, double bytes, mlir::Type elementType) const;

  Target target;
  dist::MeshAttr mesh;
  mutable llvm::DenseMap<mlir::ArrayAttr, GroupPlacement> placements;
};

/// A collective (or its start, or the instruction) as the model sees it.
struct CollectiveUse {
  Collective kind;
  double wholeBytes;
  mlir::ArrayAttr axes;
};
/// Of an op for which `LatencyModel::isCollective` holds.
CollectiveUse collectiveUse(mlir::Operation *op, dist::MeshAttr mesh);

} // namespace tessera::cost

#endif // TESSERA_COMPILER_COST_LATENCY_H
