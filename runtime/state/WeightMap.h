//===- WeightMap.h - where Hugging Face's files have parameters -------------===//
//
// The same both ways: what a run begins with is read by it, and what it leaves
// is written by it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_WEIGHTMAP_H
#define TESSERA_RUNTIME_STATE_WEIGHTMAP_H

#include "runtime/artifact/Reader.h"
#include "runtime/artifact/WeightPiece.h"

#include <map>

namespace tessera {

/// What files have a parameter as: the pieces, or one of the other names as a whole.
struct StoredParameter {
  std::vector<WeightPiece> pieces;
  std::vector<std::string> others;
};

class WeightMap {
public:
  /// Every parameter is the tensor of its name.
  WeightMap() = default;
  /// `root` and `prefix` without the dot behind them; `parameters` that are not the tensor of their name.
  WeightMap(const std::string &root, const std::string &prefix, std::map<std::string, StoredParameter> parameters,
            std::vector<std::string> unread = {}, std::string refused = "");
  /// That of an artifact; without one, every parameter is the tensor of its name.
  static WeightMap of(const Artifact &artifact);

  /// A parameter of the program and its shape.
  StoredParameter stored(const std::string &parameter, const std::vector<int64_t> &shape) const;
  /// The parameter's name in the model: without the path of the model in the program's module.
  std::string inModel(const std::string &parameter) const;
  /// Names that files may have a tensor under: its own, and the one with or without the prefix.
  std::vector<std::string> spellings(const std::string &tensor) const;

  /// Tensors of the files that the model does not take.
  const std::vector<std::string> &unread() const { return unreadNames; }
  /// Why there is no map, to be said where one is needed. Empty: there is, or none is needed.
  const std::string &refused() const { return reason; }

private:
  std::string root, prefix, reason;
  std::map<std::string, StoredParameter> parameters;
  std::vector<std::string> unreadNames;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_WEIGHTMAP_H
