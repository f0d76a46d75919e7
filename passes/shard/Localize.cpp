//===- Localize.cpp - from global values to one rank's parts --------------===//

#include "compiler/dialect/dist/CollectiveBuilder.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/interfaces/Partition.h"
#include "passes/shard/Passes.h"
#include "passes/shard/Sharding.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/SaveAndRestore.h"

namespace tessera {
#define GEN_PASS_DEF_LOCALIZEPASS
#include "passes/shard/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::shard;

namespace {

/// Global offsets of an op's results from their layouts.
class OffsetContext : public LocalizeContext {
public:
  OffsetContext(Operation *op, const LayoutTable &table, Value order) : op(op), table(table), order(order) {}

  Value globalOffset(OpBuilder &builder, unsigned result, int64_t dim) override {
    return collectives(builder).firstElement(splitOf(result, dim), sizeOf(result, dim));
  }

  Value globalIndices(OpBuilder &builder, unsigned result, int64_t dim) override {
    const Split &split = splitOf(result, dim);
    return split.empty() ? Value() : collectives(builder).indices(split, sizeOf(result, dim));
  }

  std::optional<SmallVector<DimPiece>> pieces(OpBuilder &builder, unsigned result, int64_t dim) override {
    return collectives(builder).pieces(splitOf(result, dim), sizeOf(result, dim));
  }

  bool isBalanced(unsigned result, int64_t dim) override {
    const Split &split = splitOf(result, dim);
    return !split.empty() && (split.back().isZigzag || split.back().dealt != 0);
  }

private:
  CollectiveBuilder collectives(OpBuilder &builder) const {
    return CollectiveBuilder(builder, op->getLoc(), table.mesh, {}, order);
  }
  const Split &splitOf(unsigned result, int64_t dim) const { return table.at(op->getResult(result)).dims[dim]; }
  int64_t sizeOf(unsigned result, int64_t dim) const { return train::shapeOf(op->getResult(result))[dim]; }

  Operation *op;
  const LayoutTable &table;
  Value order;
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
      const int64_t parts = groupSize(table.mesh, split);
      if (shape[dim] % parts != 0)
        return emitError(value.getLoc()) << "dimension " << dim << " has size " << shape[dim]
                                         << ", which the mesh axes " << axisNames(table.mesh, split.axes())
                                         << " of size " << parts << " do not divide";
      for (size_t level = 0; level < split.size(); ++level) {
        const int64_t ranks = table.mesh.getSizes()[split[level].axis], blocks = split.blocksAt(level);
        if (!split.divides(level, shape[dim], table.mesh))
          return emitError(value.getLoc()) << "dimension " << dim << " has size " << shape[dim] << ", which " << blocks
                                           << (blocks == 1 ? " block" : " blocks") << " of "
                                           << ranks * split.rangesLeft(level, table.mesh) << " parts do not divide";
        if (split[level].dealt != 0 && (!order || train::shapeOf(order)[0] != split[level].dealt))
          return emitError(value.getLoc()) << "dimension " << dim << " is dealt in " << split[level].dealt
                                           << " blocks, but no dist.deal in front says in which order";
        shape[dim] /= ranks;
      }
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
    if (auto deal = dyn_cast<DealOp>(op)) {
      const ArrayRef<int64_t> shape = train::shapeOf(operands.front());
      if (shape[0] != 1)
        return op.emitOpError() << "has orders for " << shape[0] << " groups of samples on one rank, expected one";
      order = train::Build(builder, op.getLoc()).reshape(operands.front(), {shape[1]});
      return success();
    }
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
      CollectiveBuilder collectives(builder, op.getLoc(), table.mesh, reshard.getOriginAttr(), order);
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
    if (solution.choice) {
      CollectiveBuilder collectives(builder, op.getLoc(), table.mesh, {}, order);
      PartitionContext context{collectives, solution.operands, solution.results, table.mesh};
      return cast<PartitionOpInterface>(op).buildPartition(*solution.choice, builder, operands, types, context);
    }
    OffsetContext context(&op, table, order);
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
    llvm::SaveAndRestore<Value> own(order, Value());
    if (failed(localize(op.getRegion(0).front(), *body)))
      return failure();
    return SmallVector<Value>(created->getResults());
  }

  func::FuncOp func;
  LayoutTable table;
  OpBuilder builder;
  IRMapping mapping;
  Value order; ///< of what is dealt in the block, once it is known
};

struct LocalizePass : tessera::impl::LocalizePassBase<LocalizePass> {
  void runOnOperation() override {
    if (failed(runOnMesh(getOperation(), [](auto func, auto mesh) { return Localizer(func, mesh).run(); })))
      signalPassFailure();
  }
};

} // namespace
