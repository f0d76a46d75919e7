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
  Diagonal,
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

/// What an operator in place stands for: one that makes a new tensor.
struct InPlaceFunction {
  std::string target; ///< "torch.ops.aten.add.Tensor" of "torch.ops.aten.add_.Tensor"
  std::string self;   ///< what it calls the argument that the operator in place calls "self"
};

/// Nothing if `target` is none, or changes more than elements.
std::optional<InPlaceFunction> functionOf(llvm::StringRef target);

/// Whether an operator updates the range of the numbers that it rounds, and the scale that follows from it.
bool observesRange(llvm::StringRef target);

/// Whether an operator changes a tensor: its first argument, or running statistics.
bool changesTensor(llvm::StringRef target);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_ALIASING_H
