//===- NoGrad.cpp - regions without gradients or autocast ------------------===//

#include "frontends/pt2/NoGrad.h"

#include "frontends/pt2/Aliasing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

namespace tessera::pt2 {

namespace {
constexpr llvm::StringLiteral kNoGrad = "torch.ops.higher_order.wrap_with_set_grad_enabled";
constexpr llvm::StringLiteral kAutocast = "torch.ops.higher_order.wrap_with_autocast";

/// A node with a graph of its own that can be part of the program.
struct Region {
  Graph &body;
  size_t first;      ///< of the node's inputs, the one that the body reads first
  bool cutsGradient; ///< what it reads is behind detach()
};

std::optional<Region> regionOf(const Node &node) {
  auto part = [&](size_t isEnabled, size_t body, bool cutsGradient) -> std::optional<Region> {
    if (node.inputs.size() <= body)
      return std::nullopt;
    const bool *enabled = node.inputs[isEnabled].argument.as<bool>();
    const auto *graph = node.inputs[body].argument.as<GraphArg>();
    if (!enabled || *enabled || !graph)
      return std::nullopt;
    return Region{*graph->graph, body + 1, cutsGradient};
  };
  if (node.target == kNoGrad) // (enabled, body, ...)
    return part(0, 1, true);
  if (node.target == kAutocast) // (device, type, enabled, cached, body, ...)
    return part(2, 4, false);
  return std::nullopt;
}

class Inliner {
public:
  explicit Inliner(Graph &graph) : graph(graph) {}

  void run(Signature &signature) {
    inlineRegions();
    for (OutputSpec &output : signature.outputs)
      eachName(output.argument, [&](std::string &name) { output.name = name = current(name); });
  }

private:
  /// Of the graph of a region.
  Inliner(Graph &graph, bool isWithoutGradients)
      : graph(graph), isProgram(false), isWithoutGradients(isWithoutGradients) {}

  void inlineRegions() {
    if (llvm::none_of(graph.nodes, [](const Node &node) { return regionOf(node).has_value(); }))
      return;
    std::vector<Node> old = std::move(graph.nodes);
    graph.nodes.clear();
    for (Node &node : old) {
      if (std::optional<Region> region = regionOf(node))
        Inliner(region->body, isWithoutGradients || region->cutsGradient).inlineRegions();
      add(std::move(node));
    }
    for (Argument &output : graph.outputs)
      eachName(output, [&](std::string &name) { name = current(name); });
  }
  /// Adds a node, or what is in it.
  void add(Node node) {
    rename(node.inputs);
    if (std::optional<Region> region = regionOf(node)) {
      region->cutsGradient &= !isWithoutGradients;
      if (canInline(node, *region))
        return take(node, *region);
      if (node.stackTrace.empty() && !region->body.nodes.empty()) { // for the error
        node.source = region->body.nodes.front().source;
        node.stackTrace = region->body.nodes.front().stackTrace;
      }
    }
    graph.nodes.push_back(std::move(node));
  }

  std::string current(std::string name) const {
    for (auto found = renamed.find(name); found != renamed.end(); found = renamed.find(name))
      name = found->second;
    return name;
  }
  void rename(std::vector<NamedArgument> &inputs) {
    for (NamedArgument &input : inputs)
      eachName(input.argument, [&](std::string &name) { name = current(name); });
  }

  bool canInline(const Node &node, const Region &region) const {
    const Graph &body = region.body;
    auto isTensor = [](const Argument &argument) { return argument.as<TensorArg>() != nullptr; };
    auto isSize = [](const Argument &argument) { return argument.as<SymIntArg>() || argument.as<int64_t>(); };
    auto isNamedSize = [](const Argument &argument) {
      return argument.as<SymIntArg>() && !argument.as<SymIntArg>()->name.empty();
    };
    if (body.inputs.size() != node.inputs.size() - region.first || body.outputs.size() != node.outputs.size() ||
        !llvm::all_of(body.outputs, isTensor) || !llvm::all_of(node.outputs, isTensor))
      return false;
    for (const auto &[given, input] : llvm::zip(llvm::drop_begin(node.inputs, region.first), body.inputs))
      if (!(isTensor(input) && isTensor(given.argument)) && !(isNamedSize(input) && isSize(given.argument)))
        return false;
    if (!region.cutsGradient)
      return true;
    const bool hasRegions = llvm::any_of(body.nodes, [](const Node &inner) {
      return llvm::any_of(inner.inputs,
                          [](const NamedArgument &input) { return input.argument.as<GraphArg>() != nullptr; });
    });
    return isProgram && !hasRegions && changesNoGradient(node, region) &&
           llvm::all_of(body.outputs,
                        [&](const Argument &output) { return sourceOf(output.as<TensorArg>()->name, body); });
  }

  /// The body's input that a result is, which keeps its gradient, or the name itself if an operator makes it; nothing
  /// if that is not known.
  static std::optional<std::string> sourceOf(std::string name, const Graph &body) {
    for (const Node &inner : llvm::reverse(body.nodes)) {
      if (!makes(inner, name))
        continue;
      std::optional<bool> isArgument = returnsArgument(inner, body);
      if (!isArgument)
        return std::nullopt;
      if (!*isArgument)
        return name;
      name = aliasOf(inner, body).of.front();
    }
    return name;
  }
  static bool makes(const Node &node, const std::string &name) {
    bool found = false;
    for (Argument output : node.outputs)
      eachName(output, [&](std::string &result) { found |= result == name; });
    return found;
  }

  /// Whether a tensor of the body has integers or booleans, which have no gradient.
  static bool hasIntegers(const std::string &name, const Graph &body) {
    static constexpr ScalarType kIntegers[] = {ScalarType::Byte, ScalarType::Char, ScalarType::Short,
                                               ScalarType::Int,  ScalarType::Long, ScalarType::Bool};
    auto meta = body.tensors.find(name);
    return meta != body.tensors.end() && llvm::is_contained(kIntegers, meta->second.dtype);
  }

  /// Whether operators in place change what has no gradient alone: whole inputs of the program, and what the region
  /// makes. Of any other tensor the gradient would go past the change.
  bool changesNoGradient(const Node &node, const Region &region) const {
    llvm::StringSet<> buffers;
    for (const auto &[given, input] : llvm::zip(llvm::drop_begin(node.inputs, region.first), region.body.inputs))
      if (const auto *tensor = input.as<TensorArg>(); tensor && !hasGradient(given.argument.as<TensorArg>()->name))
        buffers.insert(tensor->name);
    for (const Node &inner : region.body.nodes) {
      if (!isInPlace(inner.target) || inner.target == "torch.ops.aten.detach_.default" ||
          changesOwn(inner, region.body))
        continue;
      const auto *self = inner.inputs.empty() ? nullptr : inner.inputs[0].argument.as<TensorArg>();
      if (!self || !(buffers.contains(self->name) || hasIntegers(self->name, region.body)))
        return false;
      for (const Argument &output : inner.outputs)
        if (const auto *tensor = output.as<TensorArg>())
          buffers.insert(tensor->name);
    }
    return true;
  }
  /// Whether what an operator in place changes has memory that an operator of the region made.
  static bool changesOwn(const Node &node, const Graph &body) {
    const auto *self = node.inputs.empty() ? nullptr : node.inputs[0].argument.as<TensorArg>();
    if (!self)
      return false;
    llvm::StringSet<> shares; // memory with it, perhaps
    shares.insert(self->name);
    for (const Node &inner : llvm::reverse(body.nodes))
      for (Argument output : inner.outputs)
        eachName(output, [&](std::string &name) {
          if (shares.contains(name))
            for (const std::string &other : aliasOf(inner, body).of)
              shares.insert(other);
        });
    return llvm::none_of(body.inputs, [&](const Argument &input) {
      return input.as<TensorArg>() && shares.contains(input.as<TensorArg>()->name);
    });
  }

  /// A name that no value of the program has.
  std::string fresh(const std::string &like) {
    std::string name;
    do
      name = like + "_within" + std::to_string(++made);
    while (graph.tensors.count(name) || graph.symInts.count(name) || graph.symFloats.count(name) ||
           graph.symBools.count(name));
    return name;
  }

  void take(const Node &node, const Region &region) {
    const Graph &body = region.body;
    std::map<std::string, std::string> inner;   // names of the body -> of the program
    std::map<std::string, Argument> constants;  // sizes of the body that are numbers
    std::map<std::string, std::string> outside; // names of the body's inputs, as results
    for (const auto &[given, input] : llvm::zip(llvm::drop_begin(node.inputs, region.first), body.inputs)) {
      const auto *tensor = input.as<TensorArg>();
      if (!tensor) {
        constants[input.as<SymIntArg>()->name] = given.argument;
        continue;
      }
      const std::string &name = given.argument.as<TensorArg>()->name;
      outside[tensor->name] = name;
      inner[tensor->name] = region.cutsGradient && hasGradient(name) ? detach(node, name) : name;
    }
    for (const auto &[output, result] : llvm::zip_equal(body.outputs, node.outputs)) {
      const std::string &name = output.as<TensorArg>()->name, &outer = result.as<TensorArg>()->name;
      auto found = outside.find(region.cutsGradient ? *sourceOf(name, body) : name);
      if (found != outside.end())
        renamed[outer] = found->second; // the tensor itself, whose gradient goes on
      else if (!inner.try_emplace(name, outer).second)
        renamed[outer] = inner[name];
    }
    auto translate = [&](std::string &name) {
      auto [found, isNew] = inner.try_emplace(name);
      if (isNew)
        found->second = fresh(name);
      name = found->second;
    };
    for (const Node &made : body.nodes) {
      Node node = translated(made, constants, translate);
      if (region.cutsGradient && isInPlace(made.target) && !changesOwn(made, body))
        for (Argument &output : node.outputs)
          eachName(output, [&](std::string &name) { changedBuffers.insert(name); });
      add(std::move(node));
    }
    copyTypes(body, inner);
  }

  template <typename Translate>
  static Node translated(const Node &from, const std::map<std::string, Argument> &constants, Translate translate) {
    Node node = from;
    for (NamedArgument &input : node.inputs) {
      if (const auto *size = input.argument.as<SymIntArg>(); size && constants.count(size->name)) {
        input.argument = constants.at(size->name);
        continue;
      }
      if (auto *sizes = std::get_if<std::vector<SymIntArg>>(&input.argument.value)) {
        for (SymIntArg &size : *sizes)
          if (auto found = constants.find(size.name); found != constants.end())
            size = numberOf(found->second);
          else if (!size.name.empty())
            translate(size.name);
        continue;
      }
      eachName(input.argument, translate);
    }
    for (Argument &output : node.outputs)
      eachName(output, translate);
    return node;
  }
  static SymIntArg numberOf(const Argument &argument) {
    if (const auto *size = argument.as<SymIntArg>())
      return *size;
    return {"", *argument.as<int64_t>()};
  }

  /// Files say of inputs alone whether they have a gradient.
  bool hasGradient(const std::string &name) const {
    auto isIt = [&](const Argument &input) { return input.as<TensorArg>() && input.as<TensorArg>()->name == name; };
    auto meta = graph.tensors.find(name);
    if (changedBuffers.contains(name))
      return false;
    return meta == graph.tensors.end() || meta->second.requiresGrad || llvm::none_of(graph.inputs, isIt);
  }
  std::string detach(const Node &at, const std::string &name) {
    Node node = at;
    const std::string result = fresh(name);
    node.target = "torch.ops.aten.detach.default";
    node.inputs = {NamedArgument{"self", Argument{TensorArg{name}}, NamedArgument::Kind::Positional}};
    node.outputs = {Argument{TensorArg{result}}};
    graph.nodes.push_back(std::move(node));
    graph.tensors[result] = graph.tensors[name];
    return result;
  }

  template <typename T>
  static void copy(const std::map<std::string, T> &from, std::map<std::string, T> &to,
                   const std::map<std::string, std::string> &names) {
    for (const auto &[name, type] : from)
      if (auto found = names.find(name); found != names.end())
        to.try_emplace(found->second, type);
  }
  void copyTypes(const Graph &body, const std::map<std::string, std::string> &names) {
    copy(body.tensors, graph.tensors, names);
    copy(body.symInts, graph.symInts, names);
    copy(body.symFloats, graph.symFloats, names);
    copy(body.symBools, graph.symBools, names);
  }

  Graph &graph;
  bool isProgram = true;
  bool isWithoutGradients = false; ///< a region of one without gradients
  size_t made = 0;
  std::map<std::string, std::string> renamed;
  llvm::StringSet<> changedBuffers; ///< results of regions that are buffers
};
} // namespace

void inlineRegions(Program &program) { Inliner(program.graph).run(program.signature); }

} // namespace tessera::pt2
