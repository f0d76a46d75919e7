//===- VerifySharding.cpp - checks the IR that this phase hands on --------===//

#include "passes/shard/Passes.h"
#include "passes/shard/Sharding.h"

#include "llvm/ADT/TypeSwitch.h"

namespace tessera {
#define GEN_PASS_DEF_VERIFYSHARDINGPASS
#include "passes/shard/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::dist;
using namespace tessera::shard;

namespace {

/// Types are global: every operand has the layout its op needs, and nothing owed is forgotten.
class GlobalVerifier {
public:
  GlobalVerifier(func::FuncOp func, MeshAttr mesh) : func(func), table(mesh) {}

  LogicalResult run() {
    Block &body = func.getBody().front();
    if (failed(table.readArguments(func)) || failed(table.readOps(body)))
      return failure();
    auto walked = func.walk([&](Operation *op) { return WalkResult(op == func ? success() : verify(op)); });
    return failure(walked.wasInterrupted());
  }

private:
  LogicalResult expect(OpOperand &use, const Layout &need) {
    const Layout &have = table.at(use.get());
    if (have == need)
      return success();
    for (const Partial &owed : have.unreduced)
      if (!need.isUnreduced(owed.axis) && have.dims == need.dims)
        return use.getOwner()->emitOpError()
               << "operand " << use.getOperandNumber() << " is a partial " << stringifyReductionKind(owed.kind)
               << " over axis " << table.mesh.getNames()[owed.axis] << " that is never reduced";
    return use.getOwner()->emitOpError() << "operand " << use.getOperandNumber() << " has sharding "
                                         << have.toAttr(table.mesh) << ", expected " << need.toAttr(table.mesh);
  }

  LogicalResult expect(Operation *op, ArrayRef<Layout> needs) {
    for (auto [operand, need] : llvm::zip_equal(op->getOpOperands(), needs))
      if (failed(expect(operand, need)))
        return failure();
    return success();
  }

  LogicalResult expectResults(Operation *op, ArrayRef<Layout> gives) {
    for (auto [result, layout] : llvm::zip_equal(op->getResults(), gives))
      if (table.at(result) != layout &&
          !(getOperandState(result, layout).isZero && table.at(result).dims == layout.dims))
        return op->emitOpError() << "result " << result.getResultNumber() << " is annotated with "
                                 << table.at(result).toAttr(table.mesh) << ", expected " << layout.toAttr(table.mesh);
    return success();
  }

  LogicalResult verify(Operation *op) {
    if (auto reshard = dyn_cast<ReshardOp>(op)) {
      if (failed(expect(op, {Layout::get(reshard.getFrom(), table.mesh)})))
        return failure();
      return expectResults(op, {Layout::get(reshard.getTo(), table.mesh)});
    }
    if (isa<func::ReturnOp>(op)) {
      for (OpOperand &operand : op->getOpOperands()) {
        ShardingAttr sharding = resultSharding(func, operand.getOperandNumber());
        if (!sharding)
          return op->emitOpError() << "result " << operand.getOperandNumber() << " has no sharding";
        if (failed(expect(operand, Layout::get(sharding, table.mesh))))
          return failure();
      }
      return success();
    }
    if (isa<train::YieldOp>(op)) {
      SmallVector<Layout> yielded;
      for (Value operand : op->getOperands())
        yielded.push_back(table.at(operand));
      return expectResults(op->getParentOp(), yielded);
    }
    if (auto accumulate = dyn_cast<train::AccumulateOp>(op)) {
      SmallVector<Layout> needs;
      for (auto [index, operand] : llvm::enumerate(op->getOperands()))
        needs.push_back(accumulate.isCarried(index) ? table.at(operand) : accumulateOperand(table.at(operand)));
      for (auto [init, next] : llvm::zip_equal(
               accumulate.getInit(),
               accumulate.getBody().front().getTerminator()->getOperands().take_back(accumulate.getCarried())))
        if (table.at(init) != table.at(next))
          return op->emitOpError() << "carries a value with sharding " << table.at(init).toAttr(table.mesh)
                                   << " and yields " << table.at(next).toAttr(table.mesh);
      return expect(op, needs);
    }
    for (Value operand : op->getOperands())
      if (operand.getParentBlock() != op->getBlock() && table.at(operand).isDealt())
        return op->emitOpError() << "reads what is dealt in the order of another block of ops";
    if (isa<DealOp>(op))
      for (Operation *other = op->getNextNode(); other; other = other->getNextNode())
        if (isa<DealOp>(other))
          return other->emitOpError() << "is the second one of a block of ops";
    if (auto deal = dyn_cast<DealOp>(op))
      return expect(op, {orderLayout(deal.getOrder(), table.mesh)});
    auto rule = dyn_cast<ShardingRuleOpInterface>(op);
    if (!rule)
      return op->emitOpError() << "is left over before localisation";
    Solution solution = table.solveOp(rule);
    if (failed(expect(op, solution.operands)))
      return failure();
    return expectResults(op, solution.results);
  }

  func::FuncOp func;
  LayoutTable table;
};

/// Types are local: only collectives communicate, along dimension 0, over axes of the mesh.
class LocalVerifier {
public:
  LocalVerifier(func::FuncOp func, MeshAttr mesh) : func(func), mesh(mesh) {}

  LogicalResult run() {
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (failed(verifyBoundary(func.getArgAttrDict(i), "argument", i)))
        return failure();
    for (unsigned i = 0; i < func.getNumResults(); ++i)
      if (failed(verifyBoundary(func.getResultAttrDict(i), "result", i)))
        return failure();
    auto walked = func.walk([&](Operation *op) { return WalkResult(verify(op)); });
    return failure(walked.wasInterrupted());
  }

private:
  /// That the two fit each other and the local type, the dialect verifies.
  LogicalResult verifyBoundary(DictionaryAttr attrs, StringRef what, unsigned index) {
    if (!attrs || !attrs.contains(kSharding) || !attrs.contains(kGlobal))
      return func.emitOpError() << what << " " << index << " lacks '" << kSharding << "' or '" << kGlobal << "'";
    return success();
  }

  LogicalResult verify(Operation *op) {
    if (isa<ConstrainOp, MoveAxesOp, DealOp, ReshardOp>(op) || op->hasAttr(kShardings))
      return op->emitOpError() << "is left over after localisation";
    auto slice = dyn_cast<SliceLocalOp>(op);
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!slice && !collective)
      return success();
    const SmallVector<int64_t, 2> dims =
        slice ? SmallVector<int64_t, 2>{static_cast<int64_t>(slice.getDim())} : collective.getDims();
    for (int64_t dim : dims)
      if (dim != 0)
        return op->emitOpError() << "works on dimension " << dim << ", expected 0";
    return verifyAxes(op, slice ? slice.getAxes() : collective.getAxes());
  }

  LogicalResult verifyAxes(Operation *op, ArrayAttr axes) {
    llvm::SmallDenseSet<StringAttr> seen;
    for (auto axis : axes.getAsRange<StringAttr>()) {
      if (mesh.getAxisIndex(axis.getValue()) < 0)
        return op->emitOpError() << "names axis " << axis << ", which is not in the mesh " << mesh;
      if (!seen.insert(axis).second)
        return op->emitOpError() << "names axis " << axis << " twice";
    }
    return success();
  }

  func::FuncOp func;
  MeshAttr mesh;
};

struct VerifyShardingPass : tessera::impl::VerifyShardingPassBase<VerifyShardingPass> {
  void runOnOperation() override {
    if (failed(runOnMesh(getOperation(), [](func::FuncOp func, MeshAttr mesh) {
          const bool isLocal = func.getNumArguments() > 0 && func.getArgAttr(0, kGlobal);
          return isLocal ? LocalVerifier(func, mesh).run() : GlobalVerifier(func, mesh).run();
        })))
      signalPassFailure();
  }
};

} // namespace
