//===- Arguments.cpp - initializers, inputs and outputs of @step ----------===//

#include "frontends/onnx/Importer.h"
#include "frontends/onnx/Metadata.h"
#include "frontends/onnx/Proto.h"

using namespace mlir;

namespace tessera::onnx_import {

namespace {
constexpr int kMaxGraphDepth = 32;

/// The dynamo exporter writes a size that tracing fixed as a symbol whose name is a number.
FileDim readDim(const onnx::TensorShapeProto::Dimension &dim) {
  int64_t size = dim.dim_value();
  if (dim.has_dim_value() || (dim.has_dim_param() && !StringRef(dim.dim_param()).getAsInteger(10, size)))
    return {size, ""};
  return {std::nullopt, dim.dim_param()};
}

/// Notes that a node reads its inputs.
void addReader(Roles &roles, const onnx::NodeProto &node) {
  const std::string scope = scopeOf(node);
  const std::string &name = !node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : scope;
  for (const std::string &input : node.input())
    if (!input.empty())
      roles.addReader(input, {name, scope});
  if (node.op_type() == "BatchNormalization")
    for (int i = 3; i < node.input_size(); ++i)
      roles.addStatistic(node.input(i));
}
} // namespace

LogicalResult Importer::readRoles() {
  if (failed(roles.readFlags()))
    return failure();
  auto record = readRecord(model);
  if (!record)
    return error() << llvm::toString(record.takeError());
  if (*record) {
    step.evaluationDiffers = (*record)->evaluationDiffers;
    roles.setRecord(std::move(**record));
  } else {
    roles.setSignature(readSignature(model.graph()));
  }
  return success();
}

LogicalResult Importer::collectUses(const Nodes &nodes, int depth) {
  if (depth > kMaxGraphDepth)
    return error() << "graphs are nested deeper than " << kMaxGraphDepth;
  for (const auto &node : nodes) {
    for (const std::string &name : node.input())
      used.insert(name);
    addReader(roles, node);
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

LogicalResult Importer::addInitializers() {
  if (model.graph().sparse_initializer_size() > 0)
    return error() << "sparse initializers are not supported";
  Roles::Shapes shapes;
  for (const auto &tensor : model.graph().initializer()) {
    shapes[tensor.name()].assign(tensor.dims().begin(), tensor.dims().end());
    auto type = protoType(&context, tensor);
    if (!type)
      return error() << "initializer '" << tensor.name() << "': " << llvm::toString(type.takeError());
    if (!used.contains(tensor.name())) {
      step.addUnused(tensor.name(), *type, roles);
      continue;
    }
    if (top.names.count(tensor.name()))
      return error() << "initializer '" << tensor.name() << "' is defined twice";
    FailureOr<Entry> entry = step.addTensor(tensor.name(), *type, roles, "initializer",
                                            [&] { return readTensor(&context, tensor, folder); });
    if (failed(entry))
      return failure();
    entry->constant = calls.intern(std::move(entry->constant));
    top.names[tensor.name()] = std::move(*entry);
  }
  return roles.check(shapes);
}

/// What the record says of lookups and dropout must have been found in the graph.
LogicalResult Importer::checkPlaced() {
  if (failed(step.checkPadding("Gather")))
    return failure();
  if (const auto &record = roles.getRecord(); record && record->activeDropouts > activeDropouts)
    return error() << "dropout was on in " << record->activeDropouts << " places of the module, the graph has "
                   << activeDropouts
                   << ": the exporter dropped it; export with dropout set to 0, or with another exporter";
  return success();
}

LogicalResult Importer::addInputs() {
  InputDims dims(options, fileLoc);
  SmallVector<Type> elements;
  llvm::StringSet<> names;
  for (const auto &input : model.graph().input()) {
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
    dims.add(input.name(), llvm::map_to_vector(input.type().tensor_type().shape().dim(), readDim));
  }
  if (failed(dims.resolve()))
    return failure();
  for (auto [input, element] : llvm::zip_equal(dims.getInputs(), elements)) {
    FailureOr<Value> value = step.addInput(dims, input, element);
    if (failed(value))
      return failure();
    top.names[input.name].value = *value;
  }
  return success();
}

LogicalResult Importer::addResults() {
  for (const auto &output : model.graph().output()) {
    Entry *entry = top.find(output.name());
    if (!entry || entry->sequence)
      return error() << "output '" << output.name() << "' is not "
                     << (entry ? "a tensor" : "defined by any node, input or initializer");
    entry->value = step.addResult(output.name(), *entry);
  }
  if (step.numResults() == 0)
    return error() << "model has no outputs";
  return success();
}

} // namespace tessera::onnx_import
