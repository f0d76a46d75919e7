//===- ParseGraph.cpp - graphs, nodes and signatures ----------------------===//

#include "frontends/pt2/Parse.h"

using llvm::StringRef;

namespace tessera::pt2 {

namespace {
/// Graphs within graphs: bodies of higher order operators.
constexpr int kMaxGraphDepth = 8;

template <typename Value, typename Parse>
void parseMap(const Cursor &at, std::map<std::string, Value> &values, Parse parse) {
  const size_t count = at.members();
  for (size_t i = 0; i < count && !at.failed(); ++i)
    values.emplace(at.memberName(i), parse(at.member(i)));
}

template <typename Value, typename Parse>
void parseOptionalMap(const Cursor &at, StringRef name, std::map<std::string, Value> &values, Parse parse) {
  if (auto map = at.optional(name))
    parseMap(*map, values, parse);
}

std::vector<Argument> parseArguments(const Cursor &at, int depth) {
  std::vector<Argument> arguments;
  const size_t count = at.size();
  arguments.reserve(count);
  for (size_t i = 0; i < count && !at.failed(); ++i)
    arguments.push_back(parseArgument(at.element(i), depth));
  return arguments;
}

NamedArgument parseNamedArgument(const Cursor &at, int depth) {
  at.fields({"name", "arg", "kind"});
  NamedArgument named;
  named.name = at.field("name").string();
  named.argument = parseArgument(at.field("arg"), depth);
  if (auto kind = at.optional("kind")) {
    const int64_t value = kind->integer();
    if (!at.failed() && (value < 0 || value > 2))
      kind->fail("unknown kind of argument " + std::to_string(value));
    else
      named.kind = static_cast<NamedArgument::Kind>(value);
  }
  return named;
}

void parseMetadata(const Cursor &at, Node &node) {
  const size_t count = at.members();
  for (size_t i = 0; i < count && !at.failed(); ++i) {
    const std::string &key = at.memberName(i);
    const Cursor entry = at.member(i);
    std::string text = entry.string();
    if (key == "stack_trace") {
      node.source = parseStackTrace(text);
      node.stackTrace = std::move(text);
    } else if (key == "nn_module_stack") {
      if (parseModuleStack(text, node.modules))
        continue;
      node.modules.clear();
      at.log().warn("the modules of some nodes are not known: their nn_module_stack is not 'key,path,class;...'");
      node.metadata.emplace(key, std::move(text));
    } else {
      node.metadata.emplace(key, std::move(text));
    }
  }
}

Node parseNode(const Cursor &at, int depth) {
  at.fields({"target", "inputs", "outputs", "metadata", "is_hop_single_tensor_return", "name"});
  Node node;
  node.target = at.field("target").string();
  if (auto name = at.optional("name"))
    node.name = name->string();
  const Cursor inputs = at.field("inputs");
  const size_t count = inputs.size();
  node.inputs.reserve(count);
  for (size_t i = 0; i < count && !at.failed(); ++i)
    node.inputs.push_back(parseNamedArgument(inputs.element(i), depth));
  node.outputs = parseArguments(at.field("outputs"), depth);
  // PyTorch 2.6 does not write the names of nodes; that of a result is unique, too.
  for (const Argument &output : node.outputs)
    for (const std::string &result : namesOf(output))
      if (node.name.empty())
        node.name = result;
  parseMetadata(at.field("metadata"), node);
  if (auto single = at.optional("is_hop_single_tensor_return"))
    node.singleTensorReturn = single->boolean();
  return node;
}

/// The name of the graph's value that an argument is, if it is one.
std::string valueName(const Argument &argument) {
  if (const auto *tensor = argument.as<TensorArg>())
    return tensor->name;
  if (const auto *size = argument.as<SymIntArg>())
    return size->name;
  if (const auto *number = argument.as<SymFloatArg>())
    return number->name;
  if (const auto *truth = argument.as<SymBoolArg>())
    return truth->name;
  if (const auto *object = argument.as<CustomObjectArg>())
    return object->name;
  return "";
}

/// A spec whose `arg` is a tensor and whose target has the name `target`.
template <typename Spec>
void parseTensorSpec(const Cursor &at, Spec &spec, typename Spec::Kind kind, StringRef target) {
  spec.kind = kind;
  spec.argument.value = parseTensorArg(at.field("arg"));
  if (!target.empty())
    spec.target = at.field(target).string();
}

template <typename Spec> void parseToken(const Cursor &at, Spec &spec) {
  at.fields({"arg"});
  spec.kind = Spec::Kind::Token;
  const Cursor arg = at.field("arg");
  arg.fields({"name"});
  spec.name = arg.field("name").string();
}

Argument parseConstantValue(const Cursor &at) {
  const StringRef kind = at.alternative();
  if (!at.failed() && kind != "as_none" && kind != "as_int" && kind != "as_float" && kind != "as_string" &&
      kind != "as_bool")
    at.fail("unknown kind of constant '" + kind.take_front(80).str() + "'");
  return at.failed() ? Argument{} : parseArgument(at, 0);
}

InputSpec parseInputSpec(const Cursor &at) {
  using Kind = InputSpec::Kind;
  InputSpec spec;
  const StringRef kind = at.alternative();
  if (at.failed())
    return spec;
  const Cursor inner = at.alternativeValue();
  if (kind == "user_input") {
    inner.fields({"arg"});
    spec.argument = parseArgument(inner.field("arg"), 0);
  } else if (kind == "parameter") {
    inner.fields({"arg", "parameter_name"});
    parseTensorSpec(inner, spec, Kind::Parameter, "parameter_name");
  } else if (kind == "buffer") {
    inner.fields({"arg", "buffer_name", "persistent"});
    parseTensorSpec(inner, spec, Kind::Buffer, "buffer_name");
    spec.persistent = inner.field("persistent").boolean();
  } else if (kind == "tensor_constant") {
    inner.fields({"arg", "tensor_constant_name"});
    parseTensorSpec(inner, spec, Kind::TensorConstant, "tensor_constant_name");
  } else if (kind == "custom_obj") {
    inner.fields({"arg", "custom_obj_name"});
    spec.kind = Kind::CustomObject;
    spec.argument.value = parseCustomObjectArg(inner.field("arg"));
    spec.target = inner.field("custom_obj_name").string();
  } else if (kind == "constant_input") {
    inner.fields({"name", "value"});
    spec.kind = Kind::ConstantInput;
    spec.name = inner.field("name").string();
    spec.argument = parseConstantValue(inner.field("value"));
    return spec;
  } else if (kind == "token") {
    parseToken(inner, spec);
    return spec;
  } else {
    at.fail("unknown kind of input '" + kind.take_front(80).str() + "'");
  }
  spec.name = valueName(spec.argument);
  return spec;
}

OutputSpec parseOutputSpec(const Cursor &at) {
  using Kind = OutputSpec::Kind;
  OutputSpec spec;
  const StringRef kind = at.alternative();
  if (at.failed())
    return spec;
  const Cursor inner = at.alternativeValue();
  auto tensorSpec = [&](Kind specKind, StringRef target) {
    inner.fields({"arg", target.empty() ? StringRef("arg") : target});
    parseTensorSpec(inner, spec, specKind, target);
  };
  if (kind == "user_output") {
    inner.fields({"arg"});
    spec.argument = parseArgument(inner.field("arg"), 0);
  } else if (kind == "loss_output") {
    tensorSpec(Kind::LossOutput, "");
  } else if (kind == "buffer_mutation") {
    tensorSpec(Kind::BufferMutation, "buffer_name");
  } else if (kind == "parameter_mutation") {
    tensorSpec(Kind::ParameterMutation, "parameter_name");
  } else if (kind == "user_input_mutation") {
    tensorSpec(Kind::UserInputMutation, "user_input_name");
  } else if (kind == "gradient_to_parameter") {
    tensorSpec(Kind::GradientToParameter, "parameter_name");
  } else if (kind == "gradient_to_user_input") {
    tensorSpec(Kind::GradientToUserInput, "user_input_name");
  } else if (kind == "token") {
    parseToken(inner, spec);
    return spec;
  } else {
    at.fail("unknown kind of output '" + kind.take_front(80).str() + "'");
  }
  spec.name = valueName(spec.argument);
  return spec;
}
} // namespace

Graph parseGraph(const Cursor &at, int depth) {
  Graph graph;
  if (depth > kMaxGraphDepth) {
    at.fail("graphs are nested deeper than " + std::to_string(kMaxGraphDepth));
    return graph;
  }
  at.fields({"inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values",
             "is_single_tensor_return", "custom_obj_values", "sym_float_values"});
  graph.inputs = parseArguments(at.field("inputs"), depth);
  graph.outputs = parseArguments(at.field("outputs"), depth);
  const Cursor nodes = at.field("nodes");
  const size_t count = nodes.size();
  graph.nodes.reserve(count);
  for (size_t i = 0; i < count && !at.failed(); ++i)
    graph.nodes.push_back(parseNode(nodes.element(i), depth));
  parseMap(at.field("tensor_values"), graph.tensors, parseTensorMeta);
  parseMap(at.field("sym_int_values"), graph.symInts, parseSymInt);
  parseMap(at.field("sym_bool_values"), graph.symBools, parseSymBool);
  parseOptionalMap(at, "sym_float_values", graph.symFloats, parseSymFloat);
  parseOptionalMap(at, "custom_obj_values", graph.customObjects, parseCustomObjectArg);
  if (auto single = at.optional("is_single_tensor_return"))
    graph.singleTensorReturn = single->boolean();
  return graph;
}

Signature parseSignature(const Cursor &at) {
  at.fields({"input_specs", "output_specs"});
  Signature signature;
  const Cursor inputs = at.field("input_specs");
  const size_t inputCount = inputs.size();
  for (size_t i = 0; i < inputCount && !at.failed(); ++i)
    signature.inputs.push_back(parseInputSpec(inputs.element(i)));
  const Cursor outputs = at.field("output_specs");
  const size_t outputCount = outputs.size();
  for (size_t i = 0; i < outputCount && !at.failed(); ++i)
    signature.outputs.push_back(parseOutputSpec(outputs.element(i)));
  return signature;
}

} // namespace tessera::pt2
