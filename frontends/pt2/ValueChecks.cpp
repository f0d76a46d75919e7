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
static bool isAssertion(StringRef target) { return target == "torch.ops.aten._assert_scalar.default"; }
static bool isCheck(StringRef target) {
  return isAssertion(target) || target == "torch.ops.aten.sym_constrain_range_for_size.default" ||
         target == "torch.ops.aten.sym_constrain_range.default";
}

/// Whether an argument has one of these names.
static bool hasName(const Argument &argument, const llvm::StringSet<> &those) {
  return llvm::any_of(namesOf(argument), [&](const std::string &name) { return those.contains(name); });
}
static void addNames(const Argument &argument, llvm::StringSet<> &to) {
  eachName(argument, [&](const std::string &name) { to.insert(name); });
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
    const bool isOfData =
        readsNumber(nodes[i].target) ||
        llvm::any_of(nodes[i].inputs, [&](const NamedArgument &input) { return hasName(input.argument, ofData); });
    if (isOfData && isCheck(nodes[i].target)) {
      stays[i] = false;
      if (isAssertion(nodes[i].target))
        program.warnings.push_back(warningOf(nodes[i]));
    } else if (readsNumber(nodes[i].target) || (isOfData && isOfNumbers(nodes[i].target))) {
      for (const Argument &output : nodes[i].outputs)
        addNames(output, ofData);
    }
  }
  for (const Argument &output : program.graph.outputs)
    addNames(output, read);
  for (size_t i = nodes.size(); i-- > 0;) {
    if (readsNumber(nodes[i].target) || isOfNumbers(nodes[i].target))
      stays[i] = llvm::any_of(nodes[i].outputs, [&](const Argument &output) { return hasName(output, read); });
    if (stays[i])
      for (const NamedArgument &input : nodes[i].inputs)
        addNames(input.argument, read);
  }
  keepNodes(nodes, stays);
}

} // namespace tessera::pt2
