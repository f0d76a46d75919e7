//===- StateView.h - what lives across steps, as one rank holds it -----------===//
//
// Initialisation, weights, checkpoints and export see the training state only through these views: flat units, the
// range of each that this rank holds, and the parameters inside. Nothing here needs an executor.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_STATEVIEW_H
#define TESSERA_RUNTIME_STATE_STATEVIEW_H

#include "runtime/artifact/Reader.h"
#include "runtime/base/File.h"
#include "runtime/state/DataTypes.h"
#include "runtime/state/ParameterSegment.h"

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

using artifact::StateRole;

/// What a state tensor is: its role, and of an optimizer's state the name there.
struct StateKind {
  StateRole role = StateRole::Parameter;
  std::string state; ///< "m", "momentum"; empty but for StateRole::Optimizer

  StateKind() = default;
  StateKind(StateRole role, std::string state = "") : role(role), state(std::move(state)) {}
  /// Whether it is the model's own, which files of weights have by name: parameters, trained or frozen, and buffers.
  bool isOfModel() const {
    return role == StateRole::Parameter || role == StateRole::Frozen || role == StateRole::Buffer;
  }
  friend auto operator<=>(const StateKind &, const StateKind &) = default;
};

/// "parameter", "frozen", "average", "buffer", or the name of the optimizer's state: the names in checkpoints.
std::string toString(const StateKind &kind);
/// Nothing for a text that is no name of a state.
std::optional<StateKind> stateKindFromString(std::string_view text);

/// The range [begin, end) of a flat unit of `elements` elements. Elements outside of all segments are padding: zero.
struct StateView {
  std::string unit;
  StateKind kind;
  DataType dtype = DataType::F32;
  int64_t elements = 0, begin = 0, end = 0;
  std::vector<ParameterSegment> segments; ///< In order of offset, not overlapping.
  DataType modelDtype = DataType::F32;    ///< What weights are given in; they are rounded where it is wider.
  bool saves = true; ///< This rank writes the range to checkpoints; other ranks may hold equal copies.
  uint8_t *data = nullptr;

  size_t localBytes() const { return (end - begin) * elementBytes(dtype); }
  ByteSpan bytes() const { return {data, localBytes()}; }
};

using RankState = std::vector<StateView>;

/// The views of one rank of a program; `address` gives the memory of an entry of the program's state table.
Result<RankState> makeRankState(const Artifact &artifact, int rank, const std::function<void *(size_t state)> &address);

/// A tensor of the model's own.
struct ModelTensor {
  std::vector<int64_t> shape;
  DataType dtype = DataType::F32; ///< that the model gave it
};
using ModelTensors = std::map<std::string, ModelTensor>;
/// Those of a program, by name.
ModelTensors modelTensorsOf(const Artifact &artifact);
/// Whether a program keeps moving averages of what it trains.
bool hasAverages(const Artifact &artifact);

/// What `view` holds of `segment`, in elements from the start of the unit; empty if begin >= end.
struct Overlap {
  int64_t begin, end;
};
Overlap overlap(const StateView &view, const ParameterSegment &segment);

/// The parameters of a unit, each once: the first part of one that is there in parts.
std::vector<const ParameterSegment *> parametersOf(const StateView &view);

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_STATEVIEW_H
