//===- BatchSize.cpp - numbers that follow from the size of a batch -------===//
//
// See BatchSize.h.
//
//===----------------------------------------------------------------------===//

#include "frontends/pt2/BatchSize.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;

namespace tessera::pt2 {

/// What PyTorch's schemas call the numbers that operators compute with. Others that may be integers are sizes, places
/// and counts.
static bool isComputedWith(StringRef argument) {
  constexpr StringRef kNames[] = {"self", "other", "value", "fill_value", "s",
                                  "min",  "max",   "alpha", "beta",       "exponent"};
  return llvm::is_contained(kNames, argument);
}

/// Whether an expression as Python writes it has a symbol.
static bool mentions(StringRef expression, StringRef symbol) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (size_t at = expression.find(symbol); at != StringRef::npos; at = expression.find(symbol, at + 1)) {
    const size_t end = at + symbol.size();
    if ((at == 0 || !isPart(expression[at - 1])) && (end == expression.size() || !isPart(expression[end])))
      return true;
  }
  return false;
}

/// Operators that read or write a part of a tensor that a number names.
static bool takesPart(StringRef target) {
  constexpr StringRef kNames[] = {"slice.",          "select.",           "narrow.",          "narrow_copy.",
                                  "split.",          "split_with_sizes.", "chunk.",           "slice_scatter.",
                                  "select_scatter.", "as_strided.",       "constant_pad_nd.", "pad."};
  return target.consume_front("torch.ops.aten.") &&
         llvm::any_of(kNames, [&](StringRef name) { return target.starts_with(name); });
}

std::string findNumberOf(const std::vector<std::string> &symbols, const Node &node, const Graph &graph) {
  const bool givesTensor = llvm::any_of(node.outputs, [](const Argument &output) {
    return output.as<TensorArg>() || output.as<std::vector<TensorArg>>();
  });
  if (!givesTensor)
    return "";
  auto follows = [&](const auto &numbers, const std::string &name) {
    auto found = numbers.find(name);
    return found != numbers.end() &&
           llvm::any_of(symbols, [&](StringRef symbol) { return mentions(found->second.expression, symbol); });
  };
  // A part of samples is the step's matter; a part of anything else would be as long as a micro-batch.
  const bool isPart =
      takesPart(node.target) && llvm::none_of(node.inputs, [&](const NamedArgument &argument) {
        const auto *tensor = argument.argument.as<TensorArg>();
        auto meta = tensor ? graph.tensors.find(tensor->name) : graph.tensors.end();
        return meta != graph.tensors.end() && llvm::any_of(meta->second.sizes, [&](const SymInt &size) {
                 return llvm::any_of(symbols, [&](StringRef symbol) { return mentions(size.expression, symbol); });
               });
      });
  for (const NamedArgument &argument : node.inputs) {
    const auto *sizes = argument.argument.as<std::vector<SymIntArg>>();
    if (isPart && sizes &&
        llvm::any_of(*sizes, [&](const SymIntArg &size) { return follows(graph.symInts, size.name); }))
      return argument.name;
    const auto *integer = argument.argument.as<SymIntArg>();
    const auto *number = argument.argument.as<SymFloatArg>();
    if ((integer && (isPart || isComputedWith(argument.name)) && follows(graph.symInts, integer->name)) ||
        (number && follows(graph.symFloats, number->name)))
      return argument.name;
  }
  return "";
}

} // namespace tessera::pt2
