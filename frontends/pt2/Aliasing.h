//===- Aliasing.h - which operators share or change memory ------*- C++ -*-===//
//
// The importer has values, not memory. Here is what ATen's operators do with memory: whose results may share that of an
// argument, and which change an argument in place.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_ALIASING_H
#define TESSERA_FRONTENDS_PT2_ALIASING_H

#include "frontends/pt2/Program.h"

#include "llvm/ADT/StringRef.h"

namespace tessera::pt2 {

/// How the results of an operator share memory with its arguments.
enum class Sharing {
  None,      ///< memory of their own
  Same,      ///< all of the first tensor, with the same elements in the same shape
  Shape,     ///< all of it, in another shape
  Transpose, ///< all of it, with two dimensions exchanged
  Slice,
  Select,
  View,  ///< in a way that can be made again, but not undone
  Maybe, ///< depends on strides or arguments, or has several results; or the operator is not one of ATen
};

struct Alias {
  Sharing sharing = Sharing::None;
  std::vector<std::string> of; ///< names of tensors; one unless it is Maybe, none of None
};

Alias aliasOf(const Node &node, const Graph &graph);

/// Whether the result is the first tensor itself, so that it has that one's gradient even where none are recorded;
/// nothing if that is not known.
std::optional<bool> returnsArgument(const Node &node, const Graph &graph);

/// Whether an operator changes its first argument in place.
bool isInPlace(llvm::StringRef target);

/// The operator that makes a new tensor of what one in place makes; empty if `target` is none, or changes more than
/// elements.
std::string functionOf(llvm::StringRef target);

/// Whether a node does more than give results: it changes something, or that is not known.
bool hasEffect(const Node &node);

/// Calls `visit(std::string &)` for each tensor that an argument names.
template <typename Visit> void eachTensor(Argument &argument, Visit visit) {
  auto each = [&](auto *list) {
    if (list)
      for (auto &element : *list)
        visit(element.name);
  };
  auto optional = [&](OptionalTensorArg &element) {
    if (element)
      visit(element->name);
  };
  if (auto *tensor = std::get_if<TensorArg>(&argument.value))
    visit(tensor->name);
  each(std::get_if<std::vector<TensorArg>>(&argument.value));
  if (auto *one = std::get_if<OptionalTensorArg>(&argument.value))
    optional(*one);
  if (auto *list = std::get_if<std::vector<OptionalTensorArg>>(&argument.value))
    for (OptionalTensorArg &element : *list)
      optional(element);
  if (auto *lists = std::get_if<std::vector<std::vector<TensorArg>>>(&argument.value))
    for (std::vector<TensorArg> &list : *lists)
      each(&list);
}

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_ALIASING_H
