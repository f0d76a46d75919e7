//===- TreeSpec.h - names of what a module returns --------------*- C++ -*-===//
//
// A program holds its results as a flat list, and how they were nested as JSON of torch.utils._pytree.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_TREESPEC_H
#define TESSERA_FRONTENDS_PT2_TREESPEC_H

#include "llvm/ADT/StringRef.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera::pt2 {

/// Fields of each named tuple, by its serialized type.
using NamedTuples = std::map<std::string, std::vector<std::string>>;

/// The names of the leaves, in order: "output" for a result that is not nested, "output0", "output1" for those of a
/// tuple or list, the key for one of a dictionary, dataclass, ModelOutput or named tuple; deeper ones after a dot
/// ("logits.0"). Nothing if the text is not understood, or two leaves would have one name.
std::optional<std::vector<std::string>> leafNames(llvm::StringRef spec, const NamedTuples &tuples);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_TREESPEC_H
