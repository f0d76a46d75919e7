//===- Step.cpp - the function @step while a file is imported -------------===//

#include "frontends/common/Step.h"

#include "compiler/dialect/train/Program.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace tessera::frontend {

/// Buffers of at most this many elements become constants if their data is there, else frozen arguments.
static constexpr int64_t kMaxBufferElements = int64_t{1} << 20;
/// Nodes that an error names; of real models they are few kinds, of hostile files as many as fit.
static constexpr size_t kMaxReported = 200;

Step::Step(Location loc) : builder(loc.getContext()), loc(loc) {
  loc.getContext()->loadDialect<train::TrainDialect, func::FuncDialect>();
  module = ModuleOp::create(loc);
  builder.setInsertionPointToStart(module->getBody());
  func = func::FuncOp::create(builder, loc, "step", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(func.addEntryBlock());
}

Location Step::locOf(StringRef name) { return NameLoc::get(builder.getStringAttr(name), loc); }

Value Step::addArgument(StringRef name, RankedTensorType type, train::ArgRole role) {
  argAttrs.push_back(builder.getDictionaryAttr({builder.getNamedAttr(train::kName, builder.getStringAttr(name)),
                                                train::getRoleAttr(builder.getContext(), role)}));
  return func.getBody().front().addArgument(type, locOf(name));
}

void Step::setArgumentAttr(StringRef name, Attribute value) {
  NamedAttrList attrs(cast<DictionaryAttr>(argAttrs.back()));
  attrs.set(name, value);
  argAttrs.back() = attrs.getDictionary(builder.getContext());
}

void Step::note(StringRef name, RankedTensorType type, train::TensorRole role, StringRef reason) {
  tensors.push_back(train::TensorInfoAttr::get(builder.getContext(), builder.getStringAttr(name), type, role,
                                               builder.getStringAttr(reason)));
}

Value Step::seed() {
  if (!seedArgument)
    seedArgument = addArgument("seed", RankedTensorType::get({}, builder.getI64Type()), train::ArgRole::Hyper);
  return seedArgument;
}

FailureOr<Entry> Step::addTensor(StringRef name, RankedTensorType type, Roles &roles, StringRef what,
                                 llvm::function_ref<llvm::Expected<HostTensor>()> read) {
  const Decision decision = roles.decide(name, type);
  const bool isBuffer = decision.role == Role::Buffer;
  Entry entry;
  if (decision.role == Role::Constant || (isBuffer && type.getNumElements() <= kMaxBufferElements)) {
    llvm::Expected<HostTensor> value = read();
    if (value)
      entry.constant = std::make_shared<const HostTensor>(std::move(*value));
    else if (isBuffer)
      llvm::consumeError(value.takeError());
    else
      return error() << what << " '" << name << "': " << llvm::toString(value.takeError());
  }
  if (entry.constant) {
    note(name, type, train::TensorRole::Constant, decision.reason);
    return entry;
  }
  const bool trains = decision.role == Role::Parameter;
  entry.value = addArgument(name, type, trains ? train::ArgRole::Param : train::ArgRole::Frozen);
  if (isBuffer)
    setArgumentAttr(train::kInit, builder.getStringAttr("given"));
  note(name, type, trains ? train::TensorRole::Param : train::TensorRole::Frozen, decision.reason);
  if (std::optional<int64_t> row = trains ? roles.paddingOf(name) : std::nullopt) {
    if (type.getRank() == 0 || *row >= type.getDimSize(0))
      return error() << "padding_idx of '" << name << "' is " << *row << ", outside of the rows of " << type;
    padding[entry.value] = {*row, false};
  }
  return entry;
}

Entry Step::addBuffer(StringRef name, RankedTensorType type, StringRef init, Roles &roles) {
  const auto [isParameter, isConstant, isFrozen] = roles.match(name);
  if (isParameter || isConstant || isFrozen)
    emitWarning(loc) << "'" << name << "' stays a buffer whatever the flags say: the module changes it";
  Entry entry;
  entry.value = addArgument(name, type, train::ArgRole::Buffer);
  setArgumentAttr(train::kInit, builder.getStringAttr(init));
  note(name, type, train::TensorRole::Buffer, "a buffer that the module changes");
  nextOf[entry.value] = entry.value;
  return entry;
}

void Step::addUnused(StringRef name, RankedTensorType type, Roles &roles) {
  roles.match(name);
  note(name, type, train::TensorRole::Unused, "no node reads it");
}

LogicalResult Step::checkPadding(StringRef lookup) {
  for (auto &[value, padded] : padding)
    if (!padded.placed)
      return error() << "row " << padded.row << " of '"
                     << cast<NameLoc>(cast<BlockArgument>(value).getLoc()).getName().getValue()
                     << "' is a padding row (padding_idx), but no " << lookup << " node reads this tensor";
  return success();
}

LogicalResult Step::reportUnsupported() {
  if (unsupported.empty())
    return success();
  InFlightDiagnostic diagnostic = error();
  diagnostic << unsupported.size() << (unsupported.size() == 1 ? " node" : " nodes") << " cannot be imported";
  for (const auto &[where, what] : llvm::ArrayRef(unsupported).take_front(kMaxReported))
    diagnostic.attachNote(where) << what;
  if (unsupported.size() > kMaxReported)
    diagnostic.attachNote(loc) << unsupported.size() - kMaxReported << " more";
  return diagnostic;
}

FailureOr<Value> Step::addInput(const InputDims &dims, const InputDims::Input &input, Type element) {
  const SmallVector<int64_t> shape = input.shape();
  if (!countElements(shape))
    return error() << "input '" << input.name << "' of shape " << shapeText(shape) << " is too large";
  Value value = addArgument(input.name, RankedTensorType::get(shape, element), train::ArgRole::Input);
  if (train::DimsAttr attr = dims.getAttr(input))
    setArgumentAttr(train::kDims, attr);
  return value;
}

Value Step::addResult(StringRef name, Entry entry) {
  if (!entry.value)
    entry.value = train::Build(builder, locOf(name)).constant(entry.constant->toAttr());
  results.push_back(entry.value);
  resultAttrs.push_back(
      builder.getDictionaryAttr({builder.getNamedAttr(train::kName, builder.getStringAttr(name)),
                                 train::getRoleAttr(builder.getContext(), train::ResultRole::Output)}));
  return entry.value;
}

OwningOpRef<ModuleOp> Step::finish() {
  if (runningPairs > 0)
    emitWarning(loc) << "the running mean and variance are not updated by training (" << runningPairs
                     << (runningPairs == 1 ? " node" : " nodes") << "); the exported weights hold their initial values";
  for (auto [buffer, next] : nextOf) {
    results.push_back(next);
    resultAttrs.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(train::kAlias, builder.getI64IntegerAttr(cast<BlockArgument>(buffer).getArgNumber()))));
  }
  func::ReturnOp::create(builder, loc, results);
  func.setFunctionType(
      builder.getFunctionType(func.getBody().front().getArgumentTypes(), ValueRange(results).getTypes()));
  func.setArgAttrsAttr(builder.getArrayAttr(argAttrs));
  func.setResAttrsAttr(builder.getArrayAttr(resultAttrs));
  if (!tensors.empty())
    (*module)->setAttr(train::kTensors, builder.getArrayAttr(tensors));
  if (!mode.empty())
    (*module)->setAttr(train::kMode, builder.getStringAttr(mode));
  if (!evaluationDiffers.empty())
    (*module)->setAttr(train::kEvaluationDiffers, builder.getStringAttr(evaluationDiffers));
  if (weightMap)
    (*module)->setAttr(train::kWeightMap, weightMap);
  if (failed(verify(*module)))
    return {};
  return std::move(module);
}

} // namespace tessera::frontend
