//===- Localize.cpp - from global values to one rank's parts --------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "passes/shard/Passes.h"
#include "passes/shard/Sharding.h"

#include "mlir/IR/IRMapping.h"

namespace tessera {
#define GEN_PASS_DEF_LOCALIZEPASS
#include "passes/shard/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::shard;

namespace {

/// Emits the collectives of one reshard. All of them work on dimension 0; other dimensions, and those inside of blocks,
/// are moved there and back.
class CollectiveBuilder {
public:
  CollectiveBuilder(OpBuilder &builder, Location loc, MeshAttr mesh, OriginAttr origin)
      : builder(builder), loc(loc), mesh(mesh), origin(origin) {}

  Value apply(const ReshardStep &step, Value value) {
    switch (step.kind) {
    case ReshardStep::Kind::AllReduce: {
      return AllReduceOp::create(builder, loc, value.getType(), value, axisNames(mesh, step.axes), origin);
    }
    case ReshardStep::Kind::AllToAll:
      return allToAll(step, value);
    case ReshardStep::Kind::Mask:
      return mask(step, value);
    default:
      return onFirstDim(step, value);
    }
  }

private:
  /// The value with dimension `dim` as `sizes` instead.
  Value expand(train::Build &build, Value value, int64_t dim, ArrayRef<int64_t> sizes) const {
    SmallVector<int64_t> shape(train::shapeOf(value));
    shape.erase(shape.begin() + dim);
    shape.insert(shape.begin() + dim, sizes.begin(), sizes.end());
    return build.reshape(value, shape);
  }

  /// Dimensions `dim` .. `dim + count - 1` as one.
  Value merge(train::Build &build, Value value, int64_t dim, int64_t count) const {
    SmallVector<int64_t> shape(train::shapeOf(value));
    int64_t size = llvm::product_of(ArrayRef(shape).slice(dim, count));
    shape.erase(shape.begin() + dim, shape.begin() + dim + count);
    shape.insert(shape.begin() + dim, size);
    return build.reshape(value, shape);
  }

  /// Dimension `from` becomes dimension `to`; the others keep their order.
  Value move(train::Build &build, Value value, int64_t from, int64_t to) const {
    if (from == to)
      return value;
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(value)));
    permutation.erase(permutation.begin() + from);
    permutation.insert(permutation.begin() + to, from);
    return build.transpose(value, permutation);
  }

  Value onFirstDim(const ReshardStep &step, Value value) {
    train::Build build(builder, loc);
    int64_t dim = step.dim;
    if (step.blocks > 1) {
      value = expand(build, value, dim, {step.blocks, train::shapeOf(value)[dim] / step.blocks});
      ++dim;
    }
    value = move(build, value, dim, 0);
    ArrayAttr axes = axisNames(mesh, step.axes);
    const int64_t ranks = groupSize(mesh, step.axes);
    bool grows = step.kind == ReshardStep::Kind::AllGather;
    SmallVector<int64_t> shape(train::shapeOf(value));
    shape[0] = grows ? shape[0] * ranks : shape[0] / ranks;
    Type type = train::tensorType(value).clone(shape);
    if (grows)
      value = AllGatherOp::create(builder, loc, type, value, axes, 0, origin);
    else if (step.kind == ReshardStep::Kind::ReduceScatter)
      value = ReduceScatterOp::create(builder, loc, type, value, axes, 0, origin);
    else
      value = SliceLocalOp::create(builder, loc, type, value, axes, 0);
    value = move(build, value, 0, dim);
    return step.blocks > 1 ? merge(build, value, step.dim, 2) : value;
  }

  /// What belongs to each rank becomes dimension 0, is exchanged, and what came from each rank joins dimension
  /// `fromDim`.
  Value allToAll(const ReshardStep &step, Value value) {
    train::Build build(builder, loc);
    const int64_t ranks = groupSize(mesh, step.axes);
    const int64_t size = train::shapeOf(value)[step.dim];
    value = expand(build, value, step.dim, {step.blocks, ranks, size / (step.blocks * ranks)});
    value = move(build, value, step.dim + 1, 0);
    value = merge(build, value, step.dim + 1, 2);
    value = AllToAllOp::create(builder, loc, value.getType(), value, axisNames(mesh, step.axes), 0, 0, origin);
    const int64_t from = step.fromDim + 1;
    value = expand(build, value, from, {step.fromBlocks, train::shapeOf(value)[from] / step.fromBlocks});
    value = move(build, value, 0, from);
    return merge(build, value, step.fromDim, 3);
  }

  /// The value where the rank is the first of its group, zero elsewhere.
  Value mask(const ReshardStep &step, Value value) {
    train::Build build(builder, loc);
    auto scalar = RankedTensorType::get({}, builder.getI64Type());
    Value index = AxisIndexOp::create(builder, loc, scalar, axisNames(mesh, step.axes));
    Value first = build.compare(train::CompareDirection::Eq, index, build.zeros(scalar));
    return build.select(build.broadcastTo(first, train::shapeOf(value)), value, build.splatLike(value, 0.0));
  }

  OpBuilder &builder;
  Location loc;
  MeshAttr mesh;
  OriginAttr origin;
};

/// Global offsets of an op's results from their layouts.
class OffsetContext : public LocalizeContext {
public:
  OffsetContext(Operation *op, const LayoutTable &table) : op(op), table(table) {}

  int64_t blocks(unsigned result, int64_t dim) override { return table.at(op->getResult(result)).dims[dim].blocks; }

  Value globalOffset(OpBuilder &builder, unsigned result, int64_t dim) override {
    const Split &axes = table.at(op->getResult(result)).dims[dim];
    if (axes.empty())
      return {};
    auto scalar = RankedTensorType::get({}, builder.getI64Type());
    train::Build build(builder, op->getLoc());
    auto constant = [&](int64_t value) { return build.constant(DenseElementsAttr::get(scalar, value)); };
    Value position;
    for (unsigned axis : axes) {
      Value index = AxisIndexOp::create(builder, op->getLoc(), scalar, axisNames(table.mesh, {axis}));
      position = position ? build.add(build.mul(position, constant(groupSize(table.mesh, {axis}))), index) : index;
    }
    int64_t part = train::shapeOf(op->getResult(result))[dim] / (axes.blocks * groupSize(table.mesh, axes));
    return build.mul(position, constant(part));
  }

private:
  Operation *op;
  const LayoutTable &table;
};

/// Rebuilds the function with local types. The old body stays until the new one is complete.
class Localizer {
public:
  Localizer(func::FuncOp func, MeshAttr mesh) : func(func), table(mesh), builder(func.getContext()) {}

  LogicalResult run() {
    Block &oldBody = func.getBody().front();
    if (failed(table.readArguments(func)) || failed(table.readOps(oldBody)))
      return failure();
    Block *newBody = new Block();
    func.getBody().push_back(newBody);
    if (failed(addArguments(oldBody, *newBody)) || failed(localize(oldBody, *newBody)))
      return failure();
    Operation *end = newBody->getTerminator();
    for (auto [index, operand] : llvm::enumerate(oldBody.getTerminator()->getOperands())) {
      if (!resultSharding(func, index) || Layout::get(resultSharding(func, index), table.mesh) != table.at(operand))
        return oldBody.getTerminator()->emitOpError()
               << "result " << index << " does not have the function result's sharding; run insert-reshards first";
      func.setResultAttr(index, kGlobal, TypeAttr::get(operand.getType()));
    }
    for (BlockArgument arg : oldBody.getArguments())
      func.setArgAttr(arg.getArgNumber(), kGlobal, TypeAttr::get(arg.getType()));
    func.setFunctionType(FunctionType::get(func.getContext(), newBody->getArgumentTypes(), end->getOperandTypes()));
    oldBody.dropAllReferences();
    oldBody.erase();
    return success();
  }

private:
  FailureOr<RankedTensorType> localType(Value value) {
    auto global = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(global.getShape());
    for (auto [dim, split] : llvm::enumerate(table.at(value).dims)) {
      int64_t parts = groupSize(table.mesh, split);
      if (shape[dim] % parts != 0)
        return emitError(value.getLoc()) << "dimension " << dim << " has size " << shape[dim]
                                         << ", which the mesh axes " << axisNames(table.mesh, split) << " of size "
                                         << parts << " do not divide";
      if (shape[dim] % (split.blocks * parts) != 0)
        return emitError(value.getLoc()) << "dimension " << dim << " has size " << shape[dim] << ", which "
                                         << split.blocks << " blocks of " << parts << " parts do not divide";
      shape[dim] /= parts;
    }
    return global.clone(shape);
  }

  LogicalResult addArguments(Block &from, Block &to) {
    for (BlockArgument arg : from.getArguments()) {
      FailureOr<RankedTensorType> type = localType(arg);
      if (failed(type))
        return failure();
      mapping.map(arg, to.addArgument(*type, arg.getLoc()));
    }
    return success();
  }

  LogicalResult localize(Block &from, Block &to) {
    builder.setInsertionPointToEnd(&to);
    for (Operation &op : from)
      if (failed(localize(op)))
        return failure();
    return success();
  }

  LogicalResult localize(Operation &op) {
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(mapping.lookup(operand));
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      OperationState state(op.getLoc(), op.getName(), operands, {}, op.getAttrs());
      builder.create(state);
      return success();
    }
    SmallVector<Type> types;
    for (Value result : op.getResults()) {
      FailureOr<RankedTensorType> type = localType(result);
      if (failed(type))
        return failure();
      types.push_back(*type);
    }
    Block *block = builder.getInsertionBlock();
    Operation *last = block->empty() ? nullptr : &block->back();
    FailureOr<SmallVector<Value>> results = build(op, operands, types);
    if (failed(results))
      return failure();
    for (Operation &created : llvm::make_range(last ? std::next(last->getIterator()) : block->begin(), block->end())) {
      created.removeAttr(kShardings);
      if (train::isMarkedBackward(&op))
        train::markBackward(&created);
    }
    mapping.map(op.getResults(), *results);
    return success();
  }

  FailureOr<SmallVector<Value>> build(Operation &op, ValueRange operands, TypeRange types) {
    if (auto reshard = dyn_cast<ReshardOp>(op)) {
      CollectiveBuilder collectives(builder, op.getLoc(), table.mesh, reshard.getOriginAttr());
      Value value = operands.front();
      auto steps = planReshard(table.at(reshard.getOperand()), table.at(reshard.getResult()));
      const std::optional<Type> reduceType = reshard.getReduceType();
      const bool isNarrowed =
          reduceType && llvm::any_of(steps, [](const ReshardStep &step) {
            return step.kind == ReshardStep::Kind::AllReduce || step.kind == ReshardStep::Kind::ReduceScatter;
          });
      train::Build build(builder, op.getLoc());
      if (isNarrowed)
        value = build.convert(value, *reduceType);
      for (const ReshardStep &step : steps)
        value = collectives.apply(step, value);
      if (isNarrowed)
        value = build.convert(value, train::tensorType(reshard.getResult()).getElementType());
      return SmallVector<Value>{value};
    }
    if (isa<train::AccumulateOp>(op))
      return buildRegionOp(op, operands, types);
    auto rule = dyn_cast<ShardingRuleOpInterface>(op);
    if (!rule)
      return op.emitOpError() << "cannot be localised; run insert-reshards first";
    Solution solution = table.solveOp(rule);
    for (auto [operand, need] : llvm::zip_equal(op.getOperands(), solution.operands))
      if (table.at(operand) != need)
        return op.emitOpError() << "has an operand with sharding " << table.at(operand).toAttr(table.mesh)
                                << " where it needs " << need.toAttr(table.mesh) << "; run insert-reshards first";
    OffsetContext context(&op, table);
    return rule.buildLocal(builder, operands, types, context);
  }

  FailureOr<SmallVector<Value>> buildRegionOp(Operation &op, ValueRange operands, TypeRange types) {
    OperationState state(op.getLoc(), op.getName(), operands, types, op.getAttrs());
    Region *region = state.addRegion();
    Block *body = new Block();
    region->push_back(body);
    if (failed(addArguments(op.getRegion(0).front(), *body)))
      return failure();
    Operation *created = builder.create(state);
    OpBuilder::InsertionGuard guard(builder);
    if (failed(localize(op.getRegion(0).front(), *body)))
      return failure();
    return SmallVector<Value>(created->getResults());
  }

  func::FuncOp func;
  LayoutTable table;
  OpBuilder builder;
  IRMapping mapping;
};

struct LocalizePass : tessera::impl::LocalizePassBase<LocalizePass> {
  void runOnOperation() override {
    if (failed(runOnMesh(getOperation(), [](auto func, auto mesh) { return Localizer(func, mesh).run(); })))
      signalPassFailure();
  }
};

} // namespace
