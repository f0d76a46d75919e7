//===- Out.cpp - operators that are given their result ---------------------===//

#include "frontends/pt2/Out.h"

#include "frontends/pt2/OpTable.h"

#include "llvm/ADT/STLExtras.h"

namespace tessera::pt2 {

namespace {
/// Overloads of one name take other arguments, so that each is here by itself.
constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> kWithoutOut[] = {
    {"aten.abs.out", "aten.abs.default"},
    {"aten.add.out", "aten.add.Tensor"},
    {"aten.arange.start_out", "aten.arange.start_step"},
    {"aten.atan2.out", "aten.atan2.default"},
    {"aten.bmm.out", "aten.bmm.default"},
    {"aten.clamp.out", "aten.clamp.default"},
    {"aten.cos.out", "aten.cos.default"},
    {"aten.div.out", "aten.div.Tensor"},
    {"aten.exp.out", "aten.exp.default"},
    {"aten.eye.m_out", "aten.eye.m"},
    {"aten.eye.out", "aten.eye.default"},
    {"aten.full.out", "aten.full.default"},
    {"aten.linspace.out", "aten.linspace.default"},
    {"aten.log.out", "aten.log.default"},
    {"aten.matmul.out", "aten.matmul.default"},
    {"aten.maximum.out", "aten.maximum.default"},
    {"aten.minimum.out", "aten.minimum.default"},
    {"aten.mm.out", "aten.mm.default"},
    {"aten.mul.out", "aten.mul.Tensor"},
    {"aten.mv.out", "aten.mv.default"},
    {"aten.neg.out", "aten.neg.default"},
    {"aten.ones.out", "aten.ones.default"},
    {"aten.sin.out", "aten.sin.default"},
    {"aten.sqrt.out", "aten.sqrt.default"},
    {"aten.sub.out", "aten.sub.Tensor"},
    {"aten.zeros.out", "aten.zeros.default"},
};

/// The operator without `out`; empty where it is not rewritten.
std::string withoutOut(llvm::StringRef target) {
  for (const auto &[with, without] : kWithoutOut)
    if (shortTarget(target) == with)
      return "torch.ops." + without.str();
  return "";
}

/// The operator that makes a new tensor; `node` becomes a copy of it. Nothing if it is not of the expected form.
std::optional<Node> split(Graph &graph, Node &node, size_t &count) {
  const std::string target = withoutOut(node.target);
  const Argument *out = target.empty() ? nullptr : node.input("out");
  const auto *result = node.outputs.size() == 1 ? node.outputs[0].as<TensorArg>() : nullptr;
  if (!out || !out->as<TensorArg>() || !result || !graph.tensors.count(result->name))
    return std::nullopt;
  const std::string name = freshName(graph, result->name + "_made", count);
  graph.tensors[name] = graph.tensors[result->name];
  const Argument buffer = *out;
  Node made = node;
  made.target = target;
  llvm::erase_if(made.inputs, [](const NamedArgument &input) { return input.name == "out"; });
  made.outputs = {Argument{TensorArg{name}}};
  node.target = "torch.ops.aten.copy_.default";
  node.inputs = {NamedArgument{"self", buffer, NamedArgument::Kind::Positional},
                 NamedArgument{"src", Argument{TensorArg{name}}, NamedArgument::Kind::Positional}};
  return made;
}
} // namespace

std::vector<std::string> outOperators() {
  std::vector<std::string> names;
  for (const auto &row : kWithoutOut)
    names.push_back(row.first.str());
  return names;
}

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
