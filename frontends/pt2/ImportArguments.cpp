//===- ImportArguments.cpp - parameters, buffers, inputs, results of @step -===//

#include "compiler/dialect/train/Signature.h"
#include "frontends/common/InputDims.h"
#include "frontends/pt2/Importer.h"
#include "frontends/pt2/Reader.h"

using namespace mlir;

namespace tessera::pt2 {

namespace {
/// Buffers of at most this many elements become constants if their data is there, else frozen arguments.
constexpr int64_t kMaxBufferElements = int64_t{1} << 20;
} // namespace

Value Importer::addArgument(StringRef name, RankedTensorType type, train::ArgRole role) {
  Location loc = NameLoc::get(builder.getStringAttr(name), fileLoc);
  argAttrs.push_back(builder.getDictionaryAttr(
      {builder.getNamedAttr(train::kName, builder.getStringAttr(name)), train::getRoleAttr(&context, role)}));
  return func.getBody().front().addArgument(type, loc);
}

void Importer::setArgumentAttr(StringRef name, Attribute value) {
  NamedAttrList attrs(cast<DictionaryAttr>(argAttrs.back()));
  attrs.set(name, value);
  argAttrs.back() = attrs.getDictionary(&context);
}

Value Importer::seedArgument() {
  if (!seed)
    seed = addArgument("seed", RankedTensorType::get({}, builder.getI64Type()), train::ArgRole::Hyper);
  return seed;
}

void Importer::note(StringRef name, RankedTensorType type, train::TensorRole role, StringRef reason) {
  tensors.push_back(
      train::TensorInfoAttr::get(&context, builder.getStringAttr(name), type, role, builder.getStringAttr(reason)));
}

std::vector<std::string> namesOf(const Argument &argument) {
  std::vector<std::string> found;
  if (const auto *tensor = argument.as<TensorArg>())
    found.push_back(tensor->name);
  else if (const auto *optional = argument.as<OptionalTensorArg>(); optional && *optional)
    found.push_back((*optional)->name);
  else if (const auto *list = argument.as<std::vector<TensorArg>>())
    for (const TensorArg &entry : *list)
      found.push_back(entry.name);
  else if (const auto *list = argument.as<std::vector<OptionalTensorArg>>())
    for (const OptionalTensorArg &entry : *list)
      found.push_back(entry ? entry->name : "");
  else if (const auto *size = argument.as<SymIntArg>())
    found.push_back(size->name);
  else if (const auto *value = argument.as<SymFloatArg>())
    found.push_back(value->name);
  else if (const auto *value = argument.as<SymBoolArg>())
    found.push_back(value->name);
  return found;
}

/// Whether the node only counts a buffer of integers up, in place, and nothing else reads either.
bool Importer::isCounter(const Node &node) const {
  const Argument *self = node.input("self");
  const std::vector<std::string> read = self ? namesOf(*self) : std::vector<std::string>();
  if (node.target != "torch.ops.aten.add_.Tensor" || read.size() != 1 || node.outputs.size() != 1)
    return false;
  const bool isBuffer = llvm::any_of(program.signature.inputs, [&](const InputSpec &spec) {
    return spec.kind == InputSpec::Kind::Buffer && spec.name == read[0];
  });
  auto meta = program.graph.tensors.find(read[0]);
  const std::vector<std::string> made = namesOf(node.outputs[0]);
  return isBuffer && uses.lookup(read[0]) == 1 && made.size() == 1 && uses.lookup(made[0]) == 0 &&
         meta != program.graph.tensors.end() && meta->second.dtype == ScalarType::Long;
}

static bool isBatchNormInTraining(const Node &node) {
  const Argument *training = node.input("training");
  const bool *value = training ? training->as<bool>() : nullptr;
  return node.target == "torch.ops.aten.batch_norm.default" && value && *value;
}

/// Tells the roles which tensors nodes read, and what the program says of each. Names that share one tensor count as
/// the first of them.
void Importer::collectReaders() {
  // In one storage there may be several tensors, too: only those of one place and shape are the same.
  auto isSame = [&](const std::string &a, const std::string &b) {
    const Weight &x = program.weights.at(a), &y = program.weights.at(b);
    return x.dtype == y.dtype && x.sizes == y.sizes && x.strides == y.strides && x.storageOffset == y.storageOffset;
  };
  for (const std::vector<std::string> &group : program.tied)
    for (const std::string &name : group) {
      auto first = llvm::find_if(program.signature.inputs, [&](const InputSpec &spec) {
        return llvm::is_contained(group, spec.target) && isSame(spec.target, name);
      });
      if (first != program.signature.inputs.end())
        firstOf[name] = first->target;
    }
  llvm::StringMap<std::string> targets;
  frontend::ModelRecord record;
  record.exporter = "torch.export";
  for (const InputSpec &spec : program.signature.inputs) {
    if (spec.target.empty())
      continue;
    auto shared = firstOf.find(spec.target);
    const std::string name = shared == firstOf.end() ? spec.target : shared->second;
    targets[spec.name] = name;
    auto meta = program.graph.tensors.find(spec.name);
    if (record.byName.count(name) || meta == program.graph.tensors.end())
      continue;
    frontend::RecordedTensor tensor;
    tensor.name = name;
    for (const SymInt &size : meta->second.sizes)
      tensor.shape.push_back(size.value);
    tensor.isParameter = spec.kind == InputSpec::Kind::Parameter;
    tensor.trained = tensor.isParameter && meta->second.requiresGrad;
    record.byName[name] = record.tensors.size();
    record.tensors.push_back(std::move(tensor));
  }
  auto read = [&](const std::string &argument, const Node &node) {
    auto found = targets.find(argument);
    if (found != targets.end())
      roles.addReader(found->second, {node.name, node.modules.empty() ? "" : node.modules.back().path});
  };
  for (const Node &node : program.graph.nodes)
    for (const NamedArgument &named : node.inputs)
      for (const std::string &name : namesOf(named.argument))
        ++uses[name];
  for (const Node &node : program.graph.nodes) {
    if (isCounter(node))
      continue;
    for (const NamedArgument &named : node.inputs) {
      // In training mode a batch normalisation only makes their next values of them.
      if (isBatchNormInTraining(node) && StringRef(named.name).starts_with("running_"))
        continue;
      for (const std::string &name : namesOf(named.argument))
        read(name, node);
    }
  }
  for (frontend::RecordedTensor &tensor : record.tensors)
    tensor.unused = !roles.isRead(tensor.name);
  roles.setRecord(std::move(record));
}

/// The values of a tensor in the archive; null where it has none.
FailureOr<Constant> Importer::readConstant(StringRef name, RankedTensorType type) {
  auto weight = program.weights.find(name.str());
  if (weight == program.weights.end() || !weight->second.hasData)
    return Constant();
  llvm::Expected<std::vector<char>> bytes = readWeight(program, name.str());
  if (!bytes) {
    error() << "'" << name << "': " << llvm::toString(bytes.takeError());
    return failure();
  }
  // Booleans take a byte each, in the file and in memory.
  auto attr =
      type.getElementType().isInteger(1)
          ? DenseElementsAttr::get(type, llvm::to_vector(llvm::map_range(*bytes, [](char c) { return c != 0; })))
          : DenseElementsAttr::getFromRawBuffer(type, *bytes);
  auto value = frontend::HostTensor::fromAttr(attr);
  if (!value)
    return Constant();
  return std::make_shared<const HostTensor>(std::move(*value));
}

LogicalResult Importer::addTensor(const InputSpec &spec) {
  auto meta = program.graph.tensors.find(spec.name);
  if (meta == program.graph.tensors.end())
    return error() << "'" << spec.target << "' has no type in the program";
  Type element = elementOf(&context, meta->second.dtype);
  SmallVector<int64_t> shape;
  for (const SymInt &size : meta->second.sizes) {
    if (!size.isConstant())
      return error() << "'" << spec.target << "' has a size that is not fixed";
    shape.push_back(size.value);
  }
  if (!element || !frontend::countElements(shape))
    return error() << "'" << spec.target << "' has element type " << scalarTypeName(meta->second.dtype)
                   << ", which is not supported, or is too large";
  auto type = RankedTensorType::get(shape, element);
  auto shared = firstOf.find(spec.target);
  const std::string name = shared == firstOf.end() ? spec.target : shared->second;
  // The first of those that share a tensor has been there already.
  for (const InputSpec &other : program.signature.inputs) {
    if (&other == &spec)
      break;
    auto same = firstOf.find(other.target);
    if (same != firstOf.end() && same->second == name) {
      names[spec.name] = names[other.name];
      return success();
    }
  }
  if (!roles.isRead(name)) {
    roles.match(name);
    note(name, type, train::TensorRole::Unused, "the step does not depend on it");
    names[spec.name].unused = true;
    return success();
  }
  const frontend::Decision decision = spec.kind == InputSpec::Kind::TensorConstant
                                          ? frontend::Decision{frontend::Role::Constant, "a constant of the program"}
                                          : roles.decide(name, type);
  using frontend::Role;
  if (decision.role == Role::Constant ||
      (decision.role == Role::Buffer && type.getNumElements() <= kMaxBufferElements)) {
    FailureOr<Constant> value = readConstant(spec.target, type);
    if (failed(value))
      return failure();
    if (*value) {
      note(name, type, train::TensorRole::Constant, decision.reason);
      names[spec.name].constant = *value;
      return success();
    }
    if (decision.role == Role::Constant)
      return error() << "'" << name << "' is a constant, but the program was exported without its value";
  }
  const bool trains = decision.role == Role::Parameter;
  names[spec.name].value = addArgument(name, type, trains ? train::ArgRole::Param : train::ArgRole::Frozen);
  if (decision.role == Role::Buffer)
    setArgumentAttr(train::kInit, builder.getStringAttr("given"));
  note(name, type, trains ? train::TensorRole::Param : train::TensorRole::Frozen, decision.reason);
  return success();
}

/// Parameters that share a part of one storage cannot be trained apart.
LogicalResult Importer::checkStorages() {
  for (const std::vector<std::string> &group : program.tied) {
    const std::string *parameter = nullptr;
    for (const std::string &name : group) {
      if (!program.weights.at(name).isParameter)
        continue;
      if (parameter && firstOf.lookup(*parameter) != firstOf.lookup(name))
        return error()
               << "parameters '" << *parameter << "' and '" << name
               << "' are different parts of one storage: what trains one may change the other; clone them before "
                  "the export";
      parameter = &name;
    }
  }
  return success();
}

LogicalResult Importer::addTensors() {
  frontend::Roles::Shapes shapes;
  for (const InputSpec &spec : program.signature.inputs) {
    switch (spec.kind) {
    case InputSpec::Kind::Parameter:
    case InputSpec::Kind::Buffer:
    case InputSpec::Kind::TensorConstant:
      if (failed(addTensor(spec)))
        return failure();
      for (const SymInt &size : program.graph.tensors.at(spec.name).sizes)
        shapes[spec.target].push_back(size.value);
      shapes.try_emplace(spec.target); // of no dimensions
      break;
    case InputSpec::Kind::CustomObject:
    case InputSpec::Kind::Token:
      return error() << "'" << spec.target << "' is an object, not a tensor: not supported";
    case InputSpec::Kind::ConstantInput:
    case InputSpec::Kind::UserInput:
      break;
    }
  }
  return roles.check(shapes);
}

LogicalResult Importer::addInputs() {
  frontend::InputDims dims(options, fileLoc);
  SmallVector<Type> elements;
  std::vector<std::pair<std::string, const TensorMeta *>> inputs;
  for (const InputSpec &spec : program.signature.inputs) {
    if (spec.kind != InputSpec::Kind::UserInput)
      continue;
    auto meta = program.graph.tensors.find(spec.name);
    if (!spec.argument.as<TensorArg>() || meta == program.graph.tensors.end())
      return error() << "input '" << spec.name << "' is not a tensor";
    elements.push_back(elementOf(&context, meta->second.dtype));
    if (!elements.back())
      return error() << "input '" << spec.name << "' has element type " << scalarTypeName(meta->second.dtype)
                     << ", which is not supported";
    SmallVector<frontend::FileDim> sizes;
    for (const SymInt &size : meta->second.sizes) {
      const std::string symbol = size.symbol();
      if (!size.isConstant() && symbol.empty())
        return error() << "input '" << spec.name << "' has size " << size.expression
                       << ", an expression of symbols: only symbols are supported";
      sizes.push_back({size.isConstant() ? std::optional(size.value) : std::nullopt, symbol});
    }
    dims.add(spec.name, sizes);
    inputs.emplace_back(spec.name, &meta->second);
  }
  if (failed(dims.resolve()))
    return failure();
  for (auto [input, element, given] : llvm::zip_equal(dims.getInputs(), elements, inputs)) {
    const SmallVector<int64_t> shape = input.shape();
    if (!frontend::countElements(shape))
      return error() << "input '" << input.name << "' of shape " << shapeText(shape) << " is too large";
    for (auto [dim, size] : llvm::enumerate(given.second->sizes)) {
      auto range = program.ranges.find(size.symbol());
      if (size.isConstant() || range == program.ranges.end())
        continue;
      if ((range->second.min && shape[dim] < *range->second.min) ||
          (range->second.max && shape[dim] > *range->second.max))
        return error() << "dimension " << dim << " of '" << input.name << "' is " << shape[dim]
                       << ", outside of what the program was exported for (" << range->second.min.value_or(0) << " to "
                       << (range->second.max ? std::to_string(*range->second.max) : "any") << ")";
    }
    names[input.name].value = addArgument(input.name, RankedTensorType::get(shape, element), train::ArgRole::Input);
    if (train::DimsAttr attr = dims.getAttr(input))
      setArgumentAttr(train::kDims, attr);
  }
  return success();
}

LogicalResult Importer::addResults() {
  SmallVector<Value> results;
  SmallVector<Attribute> resultAttrs;
  const auto outputs = llvm::count_if(program.signature.outputs,
                                      [](const OutputSpec &spec) { return spec.kind == OutputSpec::Kind::UserOutput; });
  int64_t number = 0;
  for (const OutputSpec &spec : program.signature.outputs) {
    switch (spec.kind) {
    case OutputSpec::Kind::UserOutput:
    case OutputSpec::Kind::LossOutput:
      break;
    case OutputSpec::Kind::BufferMutation:
    case OutputSpec::Kind::ParameterMutation:
      return error() << "the module changes '" << spec.target << "' in its forward pass: not supported yet";
    case OutputSpec::Kind::UserInputMutation:
      return error() << "the module changes its input '" << spec.target << "': not supported";
    default:
      return error() << "the program has gradients among its results: export the forward pass alone";
    }
    auto found = names.find(spec.name);
    if (found == names.end() || !found->second.isTensor())
      return error() << "output '" << spec.name << "' is not a tensor";
    Entry &entry = found->second;
    if (!entry.value) {
      Location loc = NameLoc::get(builder.getStringAttr(spec.name), fileLoc);
      entry.value = train::Build(builder, loc).constant(entry.constant->toAttr());
    }
    results.push_back(entry.value);
    // What a module returns has no names in the file: "output", or "output0", "output1" and so on.
    const std::string name = spec.kind == OutputSpec::Kind::LossOutput ? "loss"
                             : outputs == 1                            ? "output"
                                                                       : "output" + std::to_string(number++);
    resultAttrs.push_back(builder.getDictionaryAttr({builder.getNamedAttr(train::kName, builder.getStringAttr(name)),
                                                     train::getRoleAttr(&context, train::ResultRole::Output)}));
  }
  if (results.empty())
    return error() << "the program has no outputs";
  func::ReturnOp::create(builder, fileLoc, results);
  func.setFunctionType(
      builder.getFunctionType(func.getBody().front().getArgumentTypes(), ValueRange(results).getTypes()));
  func.setArgAttrsAttr(builder.getArrayAttr(argAttrs));
  func.setResAttrsAttr(builder.getArrayAttr(resultAttrs));
  return success();
}

} // namespace tessera::pt2
