//===- TrainerTest.cpp - whole runs of a model made by hand ----------------===//
//
// Least squares on four weights, trained by plain gradient descent: small enough to write its artifact by hand.
//
//===----------------------------------------------------------------------===//

#include "runtime/step/Trainer.h"

#include "runtime/state/Safetensors.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/step/FarDevice.h"
#include "tests/runtime/step/StepTestSupport.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <new>
#include <random>
#include <set>
#include <system_error>
#include <thread>

namespace tessera {
namespace {

using artifact::CollectiveKind;
using test::ArtifactBuilder;
using Floats = std::vector<float>;

constexpr int64_t batch = 8, width = 4;

ArtifactBuilder leastSquares(int64_t numRanks) {
  ArtifactBuilder builder({{"replicate", numRanks}});
  uint32_t group = builder.group({"replicate"});
  test::addKernels(builder, {"least_squares", "descend"});
  int64_t rows = batch / numRanks;
  uint32_t x = builder.buffer({rows, width}), y = builder.buffer({rows}), w = builder.buffer({width});
  uint32_t lr = builder.buffer({}), sums = builder.buffer({1 + width}), total = builder.buffer({1 + width});
  uint32_t loss = builder.view(total, {}, {}), gradient = builder.view(total, {width}, {1}, 1);
  uint32_t ready = builder.newEvent(), done = builder.newEvent();
  test::launch(builder, 0, {x, y, w, sums}, rows, rows);
  builder.record(ready, 0);
  builder.wait(ready, 2);
  builder.collective(CollectiveKind::AllReduce, group, sums, total, 2);
  builder.record(done, 2);
  builder.wait(done, 0);
  test::launch(builder, 1, {w, gradient, lr}, width);

  auto addBatch = [&](const char *name, artifact::BatchRole role, std::vector<int64_t> shape, uint32_t buffer) {
    auto made = std::make_unique<artifact::BatchTensorT>();
    made->name = name;
    made->role = role;
    made->dims.assign(shape.size(), artifact::DimRole::None);
    made->dims[0] = artifact::DimRole::Sample;
    made->global_shape = std::move(shape);
    made->splits.push_back(std::make_unique<artifact::DimSplitT>());
    made->splits.back()->group = group;
    made->buffer = buffer;
    builder.program().batch.push_back(std::move(made));
  };
  addBatch("x", artifact::BatchRole::Input, {batch, width}, x);
  addBatch("y", artifact::BatchRole::Target, {batch}, y);
  auto state = std::make_unique<artifact::StateTensorT>();
  state->name = "unit";
  state->elements = width;
  state->buffer = w;
  auto segment = std::make_unique<artifact::SegmentT>();
  segment->name = "w";
  segment->shape = {2, 2};
  segment->init = std::make_unique<artifact::InitT>();
  segment->init->kind = artifact::InitKind::Normal;
  segment->init->b = 1;
  state->segments.push_back(std::move(segment));
  builder.package.state.push_back(std::move(state));
  auto hyper = std::make_unique<artifact::HyperScalarT>();
  hyper->name = "lr";
  hyper->buffer = lr;
  builder.program().hyper.push_back(std::move(hyper));
  builder.result("loss", loss, artifact::ResultRole::Loss);
  auto probe = std::make_unique<artifact::GradientProbeT>();
  probe->buffer = gradient;
  probe->instruction = 5;
  builder.program().probes.push_back(std::move(probe));
  builder.package.learning_rate = std::make_unique<artifact::LearningRateT>();
  ScheduleRequest rate;
  rate.peak = 0.05;
  EXPECT_EQ(makeLearningRate(rate, *builder.package.learning_rate), "");
  return builder;
}

class Training : public testing::Test {
protected:
  Training() {
    std::mt19937 generator(3);
    std::normal_distribution<float> normal;
    Floats x(64 * width), y(64);
    for (float &value : x)
      value = normal(generator);
    for (size_t row = 0; row < y.size(); ++row)
      y[row] = x[row * width] - 2 * x[row * width + 1] + 0.5f * x[row * width + 2];
    auto bytes = [](const Floats &values) {
      return ByteSpan(reinterpret_cast<const uint8_t *>(values.data()), values.size() * sizeof(float));
    };
    EXPECT_TRUE(writeSafetensors(folder.path("data.safetensors"), {{"x", DataType::F32, {64, width}, {bytes(x)}},
                                                                   {"y", DataType::F32, {64}, {bytes(y)}}})
                    .isOk());
    for (int64_t ranks : {1, 2}) {
      std::vector<uint8_t> file = test::serialise(leastSquares(ranks).package);
      std::ofstream(folder.path(std::to_string(ranks) + ".tessera"), std::ios::binary)
          .write(reinterpret_cast<const char *>(file.data()), static_cast<std::streamsize>(file.size()));
    }
  }

  TrainOptions options(int ranks, const std::string &out, int64_t steps) const {
    TrainOptions made;
    made.artifact = folder.path(std::to_string(ranks) + ".tessera");
    made.data = folder.path("data.safetensors");
    made.out = folder.path(out);
    made.steps = steps;
    made.threads = 1;
    made.logEvery = 0;
    return made;
  }

  std::vector<double> losses(const std::string &out) const {
    std::ifstream file(folder.path(out + "/metrics.jsonl"));
    std::vector<double> values;
    for (std::string line; std::getline(file, line);)
      if (auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false); record.contains("loss"))
        values.push_back(record["loss"].get<double>());
    return values;
  }

  Floats tensor(const std::string &path, const std::string &name) const {
    auto file = SafetensorsFile::open(folder.path(path));
    EXPECT_TRUE(file.isOk()) << file.status();
    const SafetensorsEntry *entry = file.isOk() ? file->find(name) : nullptr;
    if (!entry)
      return {};
    const auto elements = static_cast<size_t>(entry->elements);
    auto bytes = entry->bytes.readAll();
    EXPECT_TRUE(bytes.isOk()) << bytes.status();
    if (bytes->size() == elements * sizeof(double)) { // the loss is kept in f64
      std::vector<double> wide(elements);
      std::memcpy(wide.data(), bytes->data(), bytes->size());
      return {wide.begin(), wide.end()};
    }
    Floats values(elements);
    std::memcpy(values.data(), bytes->data(), std::min(bytes->size(), elements * sizeof(float)));
    return values;
  }

  test::ScratchFolder folder;
};

TEST_F(Training, LearnsAndLeavesItsResults) {
  TrainOptions run = options(2, "run", 60);
  run.traceSteps = 2;
  run.checkpointEvery = 40;
  Status status = train(run).status();
  ASSERT_TRUE(status.isOk()) << status;
  std::vector<double> values = losses("run");
  ASSERT_EQ(values.size(), 60u);
  EXPECT_LT(values.back(), 0.01 * values.front());
  Floats w = tensor("run/model.safetensors", "w");
  ASSERT_EQ(w.size(), 4u);
  EXPECT_NEAR(w[1], -2, 0.2);
  for (const char *file : {"run.json", "trace.json", "checkpoints/latest"})
    EXPECT_TRUE(std::filesystem::exists(folder.path(std::string("run/") + file))) << file;
}

TEST_F(Training, TwoRanksEqualOne) {
  ASSERT_TRUE(train(options(1, "one", 10)).isOk());
  ASSERT_TRUE(train(options(2, "two", 10)).isOk());
  std::vector<double> one = losses("one"), two = losses("two");
  ASSERT_EQ(one.size(), 10u);
  for (size_t step = 0; step < 10; ++step)
    EXPECT_NEAR(two[step], one[step], 1e-6 * one[step] + 1e-9);
}

/// The host never touches the memory of such a device, or the test would end with a signal.
TEST_F(Training, ADeviceWithMemoryOfItsOwnGetsTheSameByTransfers) {
  test::Transfers transfers;
  auto openFar = [&](const Artifact &artifact, const DeviceOptions &deviceOptions) {
    return test::FarDevice::create(artifact, deviceOptions, transfers);
  };
  for (const char *out : {"near", "far"})
    for (const char *half : {"", "-resumed"}) {
      bool isFar = std::string(out) == "far", isResumed = *half != 0;
      TrainOptions run = options(2, out + std::string(half), isResumed ? 8 : 4);
      run.openDevice = isFar ? DeviceOpener(openFar) : nullptr;
      run.checkpointEvery = 2;
      run.traceSteps = 1;
      run.dump = "gradients,parameters,losses";
      run.dumpStep = run.steps - 1;
      if (isResumed)
        run.resume = folder.path(out);
      Status status = train(run).status();
      ASSERT_TRUE(status.isOk()) << status;
    }
  for (const char *half : {"", "-resumed"}) {
    std::string dump = std::string(half) + "/dump-" + (*half ? "7" : "3");
    EXPECT_EQ(losses("near" + std::string(half)), losses("far" + std::string(half)));
    for (const std::string &file : {std::string(half) + "/model.safetensors", dump + "/gradients.safetensors",
                                    dump + "/parameters.safetensors"}) {
      Floats w = tensor("far" + file, "w");
      EXPECT_EQ(w.size(), 4u);
      EXPECT_EQ(tensor("near" + file, "w"), w) << file;
    }
  }
  // Per rank: the state twice (new, resumed), and for each of 8 steps two batch tensors and the learning rate. Back:
  // the loss of each step, a gradient and the state for each dump, the state for 4 checkpoints and 2 exports.
  EXPECT_EQ(transfers.toDevice, 2 * (2 + 8 * 3));
  EXPECT_EQ(transfers.toHost, 2 * (8 + 2 * 2 + 4 + 2));
}

TEST_F(Training, ResumesBitForBit) {
  ASSERT_TRUE(train(options(2, "whole", 9)).isOk());
  TrainOptions first = options(2, "half", 5);
  first.checkpointEvery = 5;
  ASSERT_TRUE(train(first).isOk());
  TrainOptions second = options(2, "rest", 9);
  second.resume = folder.path("half");
  Status status = train(second).status();
  ASSERT_TRUE(status.isOk()) << status;
  std::vector<double> whole = losses("whole"), rest = losses("rest");
  EXPECT_EQ(std::vector<double>(whole.begin() + 5, whole.end()), rest);
  EXPECT_EQ(tensor("whole/model.safetensors", "w"), tensor("rest/model.safetensors", "w"));
  second.steps = 4;
  second.out = folder.path("back");
  EXPECT_NE(train(second).status().message().find("is at step 5, --steps ends at 4"), std::string::npos);
}

/// This artifact has no guard: what is not finite is already in the parameters, and must go no further.
TEST_F(Training, AnArtifactWithoutAGuardStopsAfterTheFirstStepThatIsNotFinite) {
  for (int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const std::string out = "bad-" + std::to_string(ranks);
    TrainOptions run = options(ranks, out, 40);
    run.checkpointEvery = 1;
    run.keepCheckpoints = 1;
    run.schedule.learningRate = 1e10;
    Status status = train(run).status();
    EXPECT_NE(status.message().find("its update is made, as the artifact cannot skip one"), std::string::npos)
        << status;
    EXPECT_NE(status.message().find("the newest checkpoint is '" + folder.path(out + "/checkpoints/ckpt-")),
              std::string::npos)
        << status;
    EXPECT_FALSE(std::filesystem::exists(folder.path(out + "/model.safetensors")));
    for (const auto &entry : std::filesystem::directory_iterator(folder.path(out + "/checkpoints")))
      if (entry.is_directory()) {
        std::string file = out + "/checkpoints/" + entry.path().filename().string() + "/rank-0.safetensors";
        for (float value : tensor(file, "parameter/unit"))
          EXPECT_TRUE(std::isfinite(value)) << entry.path();
      }
    run.onNonFinite = "skip";
    EXPECT_NE(train(run).status().message().find("the artifact cannot skip an update"), std::string::npos);
  }
}

TEST_F(Training, IgnoredStepsAreTrainedOnAndTheirWeightsWrittenButNoCheckpoint) {
  TrainOptions run = options(2, "run", 40);
  run.onNonFinite = "ignore";
  run.checkpointEvery = 1;
  run.schedule.learningRate = 1e10;
  Status status = train(run).status();
  ASSERT_TRUE(status.isOk()) << status;
  EXPECT_FALSE(std::isfinite(tensor("run/model.safetensors", "w").at(0)));
  EXPECT_TRUE(std::filesystem::exists(folder.path("run/checkpoints/ckpt-1")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("run/checkpoints/ckpt-40")));
}

TEST_F(Training, DumpsOneStep) {
  TrainOptions run = options(2, "run", 3);
  run.dump = "gradients,parameters,losses";
  run.dumpStep = 2;
  Status status = train(run).status();
  ASSERT_TRUE(status.isOk()) << status;
  Floats gradient = tensor("run/dump-2/gradients.safetensors", "w"),
         after = tensor("run/dump-2/parameters.safetensors", "w");
  ASSERT_EQ(gradient.size(), 4u);
  // Parameters before step 2 are those after step 1: one step of descent apart.
  ASSERT_TRUE(train(options(2, "short", 1)).isOk());
  Floats before = tensor("short/model.safetensors", "w");
  for (size_t index = 0; index < 4; ++index)
    EXPECT_NEAR(after[index], before[index] - 0.05f * gradient[index], 1e-6);
  EXPECT_FALSE(tensor("run/dump-2/losses.safetensors", "loss").empty());
}

TEST_F(Training, ADumpOutsideTheRunIsRefusedUpFront) {
  TrainOptions run = options(1, "short", 2);
  run.dump = "losses";
  run.dumpStep = 3;
  auto outcome = train(run);
  ASSERT_FALSE(outcome.isOk());
  EXPECT_NE(outcome.status().toString().find("--dump-step is 3, but --steps ends at 2"), std::string::npos)
      << outcome.status();
  EXPECT_FALSE(std::filesystem::exists(run.out));

  run.dumpStep = 1;
  run.checkpointEvery = 2;
  ASSERT_TRUE(train(run).isOk());
  TrainOptions again = options(1, "again", 4);
  again.resume = run.out;
  again.dump = "losses";
  again.dumpStep = 2;
  outcome = train(again);
  ASSERT_FALSE(outcome.isOk());
  EXPECT_NE(outcome.status().toString().find("--dump-step is 2, but the run continues at step 3"), std::string::npos)
      << outcome.status();
}

TEST_F(Training, ATraceLongerThanTheRunIsWritten) {
  TrainOptions run = options(1, "run", 2);
  run.traceSteps = 5;
  ASSERT_TRUE(train(run).isOk());
  EXPECT_GT(nlohmann::json::parse(test::readFile(folder.path("run/trace.json")))["traceEvents"].size(), 0u);
}

TEST_F(Training, AStopInsideTracedStepsWritesTheTrace) {
  for (int ranks : {1, 2}) {
    std::string out = "traced-" + std::to_string(ranks);
    std::atomic<int> stop{0};
    TrainOptions run = options(ranks, out, 1000000);
    run.traceSteps = 100000;
    run.stopSignal = &stop;
    std::thread stopper([&] {
      while (losses(out).size() < 4)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      stop = SIGTERM;
    });
    auto outcome = train(run);
    stopper.join();
    ASSERT_TRUE(outcome.isOk()) << outcome.status();
    EXPECT_EQ(outcome->stopSignal, SIGTERM);
    auto trace = nlohmann::json::parse(test::readFile(folder.path(out + "/trace.json")));
    EXPECT_GT(trace["traceEvents"].size(), 0u);
  }
}

TEST_F(Training, AStopDuringSetUpEndsBeforeTheFirstStep) {
  std::atomic<int> stop{SIGTERM};
  TrainOptions run = options(2, "run", 10);
  run.traceSteps = 2;
  run.checkpointEvery = 5;
  run.stopSignal = &stop;
  auto outcome = train(run);
  ASSERT_TRUE(outcome.isOk()) << outcome.status();
  EXPECT_EQ(outcome->stopSignal, SIGTERM);
  EXPECT_TRUE(losses("run").empty());
  for (const char *name : {"model.safetensors", "trace.json", "checkpoints/latest"})
    EXPECT_FALSE(std::filesystem::exists(folder.path(std::string("run/") + name))) << name;
}

TEST_F(Training, AnExceptionOnARanksThreadIsAnErrorOfTheRun) {
  TrainOptions run = options(2, "run", 3);
  run.openDevice = [](const Artifact &artifact, const DeviceOptions &device) {
    if (device.rankOnHost == 1)
      throw std::bad_alloc();
    return openDevice(artifact, device);
  };
  auto outcome = train(run);
  ASSERT_FALSE(outcome.isOk());
  EXPECT_EQ(outcome.status().message(), "out of memory");
  run.openDevice = [](const Artifact &, const DeviceOptions &) -> Result<std::unique_ptr<Device>> {
    throw std::system_error(EAGAIN, std::generic_category());
  };
  EXPECT_NE(train(run).status().message().find("the system refused: "), std::string::npos);
}

TEST_F(Training, BadInputIsOneClearError) {
  TrainOptions run = options(2, "run", 3);
  run.ranks = 3;
  EXPECT_NE(train(run).status().message().find("is for 2 ranks, --ranks asks for 3"), std::string::npos);
  run = options(2, "run", 3);
  run.data = folder.path("absent");
  EXPECT_NE(train(run).status().message().find("absent"), std::string::npos);
  run = options(2, "run", 3);
  run.dump = "weights";
  EXPECT_NE(train(run).status().message().find("--dump: unknown kind 'weights'"), std::string::npos);
  run = options(2, "run", 0);
  EXPECT_NE(train(run).status().message().find("--steps must be at least 1"), std::string::npos);
  run = options(2, "run", 3);
  run.schedule.schedule = "exponential";
  EXPECT_NE(train(run).status().message().find("unknown schedule 'exponential'"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path("run")));
}

TEST(Schedule, SeedsOfStepsDifferAndDependOnNothingElse) {
  EXPECT_EQ(Schedule::stepSeed(7, 3), Schedule::stepSeed(7, 3));
  std::set<uint64_t> seeds;
  for (uint64_t run : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32})
    for (int64_t step = 1; step <= 100; ++step)
      seeds.insert(Schedule::stepSeed(run, step));
  EXPECT_EQ(seeds.size(), 300u);
}

TEST(Schedule, ReadsTheArtifactAndTheCommandLine) {
  auto artifact = leastSquares(1).build();
  ASSERT_TRUE(artifact.isOk());
  auto schedule = Schedule::create(**artifact, 10);
  ASSERT_TRUE(schedule.isOk());
  EXPECT_EQ(schedule->learningRate(1), 0.05);
  ScheduleOverrides overrides;
  overrides.learningRate = 0.5;
  overrides.warmup = StepCount{5, false};
  schedule = Schedule::create(**artifact, 10, overrides);
  ASSERT_TRUE(schedule.isOk());
  EXPECT_DOUBLE_EQ(schedule->learningRate(1), 0.1);
  overrides.schedule = "wsd";
  EXPECT_NE(Schedule::create(**artifact, 10, overrides).status().message().find("needs --decay-steps"),
            std::string::npos);
  overrides.decaySteps = StepCount{4, false};
  schedule = Schedule::create(**artifact, 10, overrides);
  ASSERT_TRUE(schedule.isOk());
  EXPECT_DOUBLE_EQ(schedule->learningRate(8), 0.25);
  ScheduleOverrides lowest;
  lowest.minLearningRate = 0.1;
  EXPECT_NE(Schedule::create(**artifact, 10, lowest).status().message().find("the schedule is constant"),
            std::string::npos);
}

} // namespace
} // namespace tessera
