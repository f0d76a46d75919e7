//===- ImportArguments.cpp - parameters, buffers, inputs, results of @step -===//

#include "frontends/pt2/Guard.h"
#include "frontends/pt2/Importer.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace tessera::pt2 {

/// Finds names of one parameter. Whatever else shares a storage with a parameter would have to follow it: it is
/// refused.
LogicalResult Importer::findShared() {
  llvm::StringMap<size_t> order; // of the signature
  for (auto [i, spec] : llvm::enumerate(program.signature.inputs))
    order.try_emplace(spec.target, i);
  auto inputOf = [&](const std::string &name) -> const InputSpec & { return program.signature.inputs[order[name]]; };
  auto isTrained = [&](const std::string &name) { return program.graph.tensors.at(inputOf(name).name).requiresGrad; };
  for (std::vector<std::string> group : program.tied) {
    llvm::erase_if(group, [&](const std::string &name) { // tensors without elements share nothing
      return !order.count(name) || llvm::is_contained(program.weights.at(name).sizes, 0);
    });
    llvm::sort(group, [&](const std::string &a, const std::string &b) { return order[a] < order[b]; });
    auto isParameter = [&](const std::string &name) { return inputOf(name).kind == InputSpec::Kind::Parameter; };
    auto first = llvm::find_if(group, isParameter);
    if (first == group.end()) {
      for (const std::string &name : group)
        for (const std::string &other : group)
          if (const StringRef buffer = inputOf(name).name;
              name != other && mutations.isWritten(buffer) &&
              (mutations.isTemporary(buffer) || !program.weights.at(name).isSame(program.weights.at(other))))
            return error() << "the module changes buffer '" << name << "', which shares its memory with '" << other
                           << "': clone it before the export";
      continue;
    }
    const Weight &whole = program.weights.at(*first);
    for (const std::string &name : group) {
      if (!isParameter(name) || !program.weights.at(name).isSame(whole) || isTrained(name) != isTrained(*first))
        return error() << "'" << name << "' shares the memory of parameter '" << *first
                       << "' and is not the same parameter"
                       << ": it would change when that is trained; clone it before the export";
      shared[name] = *first;
    }
  }
  return success();
}

const std::string &Importer::firstOf(const std::string &name) const {
  auto found = shared.find(name);
  return found == shared.end() ? name : found->second;
}

bool Importer::isCounter(const Node &node) const {
  if (options.batchNorm != "inference" || node.target != "torch.ops.aten.add_.Tensor" || node.outputs.size() != 1)
    return false;
  const Argument *self = node.input("self");
  const std::vector<std::string> read = self ? namesOf(*self) : std::vector<std::string>(),
                                 made = namesOf(node.outputs[0]);
  if (read.size() != 1 || made.size() != 1 || isUsed.contains(made[0]))
    return false;
  auto meta = program.graph.tensors.find(read[0]);
  return meta != program.graph.tensors.end() && meta->second.dtype == ScalarType::Long &&
         llvm::any_of(program.signature.inputs, [&](const InputSpec &spec) {
           return spec.kind == InputSpec::Kind::Buffer && spec.name == read[0] &&
                  StringRef(spec.target).ends_with("num_batches_tracked");
         });
}

bool Importer::isNormalisedByBatch(const Node &node) const {
  if (node.target != "torch.ops.aten.batch_norm.default")
    return false;
  const Argument *training = node.input("training");
  const bool *value = training ? training->as<bool>() : nullptr;
  return options.batchNorm.empty() ? value && *value : options.batchNorm == "train";
}

void Importer::findMutations() {
  for (const Node &node : program.graph.nodes)
    for (const NamedArgument &named : node.inputs)
      for (const std::string &name : namesOf(named.argument))
        isUsed.insert(name);
  for (const OutputSpec &spec : program.signature.outputs)
    for (const std::string &name : namesOf(spec.argument))
      isOutput.insert(name);
  mutations.find(
      program, [&](const Node &node) { return isCounter(node); },
      [&](const Node &node) { return isNormalisedByBatch(node); });
}

/// Tells the roles which tensors nodes read, and what the program says of each.
void Importer::collectReaders() {
  llvm::StringMap<std::string> targets;
  frontend::ModelRecord record;
  record.exporter = "torch.export";
  for (const InputSpec &spec : program.signature.inputs) {
    if (spec.target.empty())
      continue;
    const std::string &name = firstOf(spec.target);
    targets[spec.name] = name;
    auto meta = program.graph.tensors.find(spec.name);
    if (record.byName.count(name) || meta == program.graph.tensors.end())
      continue;
    frontend::RecordedTensor tensor;
    tensor.name = name;
    for (const SymInt &size : meta->second.sizes)
      tensor.shape.push_back(size.value);
    if (isComplexType(meta->second.dtype))
      tensor.shape.push_back(2);
    tensor.isParameter = spec.kind == InputSpec::Kind::Parameter;
    tensor.trained = tensor.isParameter && meta->second.requiresGrad;
    record.byName[name] = record.tensors.size();
    record.tensors.push_back(std::move(tensor));
  }
  for (const Node &node : program.graph.nodes) {
    if (isCounter(node))
      continue;
    for (const NamedArgument &named : node.inputs)
      for (const std::string &name : namesOf(named.argument))
        if (auto found = targets.find(name); found != targets.end())
          roles.addReader(found->second, {node.name, node.modules.empty() ? "" : node.modules.back().path});
  }
  for (frontend::RecordedTensor &tensor : record.tensors)
    tensor.unused = !roles.isRead(tensor.name);
  roles.setRecord(std::move(record));
}

/// The values of a weight of this type.
static llvm::Expected<HostTensor> readValues(const Archive &archive, const Program &program, const std::string &name,
                                             RankedTensorType type) {
  if (auto found = program.weights.find(name); found != program.weights.end() && !found->second.hasData)
    return llvm::createStringError(
        "the program was exported without its values, and the step needs them as a constant: "
        "let it be a real tensor in the export");
  llvm::Expected<std::vector<char>> bytes = readWeight(archive, program, name);
  if (!bytes)
    return bytes.takeError();
  // Booleans take a byte each.
  auto attr =
      type.getElementType().isInteger(1)
          ? DenseElementsAttr::get(type, llvm::to_vector(llvm::map_range(*bytes, [](char c) { return c != 0; })))
          : DenseElementsAttr::getFromRawBuffer(type, *bytes);
  if (std::optional<HostTensor> value = HostTensor::fromAttr(attr))
    return std::move(*value);
  return llvm::createStringError("its element type is not supported");
}

LogicalResult Importer::addTensor(const InputSpec &spec) {
  const bool isComplex = isComplexType(program.graph.tensors.at(spec.name).dtype);
  RankedTensorType type = typeOf(program.graph.tensors.at(spec.name));
  if (isComplex && (!type || mutations.isChanged(spec.name)))
    return error() << "'" << spec.target << "': complex tensors of a module are supported as complex64 or complex128, "
                   << "and only if it does not change them";
  if (!type)
    return error() << "'" << spec.target << "' has an element type that is not supported ("
                   << scalarTypeName(program.graph.tensors.at(spec.name).dtype) << "), or is too large";
  const std::string &name = firstOf(spec.target);
  if (name != spec.target) { // it has been there
    names[spec.name] = byTarget.lookup(name);
    return success();
  }
  if (mutations.isChanged(spec.name)) {
    byTarget[name] = names[spec.name] = addBuffer(spec, type);
    return success();
  }
  if (!roles.isRead(name)) {
    step.addUnused(name, type, roles);
    return success();
  }
  FailureOr<Entry> entry =
      step.addTensor(name, type, roles, "tensor", [&] { return readValues(archive, program, name, type); });
  if (failed(entry))
    return failure();
  entry->isComplex = isComplex;
  entry->constant = calls.intern(std::move(entry->constant));
  byTarget[name] = *entry;
  names[spec.name] = std::move(*entry);
  return success();
}

/// How a buffer begins: running statistics as a new module's, any other one as it is in the file, if that is one
/// number.
Entry Importer::addBuffer(const InputSpec &spec, RankedTensorType type) {
  std::string init = mutations.initOf(spec.name).str();
  // The counter beside running statistics.
  StringRef module = spec.target;
  if (module.consume_back("num_batches_tracked"))
    for (const InputSpec &other : program.signature.inputs)
      if (other.target == (module + "running_mean").str() && !mutations.initOf(other.name).empty())
        init = "zeros";
  if (init.empty()) {
    llvm::Expected<HostTensor> values = readValues(archive, program, spec.target, type);
    double value = std::numeric_limits<double>::quiet_NaN(); // that of all elements
    if (values)
      value = values->uniform().value_or(value);
    else
      llvm::consumeError(values.takeError());
    init = "given";
    if (std::isfinite(value)) {
      init.clear();
      llvm::raw_string_ostream(init) << "constant:" << llvm::format("%.17g", value);
    }
  }
  Entry entry = step.addBuffer(spec.target, type, init, roles);
  buffers[spec.name] = entry.value;
  bufferNames[spec.name] = spec.target;
  return entry;
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
      if (isComplexType(program.graph.tensors.at(spec.name).dtype))
        shapes[spec.target].push_back(2);
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
  std::vector<const TensorMeta *> inputs;
  for (const InputSpec &spec : program.signature.inputs) {
    if (spec.kind != InputSpec::Kind::UserInput)
      continue;
    auto meta = program.graph.tensors.find(spec.name);
    if (!spec.argument.as<TensorArg>() || meta == program.graph.tensors.end())
      return error() << "input '" << spec.name << "' is not a tensor";
    if (isComplexType(meta->second.dtype))
      return error() << "input '" << spec.name << "': " << kNoComplex;
    if (!elementOf(&context, meta->second.dtype))
      return error() << "input '" << spec.name << "' has element type " << scalarTypeName(meta->second.dtype)
                     << ", which is not supported";
    SmallVector<frontend::FileDim> sizes;
    for (const SymInt &size : meta->second.sizes) {
      // Sizes of one expression are equal, whatever its symbols are.
      sizes.push_back({size.isConstant() ? std::optional(size.value) : std::nullopt, size.expression});
    }
    dims.add(spec.name, sizes);
    inputs.push_back(&meta->second);
  }
  if (failed(dims.resolve()))
    return failure();
  for (auto [input, meta] : llvm::zip_equal(dims.getInputs(), inputs))
    for (auto [dim, size] : llvm::enumerate(meta->sizes))
      if (!size.symbol().empty())
        symbols[size.symbol()] = input.dims[dim].size;
  for (auto [input, meta] : llvm::zip_equal(dims.getInputs(), inputs)) {
    for (auto [dim, size] : llvm::enumerate(meta->sizes)) {
      if (failed(bindSize(input.name, dim, size, input.dims[dim].size)))
        return failure();
      if (size.tree && input.dims[dim].role == train::DimRole::Sample)
        llvm::append_range(batchSymbols, size.tree->symbols());
    }
    FailureOr<Value> value = step.addInput(dims, input, elementOf(&context, meta->dtype));
    if (failed(value))
      return failure();
    names[input.name].value = *value;
  }
  auto sizeOf = [&](StringRef name, int64_t dim) -> std::optional<int64_t> {
    for (const auto &input : dims.getInputs())
      if (input.name == name && dim >= 0 && dim < static_cast<int64_t>(input.dims.size()))
        return input.dims[dim].size;
    return std::nullopt;
  };
  for (const std::string &guard : program.guards) {
    std::optional<bool> is = holds(guard, sizeOf);
    if (!is || !*is)
      return error() << "the program was exported on the condition that " << guard
                     << (is ? ", which does not hold for these sizes" : ", which is not understood");
  }
  return success();
}

/// The number that a symbol must be for an expression of it, `2*s + 1`, to be `size`; nothing if there is none.
static std::optional<int64_t> solve(const SymInt &expression, StringRef symbol, int64_t size) {
  auto at = [&](int64_t number) { return expression.evaluate({{symbol.str(), number}}); };
  const std::optional<int64_t> zero = at(0), one = at(1);
  if (!zero || !one || *one <= *zero || (size - *zero) % (*one - *zero) != 0)
    return std::nullopt;
  const int64_t number = (size - *zero) / (*one - *zero);
  return at(number) == size ? std::optional(number) : std::nullopt;
}

/// Lets dimension `dim` of an input be `chosen`: finds the symbol of its expression, and checks that the program was
/// exported for it.
LogicalResult Importer::bindSize(StringRef input, size_t dim, const SymInt &size, int64_t chosen) {
  if (size.isConstant())
    return success();
  auto refuse = [&] { return error() << "dimension " << dim << " of '" << input << "' is " << chosen << ", "; };
  const std::vector<std::string> names = size.tree ? size.tree->symbols() : std::vector<std::string>();
  if (names.size() != 1)
    return refuse() << "but the program has " << size.expression << ", which is not an expression of one symbol";
  if (!symbols.count(names.front())) {
    if (std::optional<int64_t> number = solve(size, names.front(), chosen))
      symbols[names.front()] = *number;
    else
      return refuse() << "which is not " << size.expression << " for any " << names.front();
  }
  const int64_t number = symbols[names.front()];
  if (size.evaluate(symbols) != chosen)
    return refuse() << "which is not " << size.expression << " for " << names.front() << " = " << number
                    << ": inputs of several rows for each sample must have them in a dimension of their own";
  auto range = program.ranges.find(names.front());
  if (range == program.ranges.end() ||
      (number >= range->second.min.value_or(number) && number <= range->second.max.value_or(number)))
    return success();
  InFlightDiagnostic diagnostic = refuse();
  if (size.symbol().empty())
    diagnostic << size.expression << " with " << names.front() << " = " << number << ", ";
  diagnostic << "outside of what the program was exported for (" << range->second.min.value_or(0) << " to "
             << (range->second.max ? std::to_string(*range->second.max) : "any") << ")";
  if (number == 1 && !size.symbol().empty())
    diagnostic << "; torch.export makes a constant of a size of 1, so export it again with an example of that size: "
                  "python -m tessera export --batch 1, or one sample in the example";
  return diagnostic;
}

/// Names of what the module returns, in order.
static std::vector<std::string> resultNames(const Program &program) {
  const auto count = static_cast<size_t>(llvm::count_if(program.signature.outputs, [](const OutputSpec &spec) {
    return spec.kind == OutputSpec::Kind::UserOutput || spec.kind == OutputSpec::Kind::LossOutput;
  }));
  std::optional<std::vector<std::string>> found = leafNames(program.outSpec, program.namedTuples);
  if (found && found->size() == count)
    return *found;
  std::vector<std::string> numbered;
  for (size_t i = 0; i < count; ++i)
    numbered.push_back(count == 1 ? "output" : "output" + std::to_string(i));
  return numbered;
}

LogicalResult Importer::addResults() {
  const std::vector<std::string> results = resultNames(program);
  size_t number = 0;
  for (const OutputSpec &spec : program.signature.outputs) {
    std::string name;
    switch (spec.kind) {
    case OutputSpec::Kind::UserOutput:
      name = results[number++];
      break;
    case OutputSpec::Kind::LossOutput:
      ++number;
      name = "loss";
      break;
    case OutputSpec::Kind::BufferMutation:
    case OutputSpec::Kind::ParameterMutation:
      return error() << "the module changes '" << spec.target << "' in its forward pass: not supported yet";
    case OutputSpec::Kind::UserInputMutation:
      return error() << "the module changes its input '" << spec.target << "': not supported";
    case OutputSpec::Kind::GradientToParameter:
    case OutputSpec::Kind::GradientToUserInput:
    case OutputSpec::Kind::Token:
      return error() << "the program has gradients or effects among its results: export the forward pass alone";
    }
    if (!spec.argument.as<TensorArg>())
      continue; // None or a number of Python, which nothing is trained by
    if (mutations.isStaleOutput(spec.name))
      return error() << "output '" << spec.name << "' may be a view of a buffer that the module has changed since";
    auto found = names.find(spec.name);
    if (found == names.end() || (!found->second.value && !found->second.constant))
      return error() << "output '" << spec.name << "' is not a tensor";
    if (found->second.isComplex)
      return error() << "output '" << name << "': " << kNoComplex;
    if (found->second.mask)
      return error() << "output '" << name
                     << "' has elements that a mask from data names (x[mask]), whose number is not "
                     << "known: torch.where keeps the shape";
    found->second.value = step.addResult(name, found->second);
  }
  return step.numResults() > 0 ? success() : error() << "the program has no outputs";
}

} // namespace tessera::pt2
