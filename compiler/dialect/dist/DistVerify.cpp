//===- DistVerify.cpp - verifiers of the dist dialect ---------------------===//
//
// What depends on axis sizes is checked where the module has a mesh. Each
// constraint has a label, which its negative test in tests/dialect/dist repeats.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/train/Verify.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tessera::dist;
using tessera::train::verifyDim;
using tessera::train::verifyType;

static MeshAttr meshOf(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  return module ? module->getAttrOfType<MeshAttr>(kMesh) : MeshAttr();
}

/// Each axis is one of the mesh's and named once.
static LogicalResult verifyAxes(Operation *op, ArrayAttr axes) {
  MeshAttr mesh = meshOf(op);
  llvm::StringSet<> seen;
  for (auto axis : axes.getAsRange<StringAttr>()) {
    // dist.axes_c1
    if (mesh && mesh.getAxisIndex(axis.getValue()) < 0)
      return op->emitOpError() << "names axis '" << axis.getValue() << "', which is not in the mesh " << mesh;
    // dist.axes_c2
    if (!seen.insert(axis.getValue()).second)
      return op->emitOpError() << "names axis '" << axis.getValue() << "' twice";
  }
  return success();
}

// --- Shardings -------------------------------------------------------------------

static LogicalResult verifySharding(Operation *op, ShardingAttr sharding, RankedTensorType type) {
  // dist.sharding_c1
  if (sharding.getRank() != type.getRank())
    return op->emitOpError() << "sharding " << sharding << " has rank " << sharding.getRank() << ", expected "
                             << type.getRank();
  // dist.sharding_c2
  for (auto axes : sharding.getDims().getAsRange<ArrayAttr>())
    if (failed(verifyAxes(op, axes)))
      return failure();
  return verifyAxes(op, sharding.getUnreduced());
}

LogicalResult ConstrainOp::verify() { return verifySharding(*this, getSharding(), getType()); }

LogicalResult ReshardOp::verify() {
  return failure(failed(verifySharding(*this, getFrom(), getType())) ||
                 failed(verifySharding(*this, getTo(), getType())));
}

// --- Collectives -----------------------------------------------------------------

static RankedTensorType tensorOf(Type type) {
  if (auto future = dyn_cast<FutureType>(type))
    return future.getTensor();
  return cast<RankedTensorType>(type);
}

namespace {
/// A collective or its start: what it takes and gives, and how many members a group has (0: no mesh to tell).
struct Collective {
  Operation *op;
  RankedTensorType operand, result;
  int64_t members;
};
} // namespace

template <typename Op> static FailureOr<Collective> getCollective(Op op) {
  if (failed(verifyAxes(op, op.getAxes())))
    return failure();
  // dist.collective_c1
  if (op.getAxes().empty())
    return op.emitOpError("names no axes");
  MeshAttr mesh = meshOf(op);
  return Collective{op, op.getOperand().getType(), tensorOf(op->getResult(0).getType()),
                    mesh ? mesh.getGroupSize(op.getAxes()) : 0};
}

/// `type` with dimension `dim` multiplied by `factor`.
static RankedTensorType scaled(RankedTensorType type, int64_t dim, int64_t factor) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] *= factor;
  return type.clone(shape);
}

template <typename Op> static LogicalResult verifyGather(Op op) {
  FailureOr<Collective> gather = getCollective(op);
  // dist.all_gather_c1
  if (failed(gather) || failed(verifyDim(op, "dim", op.getDim(), gather->operand.getRank())))
    return failure();
  // dist.all_gather_c2
  if (gather->members != 0)
    return verifyType(op, "result", gather->result, scaled(gather->operand, op.getDim(), gather->members));
  return success();
}

/// The op keeps one of `members` equal parts of its operand along `dim`.
template <typename Op> static LogicalResult verifyPart(Op op) {
  FailureOr<Collective> part = getCollective(op);
  // dist.reduce_scatter_c1, dist.slice_local_c1
  if (failed(part) || failed(verifyDim(op, "dim", op.getDim(), part->operand.getRank())))
    return failure();
  if (part->members == 0)
    return success();
  // dist.reduce_scatter_c2, dist.slice_local_c2
  int64_t size = part->operand.getShape()[op.getDim()];
  if (size % part->members != 0)
    return op.emitOpError() << "operand dimension " << op.getDim() << " has size " << size
                            << ", expected a multiple of " << part->members;
  // dist.reduce_scatter_c3, dist.slice_local_c3
  SmallVector<int64_t> shape(part->operand.getShape());
  shape[op.getDim()] = size / part->members;
  return verifyType(op, "result", part->result, part->operand.clone(shape));
}

/// The op's result has the type of its operand.
template <typename Op> static LogicalResult verifySameType(Op op) {
  FailureOr<Collective> collective = getCollective(op);
  // dist.all_reduce_c1, dist.permute_c1
  if (failed(collective))
    return failure();
  return verifyType(op, "result", collective->result, collective->operand);
}

template <typename Op> static LogicalResult verifyAllToAll(Op op) {
  FailureOr<Collective> exchange = getCollective(op);
  // dist.all_to_all_c1
  if (failed(exchange) || failed(verifyDim(op, "split_dim", op.getSplitDim(), exchange->operand.getRank())) ||
      failed(verifyDim(op, "concat_dim", op.getConcatDim(), exchange->operand.getRank())))
    return failure();
  if (exchange->members == 0)
    return success();
  // dist.all_to_all_c2
  int64_t size = exchange->operand.getShape()[op.getSplitDim()];
  if (size % exchange->members != 0)
    return op.emitOpError() << "operand dimension " << op.getSplitDim() << " has size " << size
                            << ", expected a multiple of " << exchange->members;
  // dist.all_to_all_c3
  SmallVector<int64_t> shape(exchange->operand.getShape());
  shape[op.getSplitDim()] /= exchange->members;
  shape[op.getConcatDim()] *= exchange->members;
  return verifyType(op, "result", exchange->result, exchange->operand.clone(shape));
}

LogicalResult AllGatherOp::verify() { return verifyGather(*this); }
LogicalResult AllGatherStartOp::verify() { return verifyGather(*this); }
LogicalResult ReduceScatterOp::verify() { return verifyPart(*this); }
LogicalResult ReduceScatterStartOp::verify() { return verifyPart(*this); }
LogicalResult SliceLocalOp::verify() { return verifyPart(*this); }
LogicalResult AllReduceOp::verify() { return verifySameType(*this); }
LogicalResult AllReduceStartOp::verify() { return verifySameType(*this); }
LogicalResult PermuteOp::verify() { return verifySameType(*this); }
LogicalResult PermuteStartOp::verify() { return verifySameType(*this); }
LogicalResult AllToAllOp::verify() { return verifyAllToAll(*this); }
LogicalResult AllToAllStartOp::verify() { return verifyAllToAll(*this); }

LogicalResult CopyStartOp::verify() {
  // dist.copy_start_c1
  if (getTo() != kHostMemory && getTo() != kDeviceMemory)
    return emitOpError() << "copies to '" << getTo() << "', expected '" << kHostMemory << "' or '" << kDeviceMemory
                         << "'";
  // dist.copy_start_c2
  return verifyType(*this, "result", getFuture().getType().getTensor(), getOperand().getType());
}

LogicalResult DoneOp::verify() {
  // dist.done_c1
  return verifyType(*this, "result", getType(), getFuture().getType().getTensor());
}
