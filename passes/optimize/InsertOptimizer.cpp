//===- InsertOptimizer.cpp - gradients become updates of the parameters ---===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/NamePattern.h"
#include "compiler/dialect/train/Optimizer.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/optimize/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/xxhash.h"

#include <cmath>

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

  LogicalResult readOptions(func::FuncOp func);
  FailureOr<SmallVector<Update>> collectUpdates(func::FuncOp func);
  LogicalResult checkNoDecay(func::FuncOp func, const Update &update);
  void addStates(func::FuncOp func, Update &update);
  SmallVector<Value> addHyper(func::FuncOp func);
  void build(OpBuilder &builder, func::FuncOp func, Update &update, ArrayRef<Value> hyper, Value seed);
  LogicalResult run(func::FuncOp func);

  const train::Optimizer *optimizer = nullptr;
  train::OptimizerSettings settings;
};

LogicalResult InsertOptimizer::readOptions(func::FuncOp func) {
  optimizer = train::findOptimizer(kind);
  if (!optimizer)
    return func.emitError() << "unknown optimizer '" << kind << "', expected " << train::optimizerNames();
  settings.clear();
  for (StringRef text : numbers) {
    auto [name, number] = text.rsplit('=');
    double value = 0;
    if (number.getAsDouble(value) || !settings.try_emplace(name.str(), value).second)
      return func.emitError() << "settings: expected <name>=<number>, each once, got '" << text << "'";
  }
  if (std::string problem = train::completeSettings(*optimizer, settings); !problem.empty())
    return func.emitError(problem);
  if (!(weightDecay >= 0))
    return func.emitError() << "weight-decay must not be negative, got " << double(weightDecay);
  if (!(clipValue >= 0) || !std::isfinite(clipValue))
    return func.emitError() << "clip-value must not be negative, got " << double(clipValue);
  if (moments != "fp32" && moments != "bf16")
    return func.emitError() << "unknown moments '" << moments << "', expected fp32 or bf16";
  if (moments == "bf16" && !optimizer->hasNarrowStates)
    return func.emitError() << "moments cannot be bf16: " << optimizer->name << " has no random rounding of its states";
  return success();
}

/// Parameters were ordered by whether they decay when they were flattened; a regular expression given here must agree.
LogicalResult InsertOptimizer::checkNoDecay(func::FuncOp func, const Update &update) {
  std::optional<train::NamePattern> pattern;
  if (failed(train::NamePattern::read(func.getLoc(), "--no-decay", noDecay, pattern)))
    return failure();
  for (train::SegmentAttr segment : train::getSegments(func, update.paramArg)) {
    StringRef name = segment.getName().getValue();
    bool decays = segment.getOffset() < update.decayElements;
    if (decays == (pattern && pattern->match(name)))
      return func.emitError() << "no-decay " << (decays ? "matches" : "does not match") << " parameter '" << name
                              << "', but flatten-parameters laid it out " << (decays ? "with" : "without")
                              << " weight decay; give both the same no-decay";
  }
  return success();
}

FailureOr<SmallVector<Update>> InsertOptimizer::collectUpdates(func::FuncOp func) {
  llvm::StringMap<Value> gradients;
  for (auto [index, result] : llvm::enumerate(train::getResults(func)))
    if (train::getResultRole(func, index) == train::ResultRole::Grad)
      gradients[cast<StringAttr>(result.attrs.get(train::kOf)).getValue()] = result.value;

  SmallVector<Update> updates;
  for (unsigned index : train::getArgsWithRole(func, train::ArgRole::Param)) {
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
    if (Type element = cast<RankedTensorType>(func.getArgument(index).getType()).getElementType();
        moments == "bf16" && element.getIntOrFloatBitWidth() > 32)
      return func.emitError() << "moments cannot be bf16: parameters of '" << update.name.getValue() << "' are "
                              << element << ", whose moments are too";
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

void InsertOptimizer::addStates(func::FuncOp func, Update &update) {
  Builder builder(func.getContext());
  auto type = cast<RankedTensorType>(func.getArgument(update.paramArg).getType());
  Type element = moments == "bf16" ? builder.getBF16Type() : train::accumulationType(type.getElementType());
  for (StringRef state : optimizer->states(settings)) {
    std::string name = (update.name.getValue() + "." + state).str();
    update.states.push_back(train::appendArgument(func, type.clone(element), train::ArgRole::State, name,
                                                  {builder.getNamedAttr(train::kOf, update.name),
                                                   builder.getNamedAttr(train::kState, builder.getStringAttr(state))},
                                                  NameLoc::get(builder.getStringAttr(name))));
  }
}

SmallVector<Value> InsertOptimizer::addHyper(func::FuncOp func) {
  Builder builder(func.getContext());
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  SmallVector<Value> hyper;
  auto add = [&](StringRef name, ArrayRef<NamedAttribute> more) {
    hyper.push_back(train::appendArgument(func, scalar, train::ArgRole::Hyper, name, more,
                                          NameLoc::get(builder.getStringAttr(name))));
  };
  add("lr", {});
  for (const train::BiasCorrection &correction : optimizer->biasCorrections)
    add(correction.name, builder.getNamedAttr(train::kBeta, builder.getF64FloatAttr(settings.at(correction.base))));
  return hyper;
}

/// The seed of the step's random numbers; an argument if there is none yet.
Value seedOf(func::FuncOp func) {
  for (unsigned index : train::getArgsWithRole(func, train::ArgRole::Hyper))
    if (train::getArgName(func, index) == "seed")
      return func.getArgument(index);
  Builder builder(func.getContext());
  return train::appendArgument(func, RankedTensorType::get({}, builder.getI64Type()), train::ArgRole::Hyper, "seed", {},
                               NameLoc::get(builder.getStringAttr("seed")));
}

void InsertOptimizer::build(OpBuilder &builder, func::FuncOp func, Update &update, ArrayRef<Value> hyper, Value seed) {
  SmallVector<Value> states(update.states.begin(), update.states.end());
  // Units have streams of their own; those of dropout are small numbers.
  auto stream = static_cast<int64_t>(llvm::xxHash64(update.name.getValue()));
  Operation *op = optimizer->build(builder, NameLoc::get(update.name),
                                   {func.getArgument(update.paramArg), update.grad, update.scale, states, hyper,
                                    settings, weightDecay, update.decayElements,
                                    clipValue > 0 ? builder.getF64FloatAttr(clipValue) : FloatAttr(), seed, stream});
  op->setAttr(train::kUnit, update.name);
  update.newValues.assign(op->result_begin(), op->result_end());
}

LogicalResult InsertOptimizer::run(func::FuncOp func) {
  if (failed(readOptions(func)))
    return failure();
  FailureOr<SmallVector<Update>> updates = collectUpdates(func);
  if (failed(updates))
    return failure();

  for (Update &update : *updates) {
    foldScale(update);
    addStates(func, update);
  }
  OpBuilder builder(func.getBody().front().getTerminator());
  SmallVector<Value> hyper = addHyper(func);
  Value seed = moments == "bf16" ? seedOf(func) : Value();
  for (Update &update : *updates)
    build(builder, func, update, hyper, seed);

  SmallVector<train::StepResult> results;
  for (auto [index, result] : llvm::enumerate(train::getResults(func)))
    if (train::getResultRole(func, index) != train::ResultRole::Grad)
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
