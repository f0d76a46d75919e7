//===- FiniteStateTest.cpp - infinities and NaNs in the state --------------===//

#include "runtime/state/FiniteState.h"
#include "runtime/state/Checkpoint.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

#include <barrier>
#include <limits>
#include <thread>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::FakeState;
using test::ScratchFolder;

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
const FakeState::Parameter w{"h.0.w", {5, 7}, {}}, b{"h.0.b", {7}, {}}, e{"wte", {11, 3}, {}};

/// Counts in `words`, once directly and once by a copy, which must be equal.
template <typename Word> uint64_t count(const std::vector<Word> &words, DataType dtype) {
  ByteSpan bytes(reinterpret_cast<const uint8_t *>(words.data()), words.size() * sizeof(Word));
  std::vector<Word> copy(words.size());
  uint64_t found = copyAndCountNonFinite(reinterpret_cast<uint8_t *>(copy.data()), bytes, dtype);
  EXPECT_EQ(copy, words);
  EXPECT_EQ(countNonFinite(bytes, dtype), found);
  return found;
}

TEST(FiniteState, EveryTypeHasItsOwnInfinitiesAndNaNs) {
  // Largest number, both infinities, NaNs of either sign, zero.
  EXPECT_EQ(count<uint64_t>(
                {0x7fefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff0000000000001, 0},
                DataType::F64),
            4u);
  EXPECT_EQ(count<uint32_t>({0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xff800001, 0}, DataType::F32), 4u);
  EXPECT_EQ(count<uint16_t>({0x7bff, 0x7c00, 0xfc00, 0x7e00, 0xfc01, 0}, DataType::F16), 4u);
  EXPECT_EQ(count<uint16_t>({0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0xff81, 0}, DataType::BF16), 4u);
  EXPECT_EQ(count<uint8_t>({0x7b, 0x7c, 0xfc, 0x7e, 0xff, 0}, DataType::F8E5M2), 4u);
  EXPECT_EQ(count<uint8_t>({0x7e, 0x7f, 0xff, 0}, DataType::F8E4M3FN), 2u);
  EXPECT_EQ(count<uint32_t>({0x7f800000, ~0u}, DataType::I32), 0u);
}

TEST(FiniteState, LongTensorsOfNothingElseAreCountedWhole) {
  constexpr size_t elements = 300'001; // no multiple of a block
  EXPECT_EQ(count(std::vector<float>(elements, infinity), DataType::F32), elements);
  EXPECT_EQ(count(std::vector<uint16_t>(elements, 0xff80), DataType::BF16), elements);
  EXPECT_EQ(count(std::vector<uint8_t>(elements, 0x7f), DataType::F8E4M3FN), elements);
  EXPECT_EQ(count(std::vector<double>(elements, 1e308), DataType::F64), 0u);
}

/// Sets element `index` of the first unit's tensor of this role on a rank.
void set(FakeState &state, int rank, StateKind role, int64_t index, float value) {
  for (StateView &view : state.ranks[rank])
    if (view.kind == role && view.unit == "unit0") {
      reinterpret_cast<float *>(view.data)[index] = value;
      return;
    }
  FAIL() << "no such tensor";
}

TEST(FiniteState, TheMessageNamesTheParameter) {
  FakeState state({{w, b}, {e}}, 1, true, {StateRole::Parameter, test::moment2, StateRole::Frozen});
  state.fillDistinct(1.0f);
  EXPECT_EQ(describeNonFinite(state.ranks), "");
  set(state, 0, StateRole::Frozen, 3, -infinity); // a mask
  EXPECT_EQ(describeNonFinite(state.ranks), "");
  set(state, 0, StateRole::Parameter, 35 + 2, nan);
  EXPECT_EQ(describeNonFinite(state.ranks), "parameter 'h.0.b' has 1 value that is not finite");
  set(state, 0, StateRole::Parameter, 35 + 6, infinity);
  EXPECT_EQ(describeNonFinite(state.ranks), "parameter 'h.0.b' has 2 values that are not finite");
  set(state, 0, test::moment2, 0, infinity);
  EXPECT_EQ(describeNonFinite(state.ranks), "parameter 'h.0.b' has 2 values that are not finite (and 1 other has 1)");
  EXPECT_EQ(describeNonFinite(state.ranks, /*states=*/false), "parameter 'h.0.b' has 2 values that are not finite");
}

TEST(FiniteState, AParameterThatRanksShareIsOne) {
  FakeState state({{w}}, 2), padded({{{"n", {3}, {}}}}, 2);
  state.fillDistinct(1.0f);
  set(state, 0, StateRole::Parameter, 1, nan);
  set(state, 1, StateRole::Parameter, 1, nan);
  EXPECT_EQ(describeNonFinite(state.ranks), "parameter 'h.0.w' has 2 values that are not finite");
  padded.fillDistinct(1.0f);
  set(padded, 1, StateRole::Parameter, 1, nan);
  EXPECT_EQ(describeNonFinite(padded.ranks), "the padding of unit 'unit0' has 1 value that is not finite");
}

CheckpointInfo infoOfStep(uint64_t step) {
  CheckpointInfo info;
  info.step = step;
  return info;
}

TEST(FiniteState, ACheckpointThatIsNotFiniteReplacesNoneThatIs) {
  for (const StateKind &role : {StateKind(StateRole::Parameter), test::moment1, test::moment2}) {
    ScratchFolder scratch;
    FakeState state({{w, b}}, 2), resumed({{w, b}}, 2);
    state.fillDistinct(1.0f);
    CheckpointWriter writer({scratch.root(), 1});
    ASSERT_STATUS_OK(writer.save(infoOfStep(5), state.ranks));
    set(state, 1, role, 2, nan);
    Status refused = writer.save(infoOfStep(6), state.ranks);
    EXPECT_ERROR(refused, "checkpoint of step 6 is not written: ");
    EXPECT_ERROR(refused, "that is not finite; the newest one is '" + scratch.path("ckpt-5") + "'");
    ASSERT_STATUS_OK(writer.finish());
    auto info = loadCheckpoint(scratch.root(), resumed.ranks);
    ASSERT_STATUS_OK(info);
    EXPECT_EQ(info->step, 5u);
    EXPECT_EQ(scratch.numFiles(), 2u); // ckpt-5, latest
  }
}

TEST(FiniteState, WhereItIsToBeIgnoredTheCheckpointIsStillNotWritten) {
  ScratchFolder scratch;
  FakeState state({{w}}, 1);
  state.fillDistinct(1.0f);
  CheckpointOptions options{scratch.root(), 1};
  options.isStrict = false;
  CheckpointWriter writer(options);
  ASSERT_STATUS_OK(writer.save(infoOfStep(5), state.ranks));
  set(state, 0, StateRole::Parameter, 2, infinity);
  ASSERT_STATUS_OK(writer.save(infoOfStep(6), state.ranks));
  ASSERT_STATUS_OK(writer.finish());
  EXPECT_TRUE(fs::exists(scratch.path("ckpt-5")));
  EXPECT_FALSE(fs::exists(scratch.path("ckpt-6")));
}

TEST(FiniteState, FrozenParametersAreSavedAsTheyAre) {
  ScratchFolder scratch;
  FakeState state({{w}}, 1, true, {StateRole::Parameter, StateRole::Frozen});
  state.fillDistinct(1.0f);
  set(state, 0, StateRole::Frozen, 2, -infinity);
  CheckpointWriter writer({scratch.root()});
  ASSERT_STATUS_OK(writer.save(infoOfStep(5), state.ranks));
  ASSERT_STATUS_OK(writer.finish());
  EXPECT_TRUE(fs::exists(scratch.path("ckpt-5")));
}

TEST(FiniteState, AllProcessesRefuseWhatOneOfThemHolds) {
  constexpr int processes = 3;
  ScratchFolder scratch;
  FakeState state({{w}}, processes);
  state.fillDistinct(1.0f);
  std::vector<std::string> texts(processes);
  std::barrier<> meeting(processes);
  std::vector<Status> statuses(processes);
  std::vector<std::thread> threads;
  set(state, 1, test::moment1, 0, nan);
  for (int rank = 0; rank < processes; ++rank)
    threads.emplace_back([&, rank] {
      auto gather = [&, rank](const std::string &text) -> Result<std::vector<std::string>> {
        texts[rank] = text;
        meeting.arrive_and_wait();
        std::vector<std::string> all = texts;
        meeting.arrive_and_wait();
        return all;
      };
      CheckpointWriter writer({scratch.root(), 0, {rank, gather}});
      statuses[rank] = writer.save(infoOfStep(5), {state.ranks[rank]});
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &status : statuses)
    EXPECT_ERROR(status, "m of 'h.0.w' has 1 value that is not finite; there is none before it");
  EXPECT_EQ(scratch.numFiles(), 0u);
}

TEST(FiniteState, SkippedStepsAreInTheManifestAndZeroWhereItSaysNothing) {
  Manifest manifest;
  manifest.info = infoOfStep(9);
  manifest.info.skippedSteps = 4;
  manifest.info.skippedInARow = 2;
  std::string text = manifestToJson(manifest);
  auto span = [](const std::string &json) {
    return ByteSpan(reinterpret_cast<const uint8_t *>(json.data()), json.size());
  };
  auto read = manifestFromJson(span(text), "manifest");
  ASSERT_STATUS_OK(read);
  EXPECT_EQ(read->info.skippedSteps, 4u);
  EXPECT_EQ(read->info.skippedInARow, 2u);
  manifest.info.skippedSteps = 10; // of 9 steps
  EXPECT_ERROR(manifestFromJson(span(manifestToJson(manifest)), "manifest"), "skipped_steps");
}

} // namespace
} // namespace tessera
