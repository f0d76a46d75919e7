//===- CheckpointTest.cpp - saving, resuming, resharding, broken files -----------===//

#include "runtime/state/Checkpoint.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::FakeState;
using test::ScratchFolder;

const FakeState::Parameter w{"h.0.w", {5, 7}, {}}, b{"h.0.b", {7}, {}}, e{"wte", {11, 3}, {}}, n{"norm", {1}, {}};
const FakeState::Wrap byModule{{e}, {w, b}, {n}}, single{{w, b, e, n}}, none{{w}, {n}, {e}, {b}};

CheckpointInfo infoOfStep(uint64_t step) {
  CheckpointInfo info;
  info.step = step;
  info.dataPosition = step * 8;
  info.seed = ~0ull;
  info.mesh.axes = {{"replicate", 1}, {"shard", 2}};
  info.extra["model"] = "gpt.onnx";
  return info;
}

void expectEqual(const FakeState &actual, const FakeState &expected) {
  for (const auto &parameter : {w, b, e, n})
    for (const StateKind &role : {StateKind(StateRole::Parameter), test::moment1, test::moment2})
      EXPECT_EQ(actual.gather(parameter.name, role), expected.gather(parameter.name, role)) << parameter.name;
}

TEST(Checkpoint, ResumesBitExactly) {
  ScratchFolder scratch;
  FakeState saved(byModule, 2), resumed(byModule, 2);
  saved.fillDistinct(0.1f);
  ASSERT_STATUS_OK(saveCheckpoint({scratch.root()}, infoOfStep(20), saved.ranks));
  auto info = loadCheckpoint(scratch.root(), resumed.ranks);
  ASSERT_STATUS_OK(info);
  EXPECT_EQ(info->step, 20u);
  EXPECT_EQ(info->dataPosition, 160u);
  EXPECT_EQ(info->seed, ~0ull);
  EXPECT_EQ(info->mesh.axes[1].name, "shard");
  EXPECT_EQ(info->extra.at("model"), "gpt.onnx");
  for (int rank = 0; rank < 2; ++rank)
    for (size_t i = 0; i < saved.ranks[rank].size(); ++i)
      EXPECT_EQ(std::memcmp(saved.ranks[rank][i].data, resumed.ranks[rank][i].data, saved.ranks[rank][i].localBytes()),
                0);
}

TEST(Checkpoint, ReshardsToAnyRanksAndUnits) {
  for (int from : {1, 2, 3, 4}) {
    ScratchFolder scratch;
    FakeState saved(byModule, from);
    saved.fillDistinct(0.5f);
    ASSERT_STATUS_OK(saveCheckpoint({scratch.root()}, infoOfStep(1), saved.ranks));
    for (int to : {1, 2, 3, 4})
      for (const auto *wrap : {&byModule, &single, &none}) {
        SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to));
        FakeState resumed(*wrap, to);
        ASSERT_STATUS_OK(loadCheckpoint(scratch.root(), resumed.ranks));
        expectEqual(resumed, saved);
      }
  }
}

TEST(Checkpoint, ReplicatedStateIsSavedOnceAndLoadsSharded) {
  ScratchFolder scratch;
  FakeState replicated(byModule, 3, /*sharded=*/false), sharded(single, 2);
  replicated.fillDistinct(2.0f);
  ASSERT_STATUS_OK(saveCheckpoint({scratch.root()}, infoOfStep(1), replicated.ranks));
  auto empty = SafetensorsFile::open(scratch.path("ckpt-1/rank-2.safetensors"));
  ASSERT_STATUS_OK(empty);
  EXPECT_TRUE(empty->tensors().empty());
  ASSERT_STATUS_OK(loadCheckpoint(scratch.root(), sharded.ranks));
  expectEqual(sharded, replicated);
}

TEST(Checkpoint, PaddingIsZeroAfterResharding) {
  ScratchFolder scratch;
  FakeState saved({{n}}, 1), resumed({{n}}, 4);
  saved.fillDistinct(1.0f);
  ASSERT_STATUS_OK(saveCheckpoint({scratch.root()}, infoOfStep(1), saved.ranks));
  ASSERT_STATUS_OK(loadCheckpoint(scratch.root(), resumed.ranks));
  EXPECT_EQ(*reinterpret_cast<const float *>(resumed.ranks[3][0].data), 0.0f);
}

TEST(Checkpoint, EqualStatesGiveEqualFiles) {
  ScratchFolder first, second;
  FakeState state(byModule, 2);
  state.fillDistinct(1.0f);
  ASSERT_STATUS_OK(saveCheckpoint({first.root()}, infoOfStep(3), state.ranks));
  ASSERT_STATUS_OK(saveCheckpoint({second.root()}, infoOfStep(3), state.ranks));
  for (const char *file : {"ckpt-3/manifest.json", "ckpt-3/rank-0.safetensors", "ckpt-3/rank-1.safetensors", "latest"})
    EXPECT_EQ(test::readFile(first.path(file)), test::readFile(second.path(file))) << file;
}

TEST(Checkpoint, KeepsTheNewestAndReplacesTheSameStep) {
  ScratchFolder scratch;
  FakeState state(byModule, 2), resumed(byModule, 2);
  for (uint64_t step : {2, 10, 30, 30}) {
    state.fillDistinct(static_cast<float>(step));
    ASSERT_STATUS_OK(saveCheckpoint({scratch.root(), 2}, infoOfStep(step), state.ranks));
  }
  EXPECT_FALSE(fs::exists(scratch.path("ckpt-2")));
  EXPECT_TRUE(fs::exists(scratch.path("ckpt-10")));
  EXPECT_EQ(scratch.numFiles(), 3u); // ckpt-10, ckpt-30, latest
  ASSERT_STATUS_OK(loadCheckpoint(scratch.path("ckpt-30"), resumed.ranks));
  expectEqual(resumed, state);
}

TEST(Checkpoint, AfterResumingAnEarlierStepTheNewOnesStay) {
  ScratchFolder scratch;
  FakeState state(byModule, 2), resumed(byModule, 2);
  auto save = [&](uint64_t step, int keep) {
    state.fillDistinct(static_cast<float>(step));
    ASSERT_STATUS_OK(saveCheckpoint({scratch.root(), keep}, infoOfStep(step), state.ranks));
  };
  for (uint64_t step : {1, 5, 6})
    save(step, 0);
  save(2, 2); // the run was resumed at step 1
  EXPECT_FALSE(fs::exists(scratch.path("ckpt-5")));
  EXPECT_FALSE(fs::exists(scratch.path("ckpt-6")));
  EXPECT_TRUE(fs::exists(scratch.path("ckpt-1")));
  auto info = loadCheckpoint(scratch.root(), resumed.ranks);
  ASSERT_STATUS_OK(info);
  EXPECT_EQ(info->step, 2u);
  expectEqual(resumed, state);
}

TEST(Checkpoint, TheBestOneStays) {
  ScratchFolder scratch;
  FakeState state(byModule, 2);
  uint64_t best = 2;
  CheckpointOptions options{scratch.root(), 1};
  options.isBest = [&](uint64_t step) { return step == best; };
  auto existing = [&] {
    std::vector<uint64_t> steps;
    for (uint64_t step = 1; step < 9; ++step)
      if (fs::exists(scratch.path(checkpointName(step))))
        steps.push_back(step);
    return steps;
  };
  EXPECT_EQ(bestCheckpoint(scratch.root()), std::nullopt);
  for (uint64_t step : {1, 2, 3, 4})
    ASSERT_STATUS_OK(saveCheckpoint(options, infoOfStep(step), state.ranks));
  EXPECT_EQ(existing(), (std::vector<uint64_t>{2, 4}));
  EXPECT_EQ(bestCheckpoint(scratch.root()), 2u);
  EXPECT_EQ(*findCheckpoint(scratch.path("best")), scratch.path("ckpt-2"));
  EXPECT_EQ(*findCheckpoint(scratch.root()), scratch.path("ckpt-4"));
  best = 5;
  ASSERT_STATUS_OK(saveCheckpoint(options, infoOfStep(5), state.ranks));
  EXPECT_EQ(existing(), std::vector<uint64_t>{5});
  ASSERT_STATUS_OK(saveCheckpoint(options, infoOfStep(6), state.ranks));
  EXPECT_EQ(existing(), (std::vector<uint64_t>{5, 6}));
  ASSERT_STATUS_OK(makeBest(scratch.path("ckpt-6"))); // after it has got its name
  EXPECT_EQ(bestCheckpoint(scratch.root()), 6u);
  ASSERT_STATUS_OK(recoverCheckpoints(scratch.root()));
  EXPECT_EQ(existing(), (std::vector<uint64_t>{5, 6}));
  fs::remove_all(scratch.path("ckpt-6"));
  EXPECT_EQ(bestCheckpoint(scratch.root()), std::nullopt);
}

TEST(Checkpoint, AsynchronousWriterSavesTheStateOfTheCall) {
  ScratchFolder scratch;
  FakeState state(byModule, 2), expected(byModule, 2), resumed(byModule, 2);
  state.fillDistinct(1.0f);
  expected.fillDistinct(1.0f);
  CheckpointWriter writer({scratch.root()});
  ASSERT_STATUS_OK(writer.save(infoOfStep(5), state.ranks));
  state.fill(99.0f); // training goes on
  ASSERT_STATUS_OK(writer.finish());
  ASSERT_STATUS_OK(loadCheckpoint(scratch.root(), resumed.ranks));
  expectEqual(resumed, expected);
}

TEST(Checkpoint, AsynchronousErrorsAreReported) {
  ScratchFolder scratch;
  test::writeFile(scratch.path("file"), "in the way");
  FakeState state(byModule, 1);
  CheckpointWriter writer({scratch.path("file")});
  ASSERT_STATUS_OK(writer.save(infoOfStep(1), state.ranks));
  EXPECT_ERROR(writer.finish(), "cannot create");
  ASSERT_STATUS_OK(writer.finish());
  // Without waiting the error is reported once it is known.
  ASSERT_STATUS_OK(writer.save(infoOfStep(2), state.ranks));
  Status told;
  for (int tries = 0; told.isOk() && tries < 10'000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    told = writer.check();
  }
  EXPECT_ERROR(told, "checkpoint of step 2 is not written: cannot create");
  ASSERT_STATUS_OK(writer.check());
  ASSERT_STATUS_OK(writer.finish());
}

TEST(Checkpoint, FullDiskLeavesNothingAndKeepsTheLastOne) {
  ScratchFolder scratch;
  FakeState small({{n}}, 1), large({{{"big", {1 << 16}, {}}}}, 1), resumed({{n}}, 1);
  small.fillDistinct(4.0f);
  ASSERT_STATUS_OK(saveCheckpoint({scratch.root(), 1}, infoOfStep(1), small.ranks));
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {1 << 14, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  Status status = saveCheckpoint({scratch.root(), 1}, infoOfStep(2), large.ranks);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_ERROR(status, "checkpoint of step 2 is not written");
  EXPECT_EQ(status.code(), StatusCode::Exhausted);
  EXPECT_EQ(scratch.numFiles(), 2u); // ckpt-1, latest
  ASSERT_STATUS_OK(loadCheckpoint(scratch.root(), resumed.ranks));
}

TEST(Checkpoint, DifferencesToTheProgramAreListedTogether) {
  ScratchFolder scratch;
  FakeState saved({{w, b}}, 2);
  ASSERT_STATUS_OK(saveCheckpoint({scratch.root()}, infoOfStep(1), saved.ranks));
  FakeState other({{{"h.0.w", {7, 5}, {}}, e}}, 2);
  other.fill(5.0f);
  auto loaded = loadCheckpoint(scratch.root(), other.ranks);
  EXPECT_ERROR(loaded, "'h.0.w' (parameter) has shape [5,7], expected [7,5]");
  EXPECT_ERROR(loaded, "'wte' (m) is not in the checkpoint");
  EXPECT_ERROR(loaded, "'h.0.b' (v) is not in the program");
  EXPECT_EQ(*reinterpret_cast<const float *>(other.ranks[0][0].data), 5.0f); // untouched
}

class BrokenCheckpoint : public ::testing::Test {
protected:
  void SetUp() override {
    state.fillDistinct(1.0f);
    ASSERT_STATUS_OK(saveCheckpoint({scratch.root()}, infoOfStep(7), state.ranks));
  }
  void expectError(const std::string &text) {
    FakeState resumed(byModule, 2);
    EXPECT_ERROR(loadCheckpoint(scratch.root(), resumed.ranks), text);
  }
  ScratchFolder scratch;
  FakeState state{byModule, 2};
  std::string shard = scratch.path("ckpt-7/rank-1.safetensors"), manifest = scratch.path("ckpt-7/manifest.json");
};

TEST_F(BrokenCheckpoint, TruncatedFile) {
  fs::resize_file(shard, fs::file_size(shard) - 1);
  expectError("'rank-1.safetensors' has");
}

TEST_F(BrokenCheckpoint, FlippedBit) {
  std::string content = test::readFile(shard);
  content[content.size() - 5] ^= 1;
  test::writeFile(shard, content);
  expectError("'rank-1.safetensors' does not match its hash");
}

TEST_F(BrokenCheckpoint, MissingFile) {
  fs::remove(shard);
  expectError("rank-1.safetensors': no such file");
}

TEST_F(BrokenCheckpoint, MissingManifestAndFolder) {
  fs::remove(manifest);
  expectError("latest' names 'ckpt-7', which is missing or has no manifest.json; there is no other whole checkpoint");
  fs::remove_all(scratch.path("ckpt-7"));
  fs::remove(scratch.path("latest"));
  expectError("no checkpoint at");
}

TEST_F(BrokenCheckpoint, LatestNamesNonsense) {
  test::writeFile(scratch.path("latest"), "../../etc");
  expectError("does not name a checkpoint");
}

TEST_F(BrokenCheckpoint, EveryTruncationOfTheManifest) {
  std::string content = test::readFile(manifest);
  for (size_t length = 0; length + 2 < content.size(); length += 7) {
    test::writeFile(manifest, content.substr(0, length));
    expectError("is not a checkpoint manifest");
  }
}

/// A manifest as a program that writes wrong ones would write it.
std::string withNewHash(const std::string &text) {
  auto json = nlohmann::ordered_json::parse(text);
  json.erase("manifest_xxh3");
  std::string body = json.dump(1) + "\n";
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(XXH3_64bits(body.data(), body.size())));
  json["manifest_xxh3"] = hash;
  return json.dump(1) + "\n";
}

TEST_F(BrokenCheckpoint, ManifestThatLies) {
  const std::string content = test::readFile(manifest);
  auto replaced = [&](const std::string &from, const std::string &to) {
    std::string text = content;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return withNewHash(text.replace(at, from.size(), to));
  };
  for (auto [from, to, message] : std::initializer_list<std::array<const char *, 3>>{
           {"\"rank-1.safetensors\"", "\"../rank-1.safetensors\"", "'files.name' is missing or invalid"},
           {"\"step\": 7", "\"step\": -7", "'step' is missing or invalid"},
           {"\"skipped_steps\": 0", "\"skipped_steps\": 8", "'skipped_steps' is missing or invalid"},
           {"\"version\": 1", "\"version\": 3", "has version 3, this runtime reads 1 to 2; update tessera-run"},
           {"\"role\": \"m\"", "\"role\": \"M\"", "'role' is missing or invalid"},
           {"\"dtype\": \"F32\"", "\"dtype\": \"Q8\"", "'dtype' is missing or invalid"},
           {"\"elements\": 34", "\"elements\": 12", "'segments' is missing or invalid"},
           {"\"elements\": 34", "\"elements\": 4000", "are missing or stored twice"},
           {"\"end\": 17", "\"end\": 16", "missing or not what the manifest says"},
           {"\"units\"", "\"unitz\"", "'units' is missing or invalid"}}) {
    SCOPED_TRACE(from);
    test::writeFile(manifest, replaced(from, to));
    expectError(message);
  }
}

TEST_F(BrokenCheckpoint, AManifestFromBeforeStepsWereSkippedIsWhole) {
  auto json = nlohmann::ordered_json::parse(test::readFile(manifest));
  EXPECT_EQ(json.erase("skipped_steps") + json.erase("skipped_in_a_row"), 2u);
  test::writeFile(manifest, withNewHash(json.dump(1)));
  auto info = loadCheckpoint(scratch.root(), state.ranks);
  ASSERT_STATUS_OK(info);
  EXPECT_EQ(info->skippedSteps + info->skippedInARow, 0u);
}

TEST_F(BrokenCheckpoint, AManifestOfDeeplyNestedListsIsRefused) {
  std::string content = test::readFile(manifest);
  size_t begin = content.find("\"format\"");
  ASSERT_NE(begin, std::string::npos);
  constexpr size_t depth = 500000; // more than the stack holds, if each list took a frame of it
  content.insert(begin, "\"extras\": " + std::string(depth, '[') + std::string(depth, ']') + ", ");
  test::writeFile(manifest, content);
  expectError("is not a checkpoint manifest");
}

TEST_F(BrokenCheckpoint, AnyDamageOfTheManifestIsNoticed) {
  const std::string content = test::readFile(manifest);
  const auto original = nlohmann::ordered_json::parse(content);
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::string text = test::damaged(content, seed);
    test::writeFile(manifest, text);
    FakeState resumed(byModule, 2);
    auto loaded = loadCheckpoint(scratch.root(), resumed.ranks);
    // Only white space between fields may change.
    EXPECT_EQ(loaded.isOk(), nlohmann::ordered_json::parse(text, nullptr, false) == original) << text;
  }
}

TEST(Export, ConsolidatesByName) {
  for (int ranks : {1, 3}) {
    ScratchFolder scratch;
    FakeState state(byModule, ranks);
    state.fillDistinct(1.0f);
    ASSERT_STATUS_OK(exportParameters(scratch.path("model.safetensors"), state.ranks, {{"format", "pt"}}));
    auto file = SafetensorsFile::open(scratch.path("model.safetensors"));
    ASSERT_STATUS_OK(file);
    EXPECT_EQ(file->tensors().size(), 4u);
    const SafetensorsEntry *entry = file->find("h.0.w");
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->shape, (std::vector<int64_t>{5, 7}));
    auto bytes = entry->bytes.readAll();
    ASSERT_STATUS_OK(bytes);
    EXPECT_EQ(std::memcmp(bytes->data(), state.gather("h.0.w").data(), bytes->size()), 0);
  }
}

} // namespace
} // namespace tessera
