//===- Arguments.cpp - initializers, inputs and outputs of @step ----------===//

#include "compiler/dialect/train/Signature.h"
#include "frontends/onnx/Importer.h"
#include "frontends/onnx/InputDims.h"
#include "frontends/onnx/Proto.h"

using namespace mlir;

namespace tessera::onnx_import {

namespace {
/// Buffers of at most this many elements become constants if their data is there, else frozen arguments.
constexpr int64_t kMaxBufferElements = int64_t{1} << 20;
constexpr int kMaxGraphDepth = 32;
} // namespace

LogicalResult Importer::collectUses(const Nodes &nodes, int depth) {
  if (depth > kMaxGraphDepth)
    return error() << "graphs are nested deeper than " << kMaxGraphDepth;
  for (const auto &node : nodes) {
    for (const std::string &name : node.input())
      used.insert(name);
    roles.addReader(node);
    for (const auto &attribute : node.attribute())
      if (attribute.has_g()) {
        for (const auto &output : attribute.g().output())
          used.insert(output.name());
        if (failed(collectUses(attribute.g().node(), depth + 1)))
          return failure();
      }
  }
  return success();
}

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

/// The value of a buffer, if its data is there and small: then it is a constant of the step.
Constant Importer::readBuffer(const onnx::TensorProto &tensor, RankedTensorType type) {
  if (type.getNumElements() > kMaxBufferElements)
    return {};
  auto value = readTensor(&context, tensor, folder);
  if (value)
    return std::make_shared<const HostTensor>(std::move(*value));
  llvm::consumeError(value.takeError());
  return {};
}

LogicalResult Importer::addInitializer(const onnx::TensorProto &tensor, RankedTensorType type) {
  const StringRef name = tensor.name();
  const Decision decision = roles.decide(name, type);
  Constant value;
  if (decision.role == Role::Buffer)
    value = readBuffer(tensor, type);
  if (decision.role == Role::Constant) {
    auto read = readTensor(&context, tensor, folder);
    if (!read)
      return error() << "initializer '" << name << "': " << llvm::toString(read.takeError());
    value = std::make_shared<const HostTensor>(std::move(*read));
  }
  if (value) {
    note(name, type, train::TensorRole::Constant, decision.reason);
    top.names[name].constant = intern(std::move(value));
    return success();
  }
  const bool trains = decision.role == Role::Parameter;
  top.names[name].value = addArgument(name, type, trains ? train::ArgRole::Param : train::ArgRole::Frozen);
  if (decision.role == Role::Buffer)
    setArgumentAttr(train::kInit, builder.getStringAttr("given"));
  note(name, type, trains ? train::TensorRole::Param : train::TensorRole::Frozen, decision.reason);
  if (std::optional<int64_t> row = trains ? roles.paddingOf(name) : std::nullopt) {
    if (type.getRank() == 0 || *row >= type.getDimSize(0))
      return error() << "padding_idx of '" << name << "' is " << *row << ", outside of the rows of " << type;
    padding[top.names[name].value] = {*row, false};
  }
  return success();
}

LogicalResult Importer::addInitializers() {
  if (model.graph().sparse_initializer_size() > 0)
    return error() << "sparse initializers are not supported";
  for (const auto &tensor : model.graph().initializer()) {
    auto type = protoType(&context, tensor);
    if (!type)
      return error() << "initializer '" << tensor.name() << "': " << llvm::toString(type.takeError());
    if (!used.contains(tensor.name())) {
      roles.match(tensor.name());
      note(tensor.name(), *type, train::TensorRole::Unused, "no node reads it");
      continue;
    }
    if (top.names.count(tensor.name()))
      return error() << "initializer '" << tensor.name() << "' is defined twice";
    if (failed(addInitializer(tensor, *type)))
      return failure();
  }
  return roles.check(model.graph());
}

/// What the record says of lookups and dropout must have been found in the graph.
LogicalResult Importer::checkPlaced() {
  for (auto &[value, padded] : padding)
    if (!padded.placed)
      return error() << "row " << padded.row << " of '"
                     << cast<NameLoc>(cast<BlockArgument>(value).getLoc()).getName().getValue()
                     << "' is a padding row (padding_idx), but no Gather node reads this tensor";
  if (const auto &record = roles.getRecord(); record && record->activeDropouts > activeDropouts)
    return error() << "dropout was on in " << record->activeDropouts << " places of the module, the graph has "
                   << activeDropouts
                   << ": the exporter dropped it; export with dropout set to 0, or with another exporter";
  return success();
}

void Importer::note(StringRef name, RankedTensorType type, train::TensorRole role, StringRef reason) {
  tensors.push_back(
      train::TensorInfoAttr::get(&context, builder.getStringAttr(name), type, role, builder.getStringAttr(reason)));
}

LogicalResult Importer::addInputs() {
  InputDims dims(options, fileLoc);
  SmallVector<Type> elements;
  llvm::StringSet<> symbols, names;
  for (const auto &input : model.graph().input()) {
    for (const auto &dim : input.type().tensor_type().shape().dim())
      if (!fixedSize(dim))
        symbols.insert(dim.dim_param());
    if (top.names.count(input.name()))
      continue; // an initializer that is also listed as input, as files of IR version 3 do
    if (!names.insert(input.name()).second)
      return error() << "input '" << input.name() << "' is defined twice";
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
      return error() << "input '" << input.name() << "' is not a tensor with a shape";
    const int type = input.type().tensor_type().elem_type();
    elements.push_back(elementType(&context, type));
    if (!elements.back())
      return error() << "input '" << input.name() << "' has element type " << dataTypeName(type)
                     << ", which is not supported";
    dims.add(input);
  }
  for (const auto &[name, size] : options.dims)
    if (!symbols.contains(name))
      return error() << "no input has a symbolic dimension '" << name << "'";
  if (failed(dims.resolve()))
    return failure();
  for (auto [input, element] : llvm::zip_equal(dims.getInputs(), elements)) {
    const SmallVector<int64_t> shape = input.shape();
    if (!countElements(shape))
      return error() << "input '" << input.name << "' of shape " << Node::shapeText(shape) << " is too large";
    top.names[input.name].value = addArgument(input.name, RankedTensorType::get(shape, element), train::ArgRole::Input);
    if (train::DimsAttr attr = dims.getAttr(input))
      setArgumentAttr(train::kDims, attr);
  }
  return success();
}

LogicalResult Importer::addResults() {
  SmallVector<Value> results;
  SmallVector<Attribute> resultAttrs;
  for (const auto &output : model.graph().output()) {
    Entry *entry = top.find(output.name());
    if (!entry || entry->sequence)
      return error() << "output '" << output.name() << "' is not "
                     << (entry ? "a tensor" : "defined by any node, input or initializer");
    if (!entry->value) {
      Location loc = NameLoc::get(builder.getStringAttr(output.name()), fileLoc);
      entry->value = train::Build(builder, loc).constant(entry->constant->toAttr());
    }
    results.push_back(entry->value);
    resultAttrs.push_back(
        builder.getDictionaryAttr({builder.getNamedAttr(train::kName, builder.getStringAttr(output.name())),
                                   train::getRoleAttr(&context, train::ResultRole::Output)}));
  }
  if (results.empty())
    return error() << "model has no outputs";
  func::ReturnOp::create(builder, fileLoc, results);
  func.setFunctionType(
      builder.getFunctionType(func.getBody().front().getArgumentTypes(), ValueRange(results).getTypes()));
  func.setArgAttrsAttr(builder.getArrayAttr(argAttrs));
  func.setResAttrsAttr(builder.getArrayAttr(resultAttrs));
  return success();
}

} // namespace tessera::onnx_import
