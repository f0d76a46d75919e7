//===- ValueChecks.cpp - checks of numbers that depend on data -------------===//

#include "frontends/pt2/ValueChecks.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <limits>

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
/// How many elements a node's masks have at most; the largest number if that is not known.
static int64_t elementsOfMasks(const Node &node, const Graph &graph) {
  int64_t most = 0;
  for (const NamedArgument &input : node.inputs)
    eachName(input.argument, [&](const std::string &name) {
      auto meta = graph.tensors.find(name);
      if (meta == graph.tensors.end() || meta->second.dtype != ScalarType::Bool)
        return;
      int64_t count = 1;
      for (const SymInt &size : meta->second.sizes)
        if (!size.isConstant() || __builtin_mul_overflow(count, size.value, &count))
          count = std::numeric_limits<int64_t>::max();
      most = std::max(most, count);
    });
  return most;
}
/// The symbol that is the first size of a node's result; empty if it is none.
static std::string firstSize(const Node &node, const Graph &graph) {
  const auto *result = node.outputs.size() == 1 ? node.outputs[0].as<TensorArg>() : nullptr;
  auto meta = result ? graph.tensors.find(result->name) : graph.tensors.end();
  return meta != graph.tensors.end() && !meta->second.sizes.empty() ? meta->second.sizes[0].symbol() : "";
}
/// The most that a size is that a node reads, if it is one of these symbols.
static std::optional<int64_t> mostOfSize(const Node &node, const Graph &graph,
                                         const llvm::StringMap<int64_t> &symbols) {
  const Argument *self = node.target == "torch.ops.aten.sym_size.int" ? node.input("self") : nullptr;
  const Argument *dim = self ? node.input("dim") : nullptr;
  const auto *tensor = self ? self->as<TensorArg>() : nullptr;
  const auto *at = dim ? dim->as<int64_t>() : nullptr;
  auto meta = tensor ? graph.tensors.find(tensor->name) : graph.tensors.end();
  if (meta == graph.tensors.end() || !at || *at < 0 || *at >= static_cast<int64_t>(meta->second.sizes.size()))
    return std::nullopt;
  auto found = symbols.find(meta->second.sizes[*at].symbol());
  return found == symbols.end() ? std::nullopt : std::optional(found->second);
}
/// Whether a comparison of a size with a number holds of itself: that it is not negative, or at most all there is.
static bool isBound(const Node &node, const llvm::StringMap<int64_t> &sizes) {
  const Argument *size = node.input("a"), *bound = node.input("b");
  const auto *number = bound ? bound->as<int64_t>() : nullptr;
  const std::vector<std::string> names = size ? namesOf(*size) : std::vector<std::string>();
  auto most = names.size() == 1 ? sizes.find(names[0]) : sizes.end();
  return number && most != sizes.end() &&
         (node.target == "_operator.ge" ? *number <= 0 : node.target == "_operator.le" && *number >= most->second);
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
  // Of what masks name: symbols and sizes with the most that they can be, and comparisons that hold of themselves.
  llvm::StringMap<int64_t> symbols, sizes;
  llvm::StringSet<> bounds;
  llvm::StringSet<> lines; // where checks are that were told of: one becomes several nodes
  auto isNewLine = [&](const Node &node) {
    return !node.source || lines.insert(node.source->file + ":" + std::to_string(node.source->line)).second;
  };
  std::vector<bool> stays(nodes.size(), true);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (const std::string size = isMasked(nodes[i], program.graph) ? firstSize(nodes[i], program.graph) : "";
        !size.empty())
      symbols[size] = elementsOfMasks(nodes[i], program.graph);
    const std::optional<int64_t> most = mostOfSize(nodes[i], program.graph, symbols);
    const bool isNumber = readsNumber(nodes[i].target) || most;
    const bool isOfData = isNumber || llvm::any_of(nodes[i].inputs, [&](const NamedArgument &input) {
                            return hasName(input.argument, ofData);
                          });
    if (isOfData && isCheck(nodes[i].target)) {
      stays[i] = false;
      if (isAssertion(nodes[i].target) && !hasName(nodes[i].inputs[0].argument, bounds) && isNewLine(nodes[i]))
        program.warnings.push_back(warningOf(nodes[i]));
    } else if (isNumber || (isOfData && isOfNumbers(nodes[i].target))) {
      for (const Argument &output : nodes[i].outputs) {
        addNames(output, ofData);
        if (most)
          eachName(output, [&](const std::string &name) { sizes[name] = *most; });
        if (isBound(nodes[i], sizes))
          addNames(output, bounds);
      }
    }
  }
  for (const Argument &output : program.graph.outputs)
    addNames(output, read);
  for (size_t i = nodes.size(); i-- > 0;) {
    const bool isNumber = readsNumber(nodes[i].target) || mostOfSize(nodes[i], program.graph, symbols);
    if (isNumber || isOfNumbers(nodes[i].target))
      stays[i] = llvm::any_of(nodes[i].outputs, [&](const Argument &output) { return hasName(output, read); });
    if (stays[i])
      for (const NamedArgument &input : nodes[i].inputs)
        addNames(input.argument, read);
  }
  keepNodes(nodes, stays);
}

} // namespace tessera::pt2
