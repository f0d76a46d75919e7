//===- InsertOptimizer.cpp - gradients become updates of the parameters ---===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/optimize/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_INSERTOPTIMIZER
#include "passes/optimize/Passes.h.inc"

namespace {

/// One flat unit, its gradient before scaling, and the scale if it is scaled.
struct Update {
  unsigned paramArg;
  StringAttr name;
  int64_t decayElements;
  Value grad, scale;
  SmallVector<BlockArgument> states;
  SmallVector<Value> newValues; ///< of the parameter, then of its states
};

struct InsertOptimizer : impl::InsertOptimizerBase<InsertOptimizer> {
  using InsertOptimizerBase::InsertOptimizerBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isTrainingStep(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult checkOptions(func::FuncOp func);
  FailureOr<SmallVector<Update>> collectUpdates(func::FuncOp func);
  LogicalResult checkNoDecay(func::FuncOp func, const Update &update);
  void addStates(func::FuncOp func, Update &update, ArrayRef<StringRef> states);
  void buildAdamw(OpBuilder &builder, func::FuncOp func, Update &update, ArrayRef<Value> hyper);
  void buildSgd(OpBuilder &builder, func::FuncOp func, Update &update, ArrayRef<Value> hyper);
  LogicalResult run(func::FuncOp func);
};

LogicalResult InsertOptimizer::checkOptions(func::FuncOp func) {
  auto outside = [&](StringRef option, double value, StringRef range) {
    return func.emitError() << option << " must lie in " << range << ", got " << value;
  };
  if (kind != "adamw" && kind != "sgd")
    return func.emitError() << "unknown optimizer '" << kind << "', expected adamw or sgd";
  if (!(beta1 >= 0 && beta1 < 1))
    return outside("beta1", beta1, "[0, 1)");
  if (!(beta2 >= 0 && beta2 < 1))
    return outside("beta2", beta2, "[0, 1)");
  if (!(momentum >= 0 && momentum < 1))
    return outside("momentum", momentum, "[0, 1)");
  if (!(epsilon > 0))
    return func.emitError() << "epsilon must be positive, got " << epsilon.getValue();
  if (!(weightDecay >= 0))
    return func.emitError() << "weight-decay must not be negative, got " << weightDecay.getValue();
  if (kind == "sgd" && nesterov && momentum == 0)
    return func.emitError("nesterov needs a momentum");
  return success();
}

/// Parameters were ordered by whether they decay when they were flattened; a regular expression given here must agree.
LogicalResult InsertOptimizer::checkNoDecay(func::FuncOp func, const Update &update) {
  llvm::Regex regex(noDecay);
  std::string problem;
  if (!regex.isValid(problem))
    return func.emitError() << "no-decay is not a regular expression: " << problem;
  for (Attribute attr : func.getArgAttrOfType<ArrayAttr>(update.paramArg, train::kSegments)) {
    auto segment = cast<DictionaryAttr>(attr);
    StringRef name = segment.getAs<StringAttr>("name").getValue();
    bool decays = segment.getAs<IntegerAttr>("offset").getInt() < update.decayElements;
    if (decays == regex.match(name))
      return func.emitError() << "no-decay " << (decays ? "matches" : "does not match") << " parameter '" << name
                              << "', but flatten-parameters laid it out " << (decays ? "with" : "without")
                              << " weight decay; give both the same no-decay";
  }
  return success();
}

FailureOr<SmallVector<Update>> InsertOptimizer::collectUpdates(func::FuncOp func) {
  llvm::StringMap<Value> gradients;
  for (auto [index, result] : llvm::enumerate(train::getResults(func)))
    if (train::getResultRole(func, index) == "grad")
      gradients[cast<StringAttr>(result.attrs.get(train::kOf)).getValue()] = result.value;

  SmallVector<Update> updates;
  for (unsigned index : train::getArgsWithRole(func, "param")) {
    Update update;
    update.paramArg = index;
    update.name = StringAttr::get(func.getContext(), train::getArgName(func, index));
    auto decay = func.getArgAttrOfType<IntegerAttr>(index, train::kDecayElements);
    if (!decay || !func.getArgAttrOfType<ArrayAttr>(index, train::kSegments))
      return func.emitError() << "parameter '" << update.name.getValue()
                              << "' is not a flat unit; run flatten-parameters first";
    update.decayElements = decay.getInt();
    if (!noDecay.empty() && failed(checkNoDecay(func, update)))
      return failure();
    update.grad = gradients.lookup(update.name.getValue());
    if (!update.grad)
      return func.emitError() << "parameter '" << update.name.getValue()
                              << "' has no gradient; run differentiate first";
    updates.push_back(update);
  }
  if (updates.empty())
    return func.emitError("has no trainable parameter: no argument of role \"param\"");
  return updates;
}

/// A gradient that is multiplied by one number for all elements is left unscaled, and the update takes the number: the
/// scaled gradient is then never stored.
void foldScale(Update &update) {
  auto product = update.grad.getDefiningOp<train::MulOp>();
  auto repeated = product ? product.getRhs().getDefiningOp<train::BroadcastOp>() : nullptr;
  if (!repeated || train::tensorType(repeated.getOperand()).getRank() != 0)
    return;
  update.grad = product.getLhs();
  update.scale = repeated.getOperand();
}

void InsertOptimizer::addStates(func::FuncOp func, Update &update, ArrayRef<StringRef> states) {
  Builder builder(func.getContext());
  auto type = cast<RankedTensorType>(func.getArgument(update.paramArg).getType());
  for (StringRef state : states) {
    std::string name = (update.name.getValue() + "." + state).str();
    update.states.push_back(train::appendArgument(func, type.clone(train::accumulationType(type.getElementType())),
                                                  "state", name,
                                                  {builder.getNamedAttr(train::kOf, update.name),
                                                   builder.getNamedAttr(train::kState, builder.getStringAttr(state))},
                                                  NameLoc::get(builder.getStringAttr(name))));
  }
}

void InsertOptimizer::buildAdamw(OpBuilder &builder, func::FuncOp func, Update &update, ArrayRef<Value> hyper) {
  auto op = train::AdamwUpdateOp::create(
      builder, NameLoc::get(update.name), func.getArgument(update.paramArg), update.states[0], update.states[1],
      update.grad, hyper[0], hyper[1], hyper[2], update.scale, /*offset=*/Value(), /*apply=*/Value(),
      llvm::APFloat(beta1.getValue()), llvm::APFloat(beta2.getValue()), llvm::APFloat(epsilon.getValue()),
      llvm::APFloat(weightDecay.getValue()), update.decayElements);
  op->setAttr(train::kUnit, update.name);
  update.newValues.assign(op->result_begin(), op->result_end());
}

void InsertOptimizer::buildSgd(OpBuilder &builder, func::FuncOp func, Update &update, ArrayRef<Value> hyper) {
  Value param = func.getArgument(update.paramArg), buffer = update.states.empty() ? Value() : update.states[0];
  auto op = train::SgdUpdateOp::create(
      builder, NameLoc::get(update.name), param.getType(), buffer ? buffer.getType() : Type(), param, buffer,
      update.grad, hyper[0], update.scale, /*offset=*/Value(), /*apply=*/Value(), llvm::APFloat(momentum.getValue()),
      llvm::APFloat(weightDecay.getValue()), update.decayElements, nesterov);
  op->setAttr(train::kUnit, update.name);
  update.newValues.assign(op->result_begin(), op->result_end());
}

LogicalResult InsertOptimizer::run(func::FuncOp func) {
  if (failed(checkOptions(func)))
    return failure();
  FailureOr<SmallVector<Update>> updates = collectUpdates(func);
  if (failed(updates))
    return failure();

  SmallVector<StringRef> states, hyperNames = {"lr"};
  if (kind == "adamw") {
    states = {"m", "v"};
    hyperNames.append({"bias_correction1", "bias_correction2"});
  } else if (momentum > 0) {
    states = {"momentum"};
  }
  for (Update &update : *updates) {
    foldScale(update);
    addStates(func, update, states);
  }
  OpBuilder builder(func.getBody().front().getTerminator());
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  SmallVector<Value> hyper;
  for (StringRef name : hyperNames)
    hyper.push_back(train::appendArgument(func, scalar, "hyper", name, {}, NameLoc::get(builder.getStringAttr(name))));
  for (Update &update : *updates) {
    if (kind == "adamw")
      buildAdamw(builder, func, update, hyper);
    else
      buildSgd(builder, func, update, hyper);
  }

  SmallVector<train::StepResult> results;
  for (auto [index, result] : llvm::enumerate(train::getResults(func)))
    if (train::getResultRole(func, index) != "grad")
      results.push_back(result);
  auto addAliased = [&](Value value, unsigned arg) {
    results.push_back(
        {value, builder.getDictionaryAttr(builder.getNamedAttr(train::kAlias, builder.getI64IntegerAttr(arg)))});
  };
  for (Update &update : *updates)
    addAliased(update.newValues.front(), update.paramArg);
  for (Update &update : *updates)
    for (auto [state, value] : llvm::zip_equal(update.states, ArrayRef<Value>(update.newValues).drop_front()))
      addAliased(value, state.getArgNumber());
  train::setResults(func, results);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  return success();
}

} // namespace
} // namespace tessera
