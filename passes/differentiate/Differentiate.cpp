//===- Differentiate.cpp - the backward pass of a step function -----------===//
//
// Reverse-mode differentiation by one walk over the forward ops in reverse:
// each active op's rule turns the cotangents of its results into contributions
// to the cotangents of its operands. Forward values that a rule uses are
// ordinary SSA uses.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Signature.h"
#include "compiler/interfaces/Interfaces.h"
#include "passes/differentiate/Accumulation.h"
#include "passes/differentiate/Activity.h"
#include "passes/differentiate/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/differentiate/Passes.h.inc"

namespace {

class ReverseWalk {
public:
  ReverseWalk(OpBuilder &builder, Activity &activity) : builder(builder), activity(activity) {}

  void seed(Value value, Value cotangent) { cotangents.add(value, cotangent); }
  Value takeCotangent(Value value) { return cotangents.take(builder, value); }

  LogicalResult run(ArrayRef<Operation *> ops) {
    for (Operation *op : llvm::reverse(ops))
      if (activity.isActive(op) && failed(differentiate(op)))
        return failure();
    return success();
  }

private:
  LogicalResult differentiate(Operation *op);

  OpBuilder &builder;
  Activity &activity;
  Accumulation cotangents;
};

LogicalResult ReverseWalk::differentiate(Operation *op) {
  SmallVector<Value> resultCotangents;
  for (Value result : op->getResults())
    resultCotangents.push_back(takeCotangent(result));
  if (llvm::none_of(resultCotangents, [](Value cotangent) { return cotangent != nullptr; }))
    return success();
  auto rule = dyn_cast<DifferentiableOpInterface>(op);
  if (!rule)
    return op->emitError() << "'" << op->getName()
                           << "' has no gradient rule and lies between a parameter and the loss";
  SmallVector<bool> needs;
  for (unsigned index = 0; index < op->getNumOperands(); ++index)
    needs.push_back(activity.isNeeded(op, index));
  SmallVector<Value> gradients;
  if (failed(rule.buildVJP(builder, resultCotangents, needs, gradients)))
    return failure();
  for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), gradients))
    if (gradient)
      cotangents.add(operand, gradient);
  return success();
}

/// Removes ops whose results nobody uses, users before what they use.
void eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

struct Differentiate : impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isStepFunction(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp func);
};

LogicalResult Differentiate::run(func::FuncOp func) {
  FailureOr<Activity> activity = Activity::ofStep(func);
  if (failed(activity))
    return failure();
  SmallVector<train::StepResult> results = train::getResults(func);
  for (unsigned index = 0; index < results.size(); ++index)
    if (train::getResultRole(func, index) == train::ResultRole::Grad)
      return func.emitError("is already differentiated: it has a result of role \"grad\"");
  SmallVector<unsigned> paramArgs = train::getArgsWithRole(func, train::ArgRole::Param);
  if (paramArgs.empty())
    return func.emitError("has no trainable parameter: no argument of role \"param\"");
  Block &block = func.getBody().front();
  SmallVector<Operation *> forward;
  for (Operation &op : block.without_terminator())
    forward.push_back(&op);

  train::MarkBackward listener;
  OpBuilder builder(func.getContext(), &listener);
  builder.setInsertionPoint(block.getTerminator());
  StringAttr grad = builder.getStringAttr("grad");
  ReverseWalk walk(builder, *activity);
  Value loss = activity->getLoss();
  walk.seed(loss, train::Build(builder, NameLoc::get(grad, loss.getLoc())).splatLike(loss, 1.0));
  if (failed(walk.run(forward)))
    return failure();

  for (unsigned index : paramArgs) {
    Value param = func.getArgument(index);
    StringRef name = train::getArgName(func, index);
    Value gradient = walk.takeCotangent(param);
    if (!gradient)
      gradient = train::Build(builder, NameLoc::get(grad, param.getLoc())).splatLike(param, 0.0);
    results.push_back({gradient, builder.getDictionaryAttr({
                                     train::getRoleAttr(builder.getContext(), train::ResultRole::Grad),
                                     builder.getNamedAttr(train::kOf, builder.getStringAttr(name)),
                                 })});
  }
  train::setResults(func, results);
  eraseDeadOps(block);
  return success();
}

} // namespace
} // namespace tessera
