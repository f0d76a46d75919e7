//===- Regions.cpp - parts of a program in another mode -----------------------===//

#include "frontends/pt2/Regions.h"

#include "frontends/pt2/Aliasing.h"
#include "frontends/pt2/OpTable.h"

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

/// Where a region's node has its arguments: (enabled, body, ...) or (device, type, enabled, cached, body, ...).
struct Form {
  size_t enabled, body;
  bool cutsGradient;
};

std::optional<Form> formOf(const Node &node) {
  if (node.target == kNoGrad)
    return Form{0, 1, true};
  return node.target == kAutocast ? std::optional(Form{2, 4, false}) : std::nullopt;
}

/// Whether a region's node enables what it is for; nothing if it does not say.
std::optional<bool> isEnabled(const Node &node, const Form &form) {
  const bool *enabled = form.enabled < node.inputs.size() ? node.inputs[form.enabled].argument.as<bool>() : nullptr;
  return enabled ? std::optional(*enabled) : std::nullopt;
}

std::optional<Region> regionOf(const Node &node) {
  const std::optional<Form> form = formOf(node);
  if (!form || isEnabled(node, *form).value_or(true) || node.inputs.size() <= form->body)
    return std::nullopt;
  const auto *graph = node.inputs[form->body].argument.as<GraphArg>();
  return graph ? std::optional(Region{*graph->graph, form->body + 1, form->cutsGradient}) : std::nullopt;
}

bool hasGraph(const Node &node) {
  return llvm::any_of(node.inputs, [](const NamedArgument &input) { return input.argument.as<GraphArg>() != nullptr; });
}

/// Where the tensors of a body come from.
class Origins {
public:
  explicit Origins(const Graph &body) {
    for (const Argument &input : body.inputs)
      if (const auto *tensor = input.as<TensorArg>()) {
        shared.insert(tensor->name);
        given.insert(tensor->name);
      }
    auto isMade = [&](const std::string &name) {
      const std::optional<std::string> source = sourceOf(name);
      return source && !given.contains(*source);
    };
    for (const Node &node : body.nodes) {
      const Alias alias = aliasOf(node, body);
      std::optional<bool> isArgument = returnsArgument(node, body);
      if (!isArgument && llvm::all_of(alias.of, isMade))
        isArgument = false; // without a gradient either way
      const bool isShared = llvm::any_of(alias.of, [&](const std::string &name) { return shared.contains(name); });
      for (const Argument &output : node.outputs)
        eachName(output, [&](const std::string &name) {
          if (isShared)
            shared.insert(name);
          if (!isArgument)
            sources[name] = std::nullopt;
          else if (*isArgument)
            sources[name] = sourceOf(alias.of.front());
        });
    }
  }

  /// The input that a tensor is, which keeps its gradient, or the name itself if an operator makes it; nothing if that
  /// is not known.
  std::optional<std::string> sourceOf(const std::string &name) const {
    auto found = sources.find(name);
    return found == sources.end() ? name : found->second;
  }
  /// Whether what an operator in place changes has memory that an operator of the body made.
  bool changesOwn(const Node &node) const {
    const auto *self = node.inputs.empty() ? nullptr : node.inputs[0].argument.as<TensorArg>();
    return self && !shared.contains(self->name);
  }

private:
  llvm::StringSet<> given;                             ///< the inputs
  llvm::StringSet<> shared;                            ///< what may have memory of an input
  llvm::StringMap<std::optional<std::string>> sources; ///< of tensors that are not themselves
};

class Inliner {
public:
  explicit Inliner(Graph &graph) : Inliner(graph, /*isProgram=*/true, false) {}

  void run(Signature &signature) {
    inlineRegions();
    for (OutputSpec &output : signature.outputs)
      eachName(output.argument, [&](std::string &name) { output.name = name = current(name); });
  }

private:
  /// Of the graph of a region.
  Inliner(Graph &graph, bool isProgram, bool isWithoutGradients)
      : graph(graph), isProgram(isProgram), isWithoutGradients(isWithoutGradients) {
    for (const Argument &input : graph.inputs)
      if (const auto *tensor = input.as<TensorArg>())
        given.insert(tensor->name);
  }

  void inlineRegions() {
    if (llvm::none_of(graph.nodes, [](const Node &node) { return formOf(node).has_value(); }))
      return;
    std::vector<Node> old = std::move(graph.nodes);
    graph.nodes.clear();
    for (Node &node : old) {
      if (std::optional<Region> region = regionOf(node))
        Inliner(region->body, /*isProgram=*/false, isWithoutGradients || region->cutsGradient).inlineRegions();
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
      const Origins origins(region->body);
      node.refusal = whyNot(node, *region, origins);
      if (node.refusal.empty())
        return take(node, *region, origins);
      if (node.stackTrace.empty() && !region->body.nodes.empty()) { // for the error
        node.source = region->body.nodes.front().source;
        node.stackTrace = region->body.nodes.front().stackTrace;
      }
    } else if (std::optional<Form> form = formOf(node); form && !isEnabled(node, *form).value_or(false)) {
      node.refusal = "its arguments are not those that torch.export writes";
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

  /// Why a region cannot become part of the graph; empty if it can.
  std::string whyNot(const Node &node, const Region &region, const Origins &origins) const {
    if (!hasForm(node, region))
      return "not supported where its results are not all tensors, or where it reads what is neither a tensor nor a "
             "size";
    if (!region.cutsGradient)
      return "";
    for (const Node &inner : region.body.nodes)
      if (hasGraph(inner))
        return "not supported with " + shortTarget(inner.target).str() + " in it (" +
               (inner.refusal.empty() ? whyRefused(shortTarget(inner.target)).str() : inner.refusal) + ")";
    if (!isProgram)
      return "not supported in a region that is not supported";
    if (!changesNoGradient(node, region, origins))
      return "not supported where it changes tensors in place that are no whole buffers and not its own";
    for (const Argument &output : region.body.outputs)
      if (!origins.sourceOf(output.as<TensorArg>()->name))
        return "not supported where a result may be a tensor that it is given, or a copy of it";
    return "";
  }
  static bool hasForm(const Node &node, const Region &region) {
    const Graph &body = region.body;
    auto isTensor = [](const Argument &argument) { return argument.as<TensorArg>() != nullptr; };
    auto isSize = [](const Argument &argument) { return argument.as<SymIntArg>() || argument.as<int64_t>(); };
    auto isNamedSize = [](const Argument &argument) {
      return argument.as<SymIntArg>() && !argument.as<SymIntArg>()->name.empty();
    };
    if (body.inputs.size() != node.inputs.size() - region.first || body.outputs.size() != node.outputs.size() ||
        !llvm::all_of(body.outputs, isTensor) || !llvm::all_of(node.outputs, isTensor))
      return false;
    return llvm::all_of(llvm::zip(llvm::drop_begin(node.inputs, region.first), body.inputs), [&](const auto &pair) {
      const Argument &given = std::get<0>(pair).argument, &input = std::get<1>(pair);
      return (isTensor(input) && isTensor(given)) || (isNamedSize(input) && isSize(given));
    });
  }

  /// Whether operators in place change what has no gradient alone: whole inputs of the program, and what the region
  /// makes. Of any other tensor the gradient would go past the change.
  bool changesNoGradient(const Node &node, const Region &region, const Origins &origins) const {
    auto isInteger = [&](const std::string &name) { // which has no gradient
      auto meta = region.body.tensors.find(name);
      return meta != region.body.tensors.end() && isIntegerType(meta->second.dtype);
    };
    llvm::StringSet<> buffers;
    for (const auto &[given, input] : llvm::zip(llvm::drop_begin(node.inputs, region.first), region.body.inputs))
      if (const auto *tensor = input.as<TensorArg>(); tensor && !hasGradient(given.argument.as<TensorArg>()->name))
        buffers.insert(tensor->name);
    for (const Node &inner : region.body.nodes) {
      if (!isInPlace(inner.target) || inner.target == "torch.ops.aten.detach_.default" || origins.changesOwn(inner))
        continue;
      const auto *self = inner.inputs.empty() ? nullptr : inner.inputs[0].argument.as<TensorArg>();
      if (!self || !(buffers.contains(self->name) || isInteger(self->name)))
        return false;
      for (const Argument &output : inner.outputs)
        if (const auto *tensor = output.as<TensorArg>())
          buffers.insert(tensor->name);
    }
    return true;
  }
  std::string fresh(const std::string &like) { return freshName(graph, like + "_within", made); }

  void take(const Node &node, const Region &region, const Origins &origins) {
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
      auto found = outside.find(region.cutsGradient ? *origins.sourceOf(name) : name);
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
      if (region.cutsGradient && isInPlace(made.target) && !origins.changesOwn(made))
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
    auto meta = graph.tensors.find(name);
    if (changedBuffers.contains(name))
      return false;
    return meta == graph.tensors.end() || meta->second.requiresGrad || !given.contains(name);
  }
  std::string detach(const Node &at, const std::string &name) {
    Node node = at;
    std::string result = fresh(name);
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
  const bool isProgram;
  const bool isWithoutGradients; ///< a region of one without gradients
  size_t made = 0;
  std::map<std::string, std::string> renamed;
  llvm::StringSet<> given;          ///< the graph's inputs
  llvm::StringSet<> changedBuffers; ///< results of regions that are buffers
};
} // namespace

void inlineRegions(Program &program) { Inliner(program.graph).run(program.signature); }

} // namespace tessera::pt2
