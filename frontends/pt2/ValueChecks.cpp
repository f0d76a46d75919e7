//===- ValueChecks.cpp - checks of numbers that depend on data -------------===//

#include "frontends/pt2/ValueChecks.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

namespace tessera::pt2 {

using llvm::StringRef;

static bool readsNumber(StringRef target) {
  return target == "torch.ops.aten.item.default" || target == "torch.ops.aten._local_scalar_dense.default";
}
/// Whether a node computes numbers of numbers.
static bool isOfNumbers(StringRef target) { return target.starts_with("_operator."); }
static bool isCheck(StringRef target) {
  return target == "torch.ops.aten._assert_scalar.default" ||
         target == "torch.ops.aten.sym_constrain_range_for_size.default" ||
         target == "torch.ops.aten.sym_constrain_range.default";
}

static bool names(std::vector<NamedArgument> &inputs, const llvm::StringSet<> &those) {
  bool found = false;
  for (NamedArgument &input : inputs)
    eachName(input.argument, [&](std::string &name) { found |= those.contains(name); });
  return found;
}

static std::string warningOf(const Node &node) {
  const Argument *message = node.input("assert_msg");
  const std::string *text = message ? message->as<std::string>() : nullptr;
  std::string warning = "the program checks values, which training does not: " + (text ? *text : node.name);
  if (node.source)
    warning += " (" + node.source->file + ":" + std::to_string(node.source->line) + ")";
  return warning;
}

void dropValueChecks(Program &program) {
  std::vector<Node> &nodes = program.graph.nodes;
  llvm::StringSet<> ofData, read;
  std::vector<bool> stays(nodes.size(), true);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool isOfData = readsNumber(nodes[i].target) || names(nodes[i].inputs, ofData);
    if (isOfData && isCheck(nodes[i].target)) {
      stays[i] = false;
      if (StringRef(nodes[i].target).contains("_assert_"))
        program.warnings.push_back(warningOf(nodes[i]));
    } else if (readsNumber(nodes[i].target) || (isOfData && isOfNumbers(nodes[i].target))) {
      for (Argument &output : nodes[i].outputs)
        eachName(output, [&](std::string &name) { ofData.insert(name); });
    }
  }
  for (Argument &output : program.graph.outputs)
    eachName(output, [&](std::string &name) { read.insert(name); });
  for (size_t i = nodes.size(); i-- > 0;) {
    if (readsNumber(nodes[i].target) || isOfNumbers(nodes[i].target)) {
      bool isRead = false;
      for (Argument &output : nodes[i].outputs)
        eachName(output, [&](std::string &name) { isRead |= read.contains(name); });
      stays[i] = isRead;
    }
    if (stays[i])
      for (NamedArgument &input : nodes[i].inputs)
        eachName(input.argument, [&](std::string &name) { read.insert(name); });
  }
  std::vector<Node> left;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (stays[i])
      left.push_back(std::move(nodes[i]));
  nodes = std::move(left);
}

} // namespace tessera::pt2
