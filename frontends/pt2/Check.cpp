//===- Check.cpp - whether the parts of a program fit together ------------===//

#include "frontends/pt2/Errors.h"
#include "frontends/pt2/Parse.h"

#include <set>

using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

namespace tessera::pt2 {

namespace {
/// One graph: names are those of its own values only.
class GraphCheck {
public:
  GraphCheck(const Graph &graph, std::string where) : graph(graph), where(std::move(where)) {}

  Error run() {
    for (const Argument &input : graph.inputs)
      define(input, "an input");
    for (size_t i = 0; i < graph.nodes.size() && problem.empty(); ++i) {
      const Node &node = graph.nodes[i];
      const std::string what = "node " + std::to_string(i) + " (" + node.target + ")";
      for (const NamedArgument &input : node.inputs)
        use(input.argument, what);
      for (const Argument &output : node.outputs)
        define(output, what);
    }
    for (const Argument &output : graph.outputs)
      use(output, "an output");
    if (!problem.empty())
      return error(where + ": " + problem);
    for (const auto &[body, name] : bodies)
      if (Error failed = GraphCheck(*body, where + ", graph '" + name + "'").run())
        return failed;
    return Error::success();
  }

private:
  const Graph &graph;
  std::string where, problem;
  std::set<std::string> defined;
  std::vector<std::pair<const Graph *, std::string>> bodies;

  void fail(const Twine &text) {
    if (problem.empty())
      problem = text.str();
  }

  /// Calls `visit(name, kind, is it described)` for each value that an argument names.
  template <typename Visit> void names(const Argument &argument, Visit visit) {
    auto tensor = [&](const TensorArg &arg) { visit(arg.name, "tensor", graph.tensors.count(arg.name) > 0); };
    auto optional = [&](const OptionalTensorArg &arg) {
      if (arg)
        tensor(*arg);
    };
    auto symbol = [&](const auto &arg, const char *kind, const auto &table) {
      if (!arg.name.empty())
        visit(arg.name, kind, table.count(arg.name) > 0);
    };
    auto symInt = [&](const SymIntArg &arg) { symbol(arg, "symbolic int", graph.symInts); };
    auto symFloat = [&](const SymFloatArg &arg) { symbol(arg, "symbolic float", graph.symFloats); };
    auto symBool = [&](const SymBoolArg &arg) { symbol(arg, "symbolic bool", graph.symBools); };
    auto each = [](const auto *list, auto visitOne) {
      if (list)
        for (const auto &element : *list)
          visitOne(element);
    };
    auto one = [](const auto *value, auto visitOne) {
      if (value)
        visitOne(*value);
    };
    one(argument.as<TensorArg>(), tensor);
    one(argument.as<OptionalTensorArg>(), optional);
    one(argument.as<SymIntArg>(), symInt);
    one(argument.as<SymFloatArg>(), symFloat);
    one(argument.as<SymBoolArg>(), symBool);
    each(argument.as<std::vector<TensorArg>>(), tensor);
    each(argument.as<std::vector<OptionalTensorArg>>(), optional);
    each(argument.as<std::vector<SymIntArg>>(), symInt);
    each(argument.as<std::vector<SymFloatArg>>(), symFloat);
    each(argument.as<std::vector<SymBoolArg>>(), symBool);
    each(argument.as<std::vector<std::vector<TensorArg>>>(),
         [&](const std::vector<TensorArg> &list) { each(&list, tensor); });
    if (const auto *dict = argument.as<DictArg>())
      for (const DictEntry &entry : dict->entries)
        names(entry.argument, visit);
    if (const auto *body = argument.as<GraphArg>())
      bodies.emplace_back(body->graph.get(), body->name);
  }

  void define(const Argument &argument, const std::string &by) {
    names(argument, [&](const std::string &name, const char *kind, bool described) {
      if (!described)
        fail(Twine(kind) + " '" + name + "' of " + by + " is not described");
      if (!defined.insert(name).second)
        fail(Twine(kind) + " '" + name + "' of " + by + " is defined twice");
    });
  }

  void use(const Argument &argument, const std::string &by) {
    names(argument, [&](const std::string &name, const char *kind, bool described) {
      if (!described)
        fail(Twine(kind) + " '" + name + "', used by " + by + ", is not described");
      if (!defined.count(name))
        fail(Twine(kind) + " '" + name + "' is used by " + by + " before it is defined");
    });
  }
};

/// The weight of a signature's input is what the graph says of the input.
Error checkWeight(const Program &program, const InputSpec &spec) {
  auto found = program.weights.find(spec.target);
  if (found == program.weights.end())
    return error("the archive has no weight or constant '" + spec.target + "', which is an input of the graph");
  const Weight &weight = found->second;
  auto described = program.graph.tensors.find(spec.name);
  if (described == program.graph.tensors.end())
    return error("input '" + spec.name + "' is not described");
  const TensorMeta &meta = described->second;
  bool same = meta.dtype == weight.dtype && meta.sizes.size() == weight.sizes.size();
  for (size_t i = 0; same && i < weight.sizes.size(); ++i)
    same = meta.sizes[i].isConstant() && meta.sizes[i].value == weight.sizes[i];
  if (!same)
    return error("the weight '" + spec.target + "' has other sizes or another type than the graph's input '" +
                 spec.name + "'" +
                 (spec.kind == InputSpec::Kind::Buffer ? "; if the module's first forward pass resizes it, run the "
                                                         "module once before it is exported"
                                                       : ""));
  return Error::success();
}

/// Whether a spec's value is the graph's, by name or by kind.
bool sameValue(const Argument &spec, const Argument &graph, StringRef name) {
  if (spec.value.index() != graph.value.index())
    return false;
  const auto *tensor = graph.as<TensorArg>();
  return !tensor || tensor->name == name;
}
} // namespace

Error checkProgram(const Program &program) {
  if (Error failed = GraphCheck(program.graph, "graph").run())
    return failed;
  const Signature &signature = program.signature;
  if (signature.inputs.size() != program.graph.inputs.size() ||
      signature.outputs.size() != program.graph.outputs.size())
    return error("signature: has " + Twine(signature.inputs.size()) + " inputs and " + Twine(signature.outputs.size()) +
                 " outputs, the graph has " + Twine(program.graph.inputs.size()) + " and " +
                 Twine(program.graph.outputs.size()));
  std::set<std::string> targets, userInputs;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const InputSpec &spec = signature.inputs[i];
    using Kind = InputSpec::Kind;
    const std::string where = "signature, input " + std::to_string(i) + ": ";
    if (spec.kind != Kind::Token && spec.kind != Kind::ConstantInput &&
        !sameValue(spec.argument, program.graph.inputs[i], spec.name))
      return error(where + "'" + spec.name + "' is not the graph's input");
    if (spec.kind == Kind::UserInput)
      userInputs.insert(spec.name);
    if (spec.kind != Kind::Parameter && spec.kind != Kind::Buffer && spec.kind != Kind::TensorConstant)
      continue;
    if (!targets.insert(spec.target).second)
      return error(where + "'" + spec.target + "' is an input twice");
    if (Error failed = checkWeight(program, spec))
      return error(where + toString(std::move(failed)));
  }
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    const OutputSpec &spec = signature.outputs[i];
    using Kind = OutputSpec::Kind;
    const std::string where = "signature, output " + std::to_string(i) + ": ";
    if (spec.kind != Kind::Token && !sameValue(spec.argument, program.graph.outputs[i], spec.name))
      return error(where + "'" + spec.name + "' is not the graph's output");
    const bool ofInput = spec.kind == Kind::UserInputMutation || spec.kind == Kind::GradientToUserInput;
    if (!spec.target.empty() && !(ofInput ? userInputs : targets).count(spec.target))
      return error(where + "the signature has no input '" + spec.target + "'");
  }
  return Error::success();
}

} // namespace tessera::pt2
