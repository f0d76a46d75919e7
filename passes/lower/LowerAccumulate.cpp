//===- LowerAccumulate.cpp - train.accumulate to exec.repeat --------------===//
//
// Makes the accumulators of a micro-batch loop explicit; see Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_LOWERACCUMULATE
#include "passes/lower/Passes.h.inc"

namespace {

void lower(train::AccumulateOp op) {
  OpBuilder builder(op);
  train::Build build(builder, op.getLoc());
  const size_t numSums = op.getNumResults() - op.getCarried();
  SmallVector<Value> init;
  for (Value result : op.getResults().take_front(numSums))
    init.push_back(build.zeros(train::tensorType(result)));
  llvm::append_range(init, op.getInit());
  auto repeat = exec::RepeatOp::create(builder, op.getLoc(), op.getResultTypes(), op.getCount(), op.getBatch(), init);
  for (NamedAttribute attr : op->getDiscardableAttrs())
    repeat->setDiscardableAttr(attr.getName(), attr.getValue());
  repeat.getBody().takeBody(op.getBody());
  Block &body = repeat.getBody().front();

  auto yield = cast<train::YieldOp>(body.getTerminator());
  SmallVector<Value> next;
  const unsigned firstSum = 1 + op.getBatch().size();
  for (auto [result, value] : llvm::enumerate(yield.getOperands())) {
    if (result >= numSums) { // carried as it is
      next.push_back(value);
      continue;
    }
    Value accumulator = body.insertArgument(firstSum + result, value.getType(), op.getLoc());
    // The addition stands right after its value, so that it can join the kernel that makes the value.
    builder.setInsertionPoint(yield);
    if (Operation *source = value.getDefiningOp(); source && source->getBlock() == &body)
      builder.setInsertionPointAfter(source);
    next.push_back(train::Build(builder, value.getLoc()).add(accumulator, value));
  }
  builder.setInsertionPoint(yield);
  exec::YieldOp::create(builder, yield.getLoc(), next);
  yield.erase();
  op.replaceAllUsesWith(repeat.getResults());
  op.erase();
}

struct LowerAccumulate : impl::LowerAccumulateBase<LowerAccumulate> {
  void runOnOperation() override {
    SmallVector<train::AccumulateOp> ops;
    getOperation().walk([&](train::AccumulateOp op) { ops.push_back(op); });
    for (train::AccumulateOp op : ops)
      lower(op);
  }
};

} // namespace
} // namespace tessera
