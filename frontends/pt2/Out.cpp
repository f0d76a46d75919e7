//===- Out.cpp - operators that are given their result ---------------------===//

#include "frontends/pt2/Out.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace tessera::pt2 {

namespace {
/// The operator without `out`; empty where it is not rewritten.
llvm::StringRef withoutOut(llvm::StringRef target) {
  return llvm::StringSwitch<llvm::StringRef>(target)
      .Case("torch.ops.aten.add.out", "torch.ops.aten.add.Tensor")
      .Case("torch.ops.aten.div.out", "torch.ops.aten.div.Tensor")
      .Case("torch.ops.aten.mul.out", "torch.ops.aten.mul.Tensor")
      .Case("torch.ops.aten.sub.out", "torch.ops.aten.sub.Tensor")
      .Default("");
}

/// The operator that makes a new tensor; `node` becomes a copy of it. Nothing if it is not of the expected form.
std::optional<Node> split(Graph &graph, Node &node, size_t &count) {
  const llvm::StringRef target = withoutOut(node.target);
  const Argument *out = target.empty() ? nullptr : node.input("out");
  const auto *result = node.outputs.size() == 1 ? node.outputs[0].as<TensorArg>() : nullptr;
  if (!out || !out->as<TensorArg>() || !result || !graph.tensors.count(result->name))
    return std::nullopt;
  const std::string name = freshName(graph, result->name + "_made", count);
  graph.tensors[name] = graph.tensors[result->name];
  const Argument buffer = *out;
  Node made = node;
  made.target = target.str();
  llvm::erase_if(made.inputs, [](const NamedArgument &input) { return input.name == "out"; });
  made.outputs = {Argument{TensorArg{name}}};
  node.target = "torch.ops.aten.copy_.default";
  node.inputs = {NamedArgument{"self", buffer, NamedArgument::Kind::Positional},
                 NamedArgument{"src", Argument{TensorArg{name}}, NamedArgument::Kind::Positional}};
  return made;
}
} // namespace

void replaceOut(Graph &graph) {
  std::vector<Node> old = std::move(graph.nodes);
  graph.nodes.clear();
  size_t count = 0;
  for (Node &node : old) {
    for (NamedArgument &input : node.inputs)
      if (const auto *inner = input.argument.as<GraphArg>())
        replaceOut(*inner->graph);
    if (std::optional<Node> made = split(graph, node, count))
      graph.nodes.push_back(std::move(*made));
    graph.nodes.push_back(std::move(node));
  }
}

} // namespace tessera::pt2
