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
static bool isOfNumbers(StringRef target) {
  return target.starts_with("_operator.") || target.starts_with("torch.sym_") || target.starts_with("math.");
}
/// Whether a node gives elements that a mask names, as many as are true in it.
static bool isMasked(const Node &node, const Graph &graph) {
  if (node.target == "torch.ops.aten.masked_select.default")
    return true;
  const Argument *indices = node.target == "torch.ops.aten.index.Tensor" ? node.input("indices") : nullptr;
  return indices && llvm::any_of(namesOf(*indices), [&](const std::string &name) {
           auto meta = graph.tensors.find(name);
           return meta != graph.tensors.end() && meta->second.dtype == ScalarType::Bool;
         });
}
/// The symbol that is the first size of a node's result; empty if it is none.
static std::string firstSize(const Node &node, const Graph &graph) {
  const auto *result = node.outputs.size() == 1 ? node.outputs[0].as<TensorArg>() : nullptr;
  auto meta = result ? graph.tensors.find(result->name) : graph.tensors.end();
  return meta != graph.tensors.end() && !meta->second.sizes.empty() ? meta->second.sizes[0].symbol() : "";
}
/// Whether a node reads a size that is one of these symbols.
static bool readsSize(const Node &node, const Graph &graph, const llvm::StringSet<> &symbols) {
  const Argument *self = node.target == "torch.ops.aten.sym_size.int" ? node.input("self") : nullptr;
  const Argument *dim = self ? node.input("dim") : nullptr;
  const auto *tensor = self ? self->as<TensorArg>() : nullptr;
  const auto *at = dim ? dim->as<int64_t>() : nullptr;
  auto meta = tensor ? graph.tensors.find(tensor->name) : graph.tensors.end();
  return meta != graph.tensors.end() && at && *at >= 0 && *at < static_cast<int64_t>(meta->second.sizes.size()) &&
         symbols.contains(meta->second.sizes[*at].symbol());
}
/// Whether a comparison says that a size is not negative.
static bool isBound(const Node &node) {
  const Argument *least = node.target == "_operator.ge" ? node.input("b") : nullptr;
  const auto *number = least ? least->as<int64_t>() : nullptr;
  return number && *number == 0;
}
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
  llvm::StringSet<> symbols, sizes, bounds; // of what masks name: sizes, and comparisons with 0
  llvm::StringSet<> lines;                  // where checks are that were told of: one becomes several nodes
  auto isNewLine = [&](const Node &node) {
    return !node.source || lines.insert(node.source->file + ":" + std::to_string(node.source->line)).second;
  };
  std::vector<bool> stays(nodes.size(), true);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (const std::string size = isMasked(nodes[i], program.graph) ? firstSize(nodes[i], program.graph) : "";
        !size.empty())
      symbols.insert(size);
    const bool isSize = readsSize(nodes[i], program.graph, symbols), isNumber = readsNumber(nodes[i].target) || isSize;
    const bool isOfData = isNumber || llvm::any_of(nodes[i].inputs, [&](const NamedArgument &input) {
                            return hasName(input.argument, ofData);
                          });
    if (isOfData && isCheck(nodes[i].target)) {
      stays[i] = false;
      if (isAssertion(nodes[i].target) && !hasName(nodes[i].inputs[0].argument, bounds) && isNewLine(nodes[i]))
        program.warnings.push_back(warningOf(nodes[i]));
    } else if (isNumber || (isOfData && isOfNumbers(nodes[i].target))) {
      const bool isOfSize =
          llvm::any_of(nodes[i].inputs, [&](const NamedArgument &input) { return hasName(input.argument, sizes); });
      for (const Argument &output : nodes[i].outputs) {
        addNames(output, ofData);
        if (isSize)
          addNames(output, sizes);
        if (isOfSize && isBound(nodes[i]))
          addNames(output, bounds);
      }
    }
  }
  for (const Argument &output : program.graph.outputs)
    addNames(output, read);
  for (size_t i = nodes.size(); i-- > 0;) {
    const bool isNumber = readsNumber(nodes[i].target) || readsSize(nodes[i], program.graph, symbols);
    if (isNumber || isOfNumbers(nodes[i].target))
      stays[i] = llvm::any_of(nodes[i].outputs, [&](const Argument &output) { return hasName(output, read); });
    if (stays[i])
      for (const NamedArgument &input : nodes[i].inputs)
        addNames(input.argument, read);
  }
  keepNodes(nodes, stays);
}

} // namespace tessera::pt2
