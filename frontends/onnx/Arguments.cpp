//===- Arguments.cpp - initializers, inputs and outputs of @step ----------===//

#include "frontends/onnx/Importer.h"

#include "compiler/dialect/train/Signature.h"
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

/// The size that the file gives. The dynamo exporter writes one that tracing fixed as a symbol whose name is a number.
static std::optional<int64_t> fixedSize(const onnx::TensorShapeProto::Dimension &dim) {
  int64_t size = dim.dim_value();
  if (dim.has_dim_value() || (dim.has_dim_param() && !StringRef(dim.dim_param()).getAsInteger(10, size)))
    return size;
  return std::nullopt;
}

FailureOr<int64_t> Importer::sizeOf(const onnx::TensorShapeProto::Dimension &dim, StringRef input, int64_t axis) {
  const int64_t wanted = axis == 0 ? options.batch : axis == 1 ? options.sequence : 0;
  const char *option = axis == 0 ? "--batch" : "--seq";
  if (std::optional<int64_t> given = fixedSize(dim)) {
    const int64_t fixed = *given;
    if (fixed < 1) {
      error() << "input '" << input << "' has size " << fixed << " in dimension " << axis << ", expected at least 1";
      return failure();
    }
    if (wanted && wanted != fixed) {
      error() << "input '" << input << "' has the fixed size " << fixed << " in dimension " << axis << ", got "
              << option << " " << wanted << "; export the model with a symbolic dimension";
      return failure();
    }
    return fixed;
  }
  if (auto found = options.dims.find(dim.dim_param()); dim.has_dim_param() && found != options.dims.end()) {
    if (found->second >= 1)
      return found->second;
    error() << "dimension '" << dim.dim_param() << "' is bound to " << found->second << ", expected at least 1";
    return failure();
  }
  if (wanted)
    return wanted;
  InFlightDiagnostic diagnostic = error();
  diagnostic << "input '" << input << "' has an unknown size in dimension " << axis;
  if (dim.has_dim_param() && !dim.dim_param().empty())
    diagnostic << "; bind it with --dim " << dim.dim_param() << "=<size>";
  if (axis < 2)
    diagnostic << (dim.dim_param().empty() ? "; bind it with " : " or ") << option << " <size>";
  return failure();
}

LogicalResult Importer::addInputs() {
  llvm::StringSet<> symbols;
  for (const auto &input : model.graph().input()) {
    for (const auto &dim : input.type().tensor_type().shape().dim())
      if (!fixedSize(dim))
        symbols.insert(dim.dim_param());
    if (top.names.count(input.name())) {
      if (top.names[input.name()].value && !isa<BlockArgument>(top.names[input.name()].value))
        return error() << "input '" << input.name() << "' is defined twice";
      continue; // an initializer that is also listed as input, as files of IR version 3 do
    }
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
      return error() << "input '" << input.name() << "' is not a tensor with a shape";
    const auto &proto = input.type().tensor_type();
    Type element = elementType(&context, proto.elem_type());
    if (!element)
      return error() << "input '" << input.name() << "' has element type " << dataTypeName(proto.elem_type())
                     << ", which is not supported";
    SmallVector<int64_t> shape;
    for (const auto &dim : proto.shape().dim()) {
      auto size = sizeOf(dim, input.name(), static_cast<int64_t>(shape.size()));
      if (failed(size))
        return failure();
      shape.push_back(*size);
    }
    if (!countElements(shape))
      return error() << "input '" << input.name() << "' of shape " << Node::shapeText(shape) << " is too large";
    top.names[input.name()].value =
        addArgument(input.name(), RankedTensorType::get(shape, element), train::ArgRole::Input);
  }
  for (const auto &[name, size] : options.dims)
    if (!symbols.contains(name))
      return error() << "no input has a symbolic dimension '" << name << "'";
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
