//===- DistVerify.cpp - verifiers of the dist dialect ---------------------===//
//
// What depends on axis sizes is checked where the module has a mesh. Each
// constraint has a label, which its negative test in tests/dialect/dist repeats.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/dist/KeyGather.h"
#include "compiler/dialect/train/Train.h"
#include "compiler/dialect/train/Verify.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

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
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    if (failed(verifyAxes(op, sharding.getAxes(dim))))
      return failure();
  return verifyAxes(op, sharding.getUnreduced());
}

/// A sharding that annotates a tensor: an argument's, a result's or an op result's.
static LogicalResult verifyAnnotation(llvm::function_ref<InFlightDiagnostic()> emitError, Attribute attr, Type type,
                                      MeshAttr mesh) {
  // dist.annotation_c1
  auto sharding = dyn_cast<ShardingAttr>(attr);
  auto shaped = dyn_cast<ShapedType>(type);
  if (!sharding || !shaped || !shaped.hasRank() || sharding.getRank() != shaped.getRank())
    return emitError() << "expected a #dist.sharding of the rank of " << type << ", got " << attr;
  if (!mesh)
    return success();
  // dist.annotation_c2
  SmallVector<ArrayAttr> lists = {sharding.getUnreduced()};
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    lists.push_back(sharding.getAxes(dim));
  for (ArrayAttr list : lists)
    for (auto axis : list.getAsRange<StringAttr>())
      if (mesh.getAxisIndex(axis.getValue()) < 0)
        return emitError() << "names axis '" << axis.getValue() << "', which is not in the mesh " << mesh;
  return success();
}

/// `dist.global`: the type that was localised; `attrs` are all attributes of the argument or result.
static LogicalResult verifyGlobal(llvm::function_ref<InFlightDiagnostic()> emitError, Attribute attr,
                                  DictionaryAttr attrs, Type local, MeshAttr mesh) {
  auto type = dyn_cast<TypeAttr>(attr);
  auto global = type ? dyn_cast<RankedTensorType>(type.getValue()) : nullptr;
  auto shaped = dyn_cast<ShapedType>(local);
  auto sharding = attrs.getAs<ShardingAttr>(kSharding);
  // dist.global_c1
  if (!global || !global.hasStaticShape() || !shaped || !sharding || sharding.getRank() != global.getRank())
    return emitError() << "expected a tensor type of static shape beside a " << kSharding << " of its rank, got "
                       << attr;
  if (!mesh)
    return success();
  // dist.global_c2
  RankedTensorType part = sharding.getLocalType(global, mesh);
  if (!part || part.getShape() != shaped.getShape() || part.getElementType() != shaped.getElementType())
    return emitError() << "is " << global << ", whose parts by " << sharding << " are not " << local;
  return success();
}

/// An attribute of an argument or result of a function, or of the op that takes its place in a program.
static LogicalResult verifyBoundary(Operation *op, const Twine &where, NamedAttribute attr, DictionaryAttr attrs,
                                    Type type) {
  auto emitError = [&] { return op->emitError() << where << attr.getName().getValue() << " "; };
  if (attr.getName() == kSharding)
    return verifyAnnotation(emitError, attr.getValue(), type, meshOf(op));
  if (attr.getName() == kGlobal)
    return verifyGlobal(emitError, attr.getValue(), attrs, type, meshOf(op));
  // dist.memory_c1
  if (attr.getName() == kMemory && attr.getValue() != StringAttr::get(op->getContext(), kHostMemory))
    return emitError() << "expected \"" << kHostMemory << "\", got " << attr.getValue()
                       << "; without it a value lies in the device's memory";
  return success();
}

LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attr) {
  if (auto func = dyn_cast<FunctionOpInterface>(op))
    return verifyBoundary(op, "argument " + Twine(index) + ": ", attr, func.getArgAttrDict(index),
                          func.getArgumentTypes()[index]);
  return op->emitError() << attr.getName().getValue() << " is only for arguments of functions";
}

LogicalResult DistDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attr) {
  if (auto func = dyn_cast<FunctionOpInterface>(op))
    return verifyBoundary(op, "result " + Twine(index) + ": ", attr, func.getResultAttrDict(index),
                          func.getResultTypes()[index]);
  return op->emitError() << attr.getName().getValue() << " is only for results of functions";
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  const Attribute value = attr.getValue();
  // dist.mesh_c1
  if (attr.getName() == kMesh && (!isa<MeshAttr>(value) || !isa<ModuleOp>(op)))
    return op->emitOpError() << kMesh << " expected a #dist.mesh on a module, got " << value;
  if (attr.getName() == kShardings) {
    // dist.shardings_c1
    auto list = dyn_cast<ArrayAttr>(value);
    if (!list || list.size() != op->getNumResults())
      return op->emitOpError() << kShardings << " expected one sharding for each of " << op->getNumResults()
                               << " results, got " << value;
    for (auto [sharding, type] : llvm::zip_equal(list, op->getResultTypes()))
      if (failed(verifyAnnotation([&] { return op->emitOpError() << kShardings << " "; }, sharding, type, meshOf(op))))
        return failure();
    return success();
  }
  if (attr.getName() == kGatherBytes || attr.getName() == kGatherType) {
    // dist.gather_c1
    if (!isa<tessera::train::AttentionOp, tessera::train::AttentionGradOp>(op))
      return op->emitOpError() << attr.getName().getValue() << " is only for attention and its gradient";
    // dist.gather_c2
    auto bytes = dyn_cast<IntegerAttr>(value);
    if (attr.getName() == kGatherBytes && (!bytes || !bytes.getType().isInteger(64) || bytes.getInt() <= 0))
      return op->emitOpError() << kGatherBytes << " expected a positive i64, got " << value;
    // dist.gather_c3
    auto type = dyn_cast<TypeAttr>(value);
    if (attr.getName() == kGatherType && (!type || !isa<FloatType>(type.getValue())))
      return op->emitOpError() << kGatherType << " expected a float type, got " << value;
    return success();
  }
  if (attr.getName() != kSharding && attr.getName() != kGlobal && attr.getName() != kMemory)
    return success();
  // dist.annotation_c3
  if (op->getNumOperands() != 1)
    return op->emitOpError() << attr.getName().getValue() << " is only for arguments and results of the step";
  return verifyBoundary(op, "", attr, op->getDiscardableAttrDictionary(), op->getOperand(0).getType());
}

LogicalResult ConstrainOp::verify() { return verifySharding(*this, getSharding(), getType()); }

LogicalResult MoveAxesOp::verify() {
  // dist.move_axes_c1
  for (auto [name, dim] : {std::pair("from", getFrom()), std::pair("to", getTo())})
    if (failed(verifyDim(*this, name, dim, getType().getRank())))
      return failure();
  // dist.move_axes_c2
  if (getFrom() == getTo())
    return emitOpError() << "moves axes from dimension " << getFrom() << " to itself";
  return verifyAxes(*this, getAxes());
}

LogicalResult DealOp::verify() {
  // dist.deal_c1
  const RankedTensorType type = getOrder().getType();
  if (type.getRank() != 2 || !type.getElementType().isInteger(64) || type.getDimSize(0) < 1 || type.getDimSize(1) < 2)
    return emitOpError() << "expects an order of type tensor<samples x blocks x i64>, of at least 2 blocks, got "
                         << type;
  return success();
}

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

/// `shape` with dimension `dim` multiplied by `factor`; reports a product that does not fit.
static LogicalResult scale(Operation *op, SmallVector<int64_t> &shape, int64_t dim, int64_t factor) {
  // dist.collective_c2
  if (llvm::MulOverflow(shape[dim], factor, shape[dim]))
    return op->emitOpError() << "operand dimension " << dim << " times " << factor << " ranks is too large";
  return success();
}

template <typename Op> static LogicalResult verifyGather(Op op) {
  FailureOr<Collective> gather = getCollective(op);
  // dist.all_gather_c1
  if (failed(gather) || failed(verifyDim(op, "dim", op.getDim(), gather->operand.getRank())))
    return failure();
  if (gather->members == 0)
    return success();
  SmallVector<int64_t> shape(gather->operand.getShape());
  if (failed(scale(op, shape, op.getDim(), gather->members)))
    return failure();
  // dist.all_gather_c2
  return verifyType(op, "result", gather->result, gather->operand.clone(shape));
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
  if (failed(scale(op, shape, op.getConcatDim(), exchange->members)))
    return failure();
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
