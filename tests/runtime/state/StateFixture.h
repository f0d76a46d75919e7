//===- StateFixture.h - a small model's state on any number of ranks ----------===//

#ifndef TESSERA_TESTS_RUNTIME_STATE_STATEFIXTURE_H
#define TESSERA_TESTS_RUNTIME_STATE_STATEFIXTURE_H

#include "runtime/state/StateView.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace tessera::test {

/// The states of AdamW.
inline const StateKind moment1(StateRole::Optimizer, "m"), moment2(StateRole::Optimizer, "v");

/// Kinds have numbers of their own, of which values are made.
inline int number(const StateKind &kind) {
  return kind == moment1 ? 2 : kind == moment2 ? 3 : kind == StateRole::Average ? 4 : static_cast<int>(kind.role);
}

/// Memory and views of all ranks. `wrap` says which parameters share a unit; units are padded to a multiple of the
/// ranks.
class FakeState {
public:
  struct Parameter {
    std::string name;
    std::vector<int64_t> shape;
    std::optional<InitSpec> init;
  };
  using Wrap = std::vector<std::vector<Parameter>>;

  FakeState(const Wrap &wrap, int numRanks, bool sharded = true,
            const std::vector<StateKind> &roles = {StateRole::Parameter, moment1, moment2}) {
    ranks.resize(numRanks);
    for (size_t unit = 0; unit < wrap.size(); ++unit)
      for (StateKind role : roles)
        addUnit("unit" + std::to_string(unit), wrap[unit], role, sharded ? numRanks : 1);
  }

  /// Values of a parameter, assembled from all ranks.
  std::vector<float> gather(const std::string &name, StateKind role = StateRole::Parameter) const {
    std::vector<float> values;
    for (const RankState &rank : ranks)
      for (const StateView &view : rank)
        for (const ParameterSegment &segment : view.segments)
          if (view.kind == role && segment.name == name && view.saves) {
            auto [begin, end] = overlap(view, segment);
            const float *data = reinterpret_cast<const float *>(view.data);
            for (int64_t i = begin; i < end; ++i)
              values.push_back(data[i - view.begin]);
          }
    return values;
  }

  /// Every element of every segment gets a value of its own, padding 0.
  void fillDistinct(float start) {
    for (const RankState &rank : ranks)
      for (const StateView &view : rank) {
        std::memset(view.data, 0, view.localBytes());
        for (const ParameterSegment &segment : view.segments) {
          auto [begin, end] = overlap(view, segment);
          for (int64_t i = begin; i < end; ++i)
            reinterpret_cast<float *>(view.data)[i - view.begin] =
                start + 1000.0f * static_cast<float>(number(view.kind)) + static_cast<float>(i - segment.offset) +
                10.0f * static_cast<float>(segment.name.back());
        }
      }
  }

  void fill(float value) {
    for (const RankState &rank : ranks)
      for (const StateView &view : rank)
        std::fill_n(reinterpret_cast<float *>(view.data), view.end - view.begin, value);
  }

  std::vector<RankState> ranks;

private:
  void addUnit(const std::string &name, const std::vector<Parameter> &parameters, StateKind role, int parts) {
    StateView view;
    view.unit = name;
    view.kind = role;
    for (const Parameter &parameter : parameters) {
      int64_t elements = *checkedElements(parameter.shape);
      view.segments.push_back({parameter.name, parameter.shape, view.elements, elements, parameter.init, {}});
      view.elements += elements;
    }
    view.elements = (view.elements + parts - 1) / parts * parts;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      StateView local = view;
      int64_t length = view.elements / parts;
      local.begin = parts == 1 ? 0 : length * static_cast<int64_t>(rank);
      local.end = local.begin + length;
      local.saves = parts > 1 || rank == 0;
      memory.push_back(std::make_unique<float[]>(length));
      std::fill_n(memory.back().get(), length, -1.0f);
      local.data = reinterpret_cast<uint8_t *>(memory.back().get());
      ranks[rank].push_back(std::move(local));
    }
  }

  std::vector<std::unique_ptr<float[]>> memory;
};

inline InitSpec normal(double mean, double deviation) { return {artifact::InitKind::Normal, mean, deviation}; }
inline InitSpec uniform(double low, double high) { return {artifact::InitKind::Uniform, low, high}; }
inline InitSpec constant(double value) { return {artifact::InitKind::Constant, value, 0}; }

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_STATE_STATEFIXTURE_H
