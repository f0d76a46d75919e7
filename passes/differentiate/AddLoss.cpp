//===- AddLoss.cpp - turns a model's outputs into one loss ----------------===//

#include "compiler/dialect/train/CountValid.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/differentiate/DimRoles.h"
#include "passes/differentiate/LossTerms.h"
#include "passes/differentiate/Passes.h"
#include "passes/differentiate/WholeBatch.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_ADDLOSS
#include "passes/differentiate/Passes.h.inc"

namespace {

using train::DimRole;
using train::DimsAttr;

struct AddLoss : impl::AddLossBase<AddLoss> {
  using AddLossBase::AddLossBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isStepFunction(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp func);
  FailureOr<Value> findOutput(func::FuncOp func, StringRef name);
  static std::string nameOf(func::FuncOp func, Value output);
  FailureOr<SmallVector<DimRole>> findDims(func::FuncOp func, Value output);
  Value addTargets(func::FuncOp func, RankedTensorType type, ArrayRef<DimRole> roles, Location loc);
  FailureOr<Value> crossEntropy(func::FuncOp func, Value logits);
  FailureOr<train::StepResult> addMetric(func::FuncOp func, StringRef spelled, Value loss);
  FailureOr<Value> meanSquaredError(func::FuncOp func, Value output);
};

/// The output called `name`; without a name the only one, or the one called "logits".
FailureOr<Value> AddLoss::findOutput(func::FuncOp func, StringRef name) {
  SmallVector<train::StepResult> results = train::getResults(func);
  llvm::erase_if(results, [](const train::StepResult &result) { return result.attrs.contains(train::kAlias); });
  Value byDefault = results.size() == 1 ? results.front().value : Value();
  std::string names;
  for (const train::StepResult &result : results) {
    auto attr = result.attrs.getAs<StringAttr>(train::kName);
    if (!attr)
      continue;
    if (attr.getValue() == (name.empty() ? "logits" : name))
      return result.value;
    names += (names.empty() ? "'" : ", '") + attr.str() + "'";
  }
  if (name.empty() && byDefault)
    return byDefault;
  InFlightDiagnostic error = func.emitError();
  if (name.empty())
    error << "the loss needs one output of the model, got several and none called 'logits'";
  else
    error << "the model has no output '" << name << "'";
  error << "; its outputs are " << (names.empty() ? "not named" : names);
  if (name.empty())
    error << "; let the model return the logits alone or under the name 'logits', or its loss (--loss output:<name>)";
  return error;
}

/// The name of an output; `<name>` if it has none.
std::string AddLoss::nameOf(func::FuncOp func, Value output) {
  for (const train::StepResult &result : train::getResults(func))
    if (auto name = result.attrs.getAs<StringAttr>(train::kName); name && result.value == output)
      return name.str();
  return "<name>";
}

/// There is one target for each sample, so that a dimension of the output counts the samples of the inputs: the one
/// that does by the ops that made it, else dimension 0 if it is as large as that of an input. Returns what the output's
/// dimensions count.
FailureOr<SmallVector<DimRole>> AddLoss::findDims(func::FuncOp func, Value output) {
  SmallVector<DimRole> roles = DimRoles(func).of(output);
  auto samples = llvm::count(roles, DimRole::Sample);
  // Of logits the last dimension counts classes, also where these are the samples of the batch (contrastive losses).
  if (kind == "cross-entropy" && samples > 1 && roles.back() == DimRole::Sample) {
    roles.back() = DimRole::None;
    --samples;
  }
  if (samples == 1)
    return roles;
  if (samples > 1)
    return func.emitError() << kind << " needs an output with a value for each sample, got "
                            << train::tensorType(output) << ", of which " << samples << " dimensions count samples";
  const RankedTensorType type = train::tensorType(output);
  bool hasInputs = false;
  for (unsigned index : train::getArgsWithRole(func, train::ArgRole::Input)) {
    ArrayRef<int64_t> shape = train::shapeOf(func.getArgument(index));
    const int64_t dim = std::max<int64_t>(train::getDims(func, index).getSampleDim(), 0);
    if (shape.empty())
      continue;
    hasInputs = true;
    if (type.getRank() > 0 && type.getDimSize(0) == shape[dim]) {
      func.emitRemark()
          << "dimension 0 of the output is taken for samples: it is as large as the batch, but the ops that "
             "make it do not say what it counts";
      roles.front() = DimRole::Sample;
      return roles;
    }
  }
  if (!hasInputs && type.getRank() > 0) {
    roles.front() = DimRole::Sample;
    return roles;
  }
  return func.emitError()
         << kind << " needs an output with a value for each sample, got " << type
         << ", whose dimension 0 is not the batch of the inputs; if the output is the loss itself, use "
            "--loss output:<name>";
}

/// Appends the argument `targets`. Its dimensions say what they count where inputs do. Null: there is one already.
Value AddLoss::addTargets(func::FuncOp func, RankedTensorType type, ArrayRef<DimRole> roles, Location loc) {
  for (BlockArgument arg : func.getArguments())
    if (train::isBatchArgument(func, arg.getArgNumber()) && train::getArgName(func, arg.getArgNumber()) == "targets") {
      func.emitError() << "the model has an input 'targets', and the loss " << kind
                       << " adds an array of that name: give the input another name, or compute the loss in the model "
                          "(--loss output:<name>)";
      return {};
    }
  const bool isSaid = llvm::any_of(train::getArgsWithRole(func, train::ArgRole::Input),
                                   [&](unsigned index) { return func.getArgAttr(index, train::kDims) != nullptr; });
  SmallVector<NamedAttribute> more;
  if (isSaid || roles.front() != DimRole::Sample) // else that is what is assumed
    more.emplace_back(StringAttr::get(func.getContext(), train::kDims), DimsAttr::get(func.getContext(), roles));
  return train::appendArgument(func, type, train::ArgRole::Target, "targets", more, loc);
}

/// Sum over the rows that count, divided by their number in the whole batch.
FailureOr<Value> AddLoss::crossEntropy(func::FuncOp func, Value logits) {
  RankedTensorType type = train::tensorType(logits);
  if (type.getRank() < 2 || !isa<FloatType>(type.getElementType()))
    return func.emitError() << "cross-entropy needs floating-point logits of shape [batch…, classes], got " << type
                            << (type.getRank() > 0
                                    ? std::string()
                                    : ", one number; if it is the loss, use --loss output:" + nameOf(func, logits));
  FailureOr<SmallVector<DimRole>> dims = findDims(func, logits);
  if (failed(dims))
    return failure();
  // PyTorch's function has classes in dimension 1. Where targets of both have one shape, the data cannot tell.
  const ArrayRef<int64_t> shape = type.getShape();
  if (type.getRank() > 2 && (*dims)[1] != DimRole::Position && shape.drop_front(2) == shape.drop_front().drop_back())
    func.emitWarning() << "of logits " << type << " the last dimension counts classes, and targets are "
                       << type.clone(shape.drop_back(), IntegerType::get(func.getContext(), 32))
                       << ": where dimension 1 counts them, as for PyTorch's cross_entropy, let the model return "
                          "logits.movedim(1, -1)";
  if (dims->back() == DimRole::Sample)
    return func.emitError() << "cross-entropy needs logits of shape [batch…, classes], got " << type
                            << ", whose last dimension counts samples";
  if (shape.back() == 1)
    return func.emitError()
           << "the cross-entropy of one class is always 0, and the logits are " << type
           << ": --loss mse for numbers, or a binary cross-entropy in the model (--loss output:<name>)";
  if (!(labelSmoothing >= 0.0 && labelSmoothing <= 1.0))
    return func.emitError() << "label-smoothing must lie in [0, 1], got " << double(labelSmoothing);

  if (!llvm::isInt<32>(ignoreIndex))
    return func.emitError() << "ignore-index must be a 32-bit integer, as targets are, got " << ignoreIndex.getValue();

  OpBuilder builder(func.getBody().front().getTerminator());
  Location loc = NameLoc::get(builder.getStringAttr("loss"));
  train::Build build(builder, loc);
  auto targetType = RankedTensorType::get(type.getShape().drop_back(), builder.getI32Type());
  Value targets = addTargets(func, targetType, ArrayRef(*dims).drop_back(), loc);
  if (!targets)
    return failure();
  int64_t classes = type.getShape().back(), rows = targetType.getNumElements();
  auto rowType = RankedTensorType::get({rows}, train::accumulationType(type.getElementType()));
  IntegerAttr ignored = builder.getI64IntegerAttr(ignoreIndex);
  Value flatLogits = build.reshape(logits, {rows, classes});
  Value flatTargets = build.reshape(targets, {rows});
  auto loss = train::CrossEntropyOp::create(builder, loc, rowType, rowType, flatLogits, flatTargets, ignored,
                                            builder.getF64FloatAttr(labelSmoothing));
  Value count = train::CountValidOp::create(builder, loc, rowType.clone(ArrayRef<int64_t>()), targets, ignored);
  Value total = build.sumAll(loss.getLoss());
  return build.div(total, count);
}

/// The share of the targets that count whose class has the largest logit, of equal ones the first. `loss`: as
/// crossEntropy makes it.
Value accuracyBeside(Value loss) {
  auto mean = loss.getDefiningOp<train::DivOp>();
  auto total = mean.getLhs().getDefiningOp<train::ReduceOp>();
  auto rows = total.getOperand().getDefiningOp<train::CrossEntropyOp>();
  OpBuilder builder(loss.getContext());
  builder.setInsertionPointAfter(mean);
  train::Build build(builder, NameLoc::get(builder.getStringAttr("accuracy")));
  Value targets = rows.getTargets();
  auto best = train::ArgmaxOp::create(builder, build.loc, targets.getType(), rows.getLogits(), /*dim=*/1);
  Value isHit = build.compare(train::CompareDirection::Eq, best, targets);
  if (auto ignored = rows.getIgnoreIndex()) { // which may be a class
    Value index = build.splatLike(targets, static_cast<double>(static_cast<int64_t>(*ignored)));
    isHit = build.mul(isHit, build.compare(train::CompareDirection::Ne, targets, index));
  }
  Value hits = build.sumAll(build.convert(isHit, train::tensorType(loss).getElementType()));
  return build.div(hits, mean.getRhs());
}

/// What the runtime calls other numbers of an evaluation (docs/telemetry.md).
bool isNameOfEvaluation(StringRef name) {
  return llvm::is_contained({"loss", "perplexity", "targets", "samples", "batches", "seconds"}, name);
}

/// A number besides the loss that evaluation computes.
FailureOr<train::StepResult> AddLoss::addMetric(func::FuncOp func, StringRef spelled, Value loss) {
  Builder builder(func.getContext());
  auto result = [&](Value value, StringRef name) {
    NamedAttrList attrs;
    attrs.append(train::getRoleAttr(func.getContext(), train::ResultRole::Evaluated));
    attrs.set(train::kName, builder.getStringAttr(name));
    return train::StepResult{value, attrs.getDictionary(func.getContext())};
  };
  StringRef name = spelled;
  if (!name.consume_front("output:")) {
    if (spelled != "accuracy")
      return func.emitError() << "unknown metric '" << spelled << "', expected accuracy or output:<name>";
    if (kind != "cross-entropy")
      return func.emitError() << "the metric accuracy is of the loss cross-entropy, got " << kind
                              << "; output:<name> takes a number that the model computes";
    return result(accuracyBeside(loss), spelled);
  }
  FailureOr<Value> output = findOutput(func, name);
  if (failed(output))
    return failure();
  if (name.empty() || isNameOfEvaluation(name))
    return func.emitError() << "the metric 'output:" << name << "' needs an output of another name: an evaluation has "
                            << "numbers called loss, perplexity, targets, samples, batches and seconds";
  const RankedTensorType type = train::tensorType(*output);
  if (type.getNumElements() != 1)
    return func.emitError() << "output '" << name << "' cannot be a metric: expected one number, got " << type;
  OpBuilder before(func.getBody().front().getTerminator());
  return result(train::Build(before, output->getLoc()).reshape(*output, {}), name);
}

FailureOr<Value> AddLoss::meanSquaredError(func::FuncOp func, Value output) {
  RankedTensorType type = train::tensorType(output);
  if (!isa<FloatType>(type.getElementType()) || type.getNumElements() == 0)
    return func.emitError() << "mse needs a floating-point output with elements, got " << type;
  FailureOr<SmallVector<DimRole>> dims = findDims(func, output);
  if (failed(dims))
    return failure();
  OpBuilder builder(func.getBody().front().getTerminator());
  Location loc = NameLoc::get(builder.getStringAttr("loss"));
  train::Build build(builder, loc);
  Value targets = addTargets(func, type, *dims, loc);
  if (!targets)
    return failure();
  Type wide = train::accumulationType(type.getElementType());
  Value error = build.sub(build.convert(output, wide), build.convert(targets, wide));
  Value total = build.sumAll(build.mul(error, error));
  total.getDefiningOp()->setAttr(train::kMean, builder.getUnitAttr());
  return build.div(total, build.splatLike(total, static_cast<double>(type.getNumElements())));
}

/// One of the passes after this may split the batch. Says how the losses of the parts make the loss; terms that are
/// means are divided by the number of parts where others are sums. Where it cannot be split, what is known of the loss
/// from how it was `added` is all that is said.
void splitTerms(func::FuncOp func, Value loss, std::optional<train::OfBatch> added) {
  llvm::SetVector<Operation *> slice = opsOf(loss);
  LossTerms terms(func, [&](Operation &op, const LossTerms &known) {
    return slice.contains(&op) ? takeOfWholeBatch(op, known, slice) : nullptr;
  });
  if (terms.of(loss).kind == Dependence::Kind::Other) {
    if (added) {
      train::setOfBatch(func, train::kLossOfBatch, *added);
      func->setAttr(train::kSamplesMeet, UnitAttr::get(func.getContext()));
    }
    return;
  }
  const bool hasMeans = shareMeans(terms, loss);
  const bool isSum = terms.of(loss).kind == Dependence::Kind::Sum;
  using train::OfBatch;
  train::setOfBatch(func, train::kLossOfBatch, hasMeans ? OfBatch::Terms : isSum ? OfBatch::Sum : OfBatch::Mean);
  const auto wholes =
      llvm::count_if(slice, [](Operation *op) { return isa<train::BarrierOp>(op) && op->hasAttr(train::kOfBatch); });
  if (wholes > 0)
    func->setAttr(train::kNumOfBatch, Builder(func.getContext()).getI64IntegerAttr(wholes));
}

LogicalResult AddLoss::run(func::FuncOp func) {
  StringRef spelled = kind;
  bool isOutput = spelled.consume_front("output:");
  if (!isOutput && spelled != "cross-entropy" && spelled != "mse")
    return func.emitError() << "unknown loss '" << kind << "', expected cross-entropy, mse or output:<name>";
  if (isOutput && spelled.empty())
    return func.emitError("the loss 'output:' needs the name of an output");
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (train::getResultRole(func, index) == train::ResultRole::Loss)
      return func.emitError("already has a loss");

  FailureOr<Value> output = findOutput(func, isOutput ? spelled : StringRef(of));
  if (failed(output))
    return failure();
  FailureOr<Value> loss = output;
  std::optional<train::OfBatch> added;
  if (isOutput) {
    RankedTensorType type = train::tensorType(*output);
    if (type.getNumElements() != 1 || !isa<FloatType>(type.getElementType()))
      return func.emitError() << "output '" << spelled
                              << "' cannot be the loss: expected one floating-point number, got " << type;
    OpBuilder builder(func.getBody().front().getTerminator());
    train::Build build(builder, output->getLoc());
    loss = build.convert(build.reshape(*output, {}), train::accumulationType(type.getElementType()));
  } else if (spelled == "mse") {
    loss = meanSquaredError(func, *output);
    added = train::OfBatch::Mean;
  } else {
    loss = crossEntropy(func, *output);
    added = train::OfBatch::Sum;
  }
  if (failed(loss))
    return failure();
  Builder builder(func.getContext());
  SmallVector<train::StepResult> results = {
      {*loss, builder.getDictionaryAttr(train::getRoleAttr(builder.getContext(), train::ResultRole::Loss))}};
  for (const OptionText &metric : metrics) {
    FailureOr<train::StepResult> added = addMetric(func, StringRef(metric), *loss);
    if (failed(added))
      return failure();
    const Attribute name = added->attrs.get(train::kName);
    if (llvm::any_of(results, [&](const train::StepResult &other) { return other.attrs.get(train::kName) == name; }))
      return func.emitError() << "two metrics are called " << name;
    results.push_back(*added);
  }
  splitTerms(func, *loss, added);
  llvm::copy_if(train::getResults(func), std::back_inserter(results),
                [](const train::StepResult &result) { return result.attrs.contains(train::kAlias); });
  train::setResults(func, results);
  return success();
}

} // namespace
} // namespace tessera
