//===- DerivedStateTest.cpp - copies of state in a narrower type -----------===//

#include "runtime/step/StagedState.h"
#include "tests/runtime/step/FarDevice.h"
#include "tests/runtime/step/StepTestSupport.h"

#include <limits>

namespace tessera {
namespace {

using test::ArtifactBuilder;

/// State 0 is f32, state 1 what the last step found in the bf16 copy of it.
class DerivedState : public testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    const uint32_t wide = builder.buffer({4}), derived = builder.buffer({4}, DataType::BF16),
                   found = builder.buffer({4}, DataType::BF16);
    addState("w", artifact::StateRole::Parameter, DataType::F32, wide);
    addState("found", artifact::StateRole::Frozen, DataType::BF16, found);
    auto made = std::make_unique<artifact::DerivedTensorT>();
    made->state = 0;
    made->buffer = derived;
    builder.package.derived.push_back(std::move(made));
    builder.copy(derived, found);
    auto artifact = builder.build();
    ASSERT_TRUE(artifact.isOk()) << artifact.status();
    world = createLocalWorld(1);
    SessionOptions options;
    if (GetParam())
      options.openDevice = [this](const Artifact &artifact, const DeviceOptions &deviceOptions) {
        return test::FarDevice::create(artifact, deviceOptions, transfers);
      };
    auto session = Session::create(*artifact, *world[0], options);
    ASSERT_TRUE(session.isOk()) << session.status();
    run = std::move(*session);
    auto views = makeRankState(**artifact, 0, [&](size_t state) { return run->stateBuffer(state).data; });
    ASSERT_TRUE(views.isOk()) << views.status();
    layout = *views;
  }

  void addState(const char *name, artifact::StateRole role, DataType dtype, uint32_t buffer) {
    auto state = std::make_unique<artifact::StateTensorT>();
    state->name = name;
    state->role = role;
    state->dtype = state->model_dtype = dtype;
    state->elements = 4;
    state->buffer = buffer;
    builder.package.state.push_back(std::move(state));
  }

  /// What a step reads of the copy.
  std::vector<uint16_t> step() {
    std::vector<uint16_t> values(4);
    EXPECT_TRUE(run->step(1).isOk());
    EXPECT_TRUE(run->readState(1, values.data()).isOk());
    return values;
  }

  ArtifactBuilder builder;
  test::Transfers transfers;
  std::vector<std::unique_ptr<Communicator>> world;
  std::unique_ptr<Session> run;
  RankState layout;
};

TEST_P(DerivedState, IsThatOfWhatWasLoaded) {
  // The second is halfway between two numbers and goes to the even one; the last is no number.
  const float values[] = {1.0f, 1.00390625f, -3.0e38f, std::numeric_limits<float>::quiet_NaN()};
  auto staged = StagedState::create(*run, layout, /*reads=*/false);
  ASSERT_TRUE(staged.isOk()) << staged.status();
  std::memcpy(staged->views()[0].data, values, sizeof(values));
  ASSERT_TRUE(staged->write().isOk());
  EXPECT_EQ(step(), (std::vector<uint16_t>{0x3f80, 0x3f80, 0xff62, 0x7fc0}));
}

TEST_P(DerivedState, IsMadeByTheFirstStepAndTheFirstAfterAWrite) {
  EXPECT_EQ(step(), (std::vector<uint16_t>{0, 0, 0, 0}));
  const float values[] = {1, 2, 3, 4};
  ASSERT_TRUE(run->writeState(0, values).isOk());
  EXPECT_EQ(step(), (std::vector<uint16_t>{0x3f80, 0x4000, 0x4040, 0x4080}));
}

TEST_P(DerivedState, OnlyTheStepRenewsItBetweenSteps) {
  const float before[] = {1, 2, 3, 4}, after[] = {5, 6, 7, 8};
  ASSERT_TRUE(run->writeState(0, before).isOk());
  std::vector<uint16_t> copy = step();
  if (float *address = run->stateBuffer(0).as<float>()) {
    std::memcpy(address, after, sizeof(after));
    EXPECT_EQ(step(), copy);
    ASSERT_TRUE(run->deriveState().isOk());
    EXPECT_EQ(step(), (std::vector<uint16_t>{0x40a0, 0x40c0, 0x40e0, 0x4100}));
  } else {
    const int64_t sent = transfers.toDevice;
    EXPECT_EQ(step(), copy);
    EXPECT_EQ(transfers.toDevice, sent);
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, DerivedState, testing::Bool(),
                         [](const auto &info) { return info.param ? "OfTheDevice" : "OfTheHost"; });

} // namespace
} // namespace tessera
