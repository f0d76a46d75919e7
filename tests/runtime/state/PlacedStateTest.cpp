//===- PlacedStateTest.cpp - state of parameters that model axes split ------------===//

#include "runtime/state/Checkpoint.h"
#include "runtime/state/FiniteState.h"
#include "runtime/state/Init.h"
#include "runtime/state/Weights.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

#include <limits>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

using test::ScratchFolder;

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  int64_t dim; ///< that model axes split; -1: none
};
const std::vector<Parameter> parameters = {
    {"up", {12, 4}, 0}, {"down", {3, 12}, 1}, {"conv", {2, 12, 5}, 1}, {"vector", {12}, 0}, {"norm", {7}, -1}};

/// Which element of the parameter is element `index` of part `part`: by its place on each dimension.
int64_t elementOf(const Parameter &parameter, const ParameterPart &part, int64_t index) {
  std::vector<int64_t> local = parameter.shape, position(local.size());
  if (part.count > 1)
    local[part.dim] /= part.count;
  for (size_t dim = local.size(); dim-- > 0; index /= local[dim])
    position[dim] = index % local[dim];
  if (part.count > 1)
    position[part.dim] += part.index * local[part.dim];
  int64_t element = 0;
  for (size_t dim = 0; dim < local.size(); ++dim)
    element = element * parameter.shape[dim] + position[dim];
  return element;
}

/// State on `model` x `data` ranks: a unit of what is placed, rows of parts that data ranks split, and one of the rest.
class PlacedState {
public:
  PlacedState(int64_t model, int64_t data, std::optional<InitSpec> init = {}) {
    ranks.resize(model * data);
    addUnit("placed", model, data, init);
    addUnit("whole", 1, data, init);
  }

  /// Calls `fn(rank's value, parameter, its element)` for what all ranks hold.
  void forEach(const std::function<void(float &, const Parameter &, int64_t)> &fn) {
    for (const RankState &rank : ranks)
      for (const StateView &view : rank)
        for (const ParameterSegment &segment : view.segments)
          for (int64_t i = std::max(view.begin, segment.offset); i < std::min(view.end, segment.end()); ++i)
            fn(reinterpret_cast<float *>(view.data)[i - view.begin], byName(segment.name),
               elementOf(byName(segment.name), segment.part, i - segment.offset));
  }

  std::vector<RankState> ranks;

private:
  static const Parameter &byName(const std::string &name) {
    return *std::find_if(parameters.begin(), parameters.end(), [&](const auto &one) { return one.name == name; });
  }

  void addUnit(const std::string &name, int64_t model, int64_t data, std::optional<InitSpec> init) {
    StateView unit;
    unit.unit = name;
    int64_t row = 0;
    for (const Parameter &parameter : parameters)
      if ((parameter.dim >= 0) == (name == "placed"))
        row += *checkedElements(parameter.shape) / model;
    row = (row + data - 1) / data * data;
    unit.elements = row * model;
    for (int64_t part = 0; part < model; ++part) {
      int64_t offset = part * row;
      for (const Parameter &parameter : parameters) {
        if ((parameter.dim >= 0) != (name == "placed"))
          continue;
        const int64_t elements = *checkedElements(parameter.shape) / model;
        ParameterSegment segment{parameter.name, parameter.shape, offset, elements, init, {}};
        if (model > 1)
          segment.part = {parameter.dim, model, part};
        unit.segments.push_back(segment);
        offset += elements;
      }
    }
    const auto numRanks = static_cast<int64_t>(ranks.size());
    for (int64_t rank = 0; rank < numRanks; ++rank) {
      StateView view = unit;
      view.begin = model > 1 ? rank / data * row + rank % data * (row / data) : rank % data * (row / data);
      view.end = view.begin + row / data;
      view.saves = model > 1 || rank < data;
      memory.push_back(std::make_unique<float[]>(view.end - view.begin));
      std::fill_n(memory.back().get(), view.end - view.begin, -1.0f);
      view.data = reinterpret_cast<uint8_t *>(memory.back().get());
      ranks[rank].push_back(std::move(view));
    }
  }

  std::vector<std::unique_ptr<float[]>> memory;
};

float valueOf(const Parameter &parameter, int64_t element) {
  return static_cast<float>(element) + 1000.0f * static_cast<float>(parameter.name.front());
}

void expectValues(PlacedState &state) {
  int64_t elements = 0;
  state.forEach([&](float &value, const Parameter &parameter, int64_t element) {
    ASSERT_EQ(value, valueOf(parameter, element)) << parameter.name << " at " << element;
    ++elements;
  });
  EXPECT_GE(elements, 12 * 4 + 3 * 12 + 2 * 12 * 5 + 12 + 7);
}

void fill(PlacedState &state) {
  state.forEach([](float &value, const Parameter &parameter, int64_t element) { value = valueOf(parameter, element); });
}

TEST(PlacedState, RunsCoverAPartBothWays) {
  for (const Parameter &parameter : parameters)
    for (int64_t count : {1, 2, 3, 4, 6}) {
      if (parameter.dim < 0 || parameter.shape[parameter.dim] % count != 0)
        continue;
      const int64_t all = *checkedElements(parameter.shape), own = all / count;
      for (int64_t index = 0; index < count; ++index) {
        ParameterSegment segment{parameter.name, parameter.shape, 5, own, {}, {}};
        if (count > 1)
          segment.part = {parameter.dim, count, index};
        std::vector<int64_t> found(own, -1), inverse(own, -1);
        // In two halves, as ranks hold them.
        for (auto [begin, end] : {std::pair<int64_t, int64_t>(5, 5 + own / 2), {5 + own / 2, 5 + own}})
          ASSERT_STATUS_OK(segment.forEachRun(begin, end, [&](const ElementRun &run) {
            for (int64_t i = 0; i < run.count; ++i)
              found[run.inUnit + i - 5] = run.inParameter + i;
            return Status::ok();
          }));
        for (auto [first, last] : {std::pair<int64_t, int64_t>(0, all / 3), {all / 3, all}})
          ASSERT_STATUS_OK(segment.forEachRunOf(first, last, [&](const ElementRun &run) {
            for (int64_t i = 0; i < run.count; ++i)
              inverse[run.inUnit + i - 5] = run.inParameter + i;
            return Status::ok();
          }));
        for (int64_t i = 0; i < own; ++i) {
          EXPECT_EQ(found[i], elementOf(parameter, segment.part, i));
          EXPECT_EQ(inverse[i], found[i]);
        }
      }
    }
}

TEST(PlacedState, PartsThatAreNone) {
  EXPECT_EQ(elementsOfPart({12, 4}, {0, 3, 2}), 16);
  EXPECT_EQ(elementsOfPart({}, {}), 1);
  EXPECT_EQ(elementsOfPart({}, {-1, 1, 1}), std::nullopt);
  for (ParameterPart part :
       {ParameterPart{2, 2, 0}, {0, 5, 0}, {0, 3, 3}, {0, 0, 0}, {-1, 2, 0}, {0, 2, -1}, {0, 1, 0}})
    EXPECT_EQ(elementsOfPart({12, 4}, part), std::nullopt);
}

TEST(PlacedState, ReshardsToAnyModelAndDataAxes) {
  for (int64_t fromModel : {1, 2, 3})
    for (int64_t fromData : {1, 2}) {
      ScratchFolder scratch;
      PlacedState saved(fromModel, fromData);
      fill(saved);
      ASSERT_STATUS_OK(saveCheckpoint({scratch.root()}, {}, saved.ranks));
      auto manifest = nlohmann::json::parse(test::readFile(scratch.path("ckpt-0/manifest.json")));
      EXPECT_EQ(manifest["version"], fromModel > 1 ? 2 : 1);
      for (int64_t model : {1, 2, 4, 6})
        for (int64_t data : {1, 3}) {
          PlacedState resumed(model, data);
          ASSERT_STATUS_OK(loadCheckpoint(scratch.root(), resumed.ranks));
          expectValues(resumed);
        }
    }
}

TEST(PlacedState, ExportsAndReadsWholeParameters) {
  ScratchFolder scratch;
  PlacedState saved(3, 2);
  fill(saved);
  ASSERT_STATUS_OK(exportParameters(scratch.path("model.safetensors"), saved.ranks));
  auto file = SafetensorsFile::open(scratch.path("model.safetensors"));
  ASSERT_STATUS_OK(file);
  EXPECT_EQ(file->tensors().size(), parameters.size());
  for (const Parameter &parameter : parameters) {
    const SafetensorsEntry *entry = file->find(parameter.name);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->shape, parameter.shape);
    auto bytes = entry->bytes.readAll();
    ASSERT_STATUS_OK(bytes);
    for (int64_t i = 0; i < entry->elements; ++i)
      ASSERT_EQ(reinterpret_cast<const float *>(bytes->data())[i], valueOf(parameter, i)) << parameter.name;
  }
  auto source = WeightSource::open(scratch.path("model.safetensors"));
  ASSERT_STATUS_OK(source);
  PlacedState loaded(2, 3);
  for (const RankState &rank : loaded.ranks)
    ASSERT_STATUS_OK(loadWeights(rank, **source, 1));
  expectValues(loaded);
}

TEST(PlacedState, BeginsWithTheSameValuesOnAnyMesh) {
  for (const InitSpec &init : {test::normal(0.5, 2), test::uniform(-1, 1)}) {
    PlacedState whole(1, 1, init);
    std::map<std::pair<std::string, int64_t>, float> expected;
    for (const RankState &rank : whole.ranks)
      ASSERT_STATUS_OK(initialiseState(rank, 7));
    whole.forEach([&](float &value, const Parameter &parameter, int64_t element) {
      expected[{parameter.name, element}] = value;
    });
    PlacedState split(3, 2, init);
    for (const RankState &rank : split.ranks)
      ASSERT_STATUS_OK(initialiseState(rank, 7));
    split.forEach([&](float &value, const Parameter &parameter, int64_t element) {
      ASSERT_EQ(value, expected.at({parameter.name, element})) << parameter.name << " at " << element;
    });
  }
}

TEST(PlacedState, ManifestsWithPartsThatDoNotBelongTogether) {
  ScratchFolder scratch;
  PlacedState saved(2, 1);
  fill(saved);
  ASSERT_STATUS_OK(saveCheckpoint({scratch.root()}, {}, saved.ranks));
  const std::string path = scratch.path("ckpt-0/manifest.json"), content = test::readFile(path);
  auto expectError = [&](const std::function<void(nlohmann::ordered_json &)> &change, const std::string &message) {
    auto json = nlohmann::ordered_json::parse(content);
    change(json["units"][0]["segments"]);
    json.erase("manifest_xxh3");
    const std::string body = json.dump(1) + "\n";
    char hash[17];
    std::snprintf(hash, sizeof(hash), "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits(body.data(), body.size())));
    json["manifest_xxh3"] = hash;
    test::writeFile(path, json.dump(1) + "\n");
    PlacedState resumed(2, 1);
    EXPECT_ERROR(loadCheckpoint(scratch.root(), resumed.ranks), message);
  };
  expectError([](auto &segments) { segments[0]["part"]["index"] = 1; }, "parameter 'up' appears twice");
  expectError([](auto &segments) { segments.erase(segments.begin()); }, "parameter 'up' has 1 of 2 parts");
  expectError([](auto &segments) { segments[0]["part"]["count"] = 4; }, "do not belong together");
  expectError([](auto &segments) { segments[0]["part"]["dim"] = 1; }, "do not belong together");
  expectError([](auto &segments) { segments[0]["part"]["index"] = 2; }, "field 'segments' is missing or invalid");
  expectError([](auto &segments) { segments[0]["part"]["count"] = -1; }, "field 'count' is missing or invalid");
}

TEST(PlacedState, MessagesNameAParameterOnce) {
  ScratchFolder scratch;
  PlacedState saved(2, 2), other(2, 2);
  fill(saved);
  ASSERT_STATUS_OK(saveCheckpoint({scratch.root()}, {}, saved.ranks));
  ASSERT_STATUS_OK(exportParameters(scratch.path("model.safetensors"), saved.ranks));
  for (RankState &rank : other.ranks)
    for (StateView &view : rank)
      for (ParameterSegment &segment : view.segments)
        if (segment.name == "up")
          segment.name = "new";
        else if (segment.name == "conv")
          segment.shape = {2, 10, 6};
  EXPECT_ERROR(loadCheckpoint(scratch.root(), other.ranks),
               "program: 'new' (parameter) is not in the checkpoint; 'conv' (parameter) has shape [2,12,5], expected "
               "[2,10,6]; 'up' (parameter) is not in the program");
  auto source = WeightSource::open(scratch.path("model.safetensors"));
  ASSERT_STATUS_OK(source);
  EXPECT_ERROR(loadWeights(other.ranks[0], **source, 1),
               "missing: 'new'; not in the program: 'up'; mismatched: 'conv' has shape [2,12,5], expected [2,10,6]");
  EXPECT_ERROR(initialiseState(other.ranks[0], 7), "need weights: 'new', 'down', 'conv', 'vector', 'norm'");
  saved.forEach([](float &value, const Parameter &parameter, int64_t) {
    if (parameter.name == "up" || parameter.name == "conv")
      value = std::numeric_limits<float>::infinity();
  });
  EXPECT_EQ(describeNonFinite(saved.ranks), "parameter 'up' has 48 values that are not finite (and 1 other has 120)");
}

} // namespace
} // namespace tessera
