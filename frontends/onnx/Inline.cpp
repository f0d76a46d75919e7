//===- Inline.cpp - bodies of functions and branches of If ----------------===//
//
// The part of the importer that replaces a node by other nodes: a call by the body of its function, an If whose
// condition is known by the branch that is taken.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Importer.h"

#include "frontends/onnx/Proto.h"

using namespace mlir;

namespace tessera::onnx_import {

/// The attribute of the call that a function's body stands for, or its default. An attribute that has neither is
/// absent.
static const onnx::AttributeProto *findAttribute(const Frame &frame, const std::string &name) {
  if (frame.call)
    for (const auto &given : frame.call->attribute())
      if (given.name() == name)
        return &given;
  for (const auto &fallback : frame.defaults)
    if (fallback.name() == name)
      return &fallback;
  return nullptr;
}

/// FunctionProto.attribute_proto, which libonnx 1.12 does not know yet and keeps as an unknown field.
static std::vector<onnx::AttributeProto> defaultsOf(const onnx::FunctionProto &function) {
  constexpr int kAttributeProto = 11;
  std::vector<onnx::AttributeProto> defaults;
  const auto &fields = function.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    onnx::AttributeProto attribute;
    if (fields.field(i).number() == kAttributeProto &&
        fields.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
        attribute.ParseFromString(fields.field(i).length_delimited()))
      defaults.push_back(std::move(attribute));
  }
  return defaults;
}

bool resolveAttributes(const onnx::NodeProto &node, const Frame &frame, onnx::NodeProto &resolved) {
  if (llvm::none_of(node.attribute(), [](const auto &a) { return !a.ref_attr_name().empty(); }))
    return false;
  resolved = node;
  resolved.clear_attribute();
  for (const auto &attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      *resolved.add_attribute() = attribute;
      continue;
    }
    if (const onnx::AttributeProto *given = findAttribute(frame, attribute.ref_attr_name())) {
      *resolved.add_attribute() = *given;
      resolved.mutable_attribute(resolved.attribute_size() - 1)->set_name(attribute.name());
    }
  }
  return true;
}

LogicalResult Importer::inlineFunction(const onnx::FunctionProto &function, const onnx::NodeProto &call,
                                       std::vector<Entry> inputs, Scope &scope, const Frame &frame) {
  Frame inner;
  inner.prefix = cast<NameLoc>(locOf(call, frame)).getName().str() + "/";
  inner.opsets = frame.opsets;
  inner.call = &call;
  inner.defaults = defaultsOf(function);
  inner.depth = frame.depth + 1;
  if (failed(readOpsets(function.opset_import(), inner)))
    return failure();
  Scope body; // a function sees only its parameters
  for (int i = 0; i < function.input_size(); ++i)
    body.names[function.input(i)] = i < static_cast<int>(inputs.size()) ? inputs[i] : Entry();
  if (failed(importNodes(function.node(), body, inner)))
    return failure();
  std::vector<Entry> outputs(call.output_size());
  for (int i = 0; i < call.output_size(); ++i) {
    Entry *entry = i < function.output_size() ? body.find(function.output(i)) : nullptr;
    if (entry) {
      outputs[i] = *entry;
    } else if (!call.output(i).empty()) {
      report(call, frame, "function has no output " + Twine(i));
      outputs[i].broken = true;
    }
  }
  define(call, std::move(outputs), scope);
  return success();
}

LogicalResult Importer::inlineBranch(const onnx::NodeProto &node, bool taken, Scope &scope, const Frame &frame) {
  const onnx::GraphProto *graph = nullptr;
  for (const auto &attribute : node.attribute())
    if (attribute.name() == (taken ? "then_branch" : "else_branch") && attribute.has_g())
      graph = &attribute.g();
  std::vector<Entry> outputs(node.output_size());
  if (graph) {
    Scope inner;
    inner.outer = &scope;
    Frame innerFrame = frame;
    ++innerFrame.depth;
    for (const auto &tensor : graph->initializer()) {
      auto value = readTensor(&context, tensor, folder);
      if (!value)
        return error() << "initializer '" << tensor.name() << "': " << llvm::toString(value.takeError());
      inner.names[tensor.name()].constant = std::make_shared<const HostTensor>(std::move(*value));
    }
    if (failed(importNodes(graph->node(), inner, innerFrame)))
      return failure();
    for (int i = 0; i < node.output_size() && i < graph->output_size(); ++i)
      if (Entry *entry = inner.find(graph->output(i).name()))
        outputs[i] = *entry;
  }
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty() && !outputs[i].exists()) {
      report(node, frame, "the branch taken has no output " + Twine(i));
      outputs[i].broken = true;
    }
  define(node, std::move(outputs), scope);
  return success();
}

} // namespace tessera::onnx_import
