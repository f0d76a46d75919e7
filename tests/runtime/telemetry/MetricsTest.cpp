//===- MetricsTest.cpp - JSON lines, progress lines, run folders ----------------------------===//

#include "runtime/telemetry/Metrics.h"
#include "runtime/telemetry/RunFolder.h"
#include "tests/runtime/ProgramFixture.h"
#include "tests/runtime/TestSupport.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tessera {
namespace {

using Json = nlohmann::json;
using test::ScratchFolder;

StepMetrics makeMetrics(int64_t step) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.loss = 3.25;
  metrics.learningRate = 1e-3;
  metrics.seconds = 0.5;
  metrics.tokens = 10000;
  metrics.samples = 40;
  return metrics;
}

TEST(Metrics, JsonHasAllFields) {
  StepMetrics metrics = makeMetrics(7);
  metrics.gradNorm = 1.5;
  metrics.dataWaitSeconds = 0.125;
  metrics.exposedCommunicationSeconds = 0.25;
  metrics.flops = 1e9;
  metrics.peakFlops = 4e9;
  metrics.process = {1000, 2000};
  MemorySummary memory;
  memory.plan.arenaBytes = 4096;
  memory.plan.bytesAtPeak[0] = 77;
  memory.allocatedBytes = 8192;
  memory.ranksInProcess = 2;
  std::string line = metricsToJson(metrics, memory);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  Json json = Json::parse(line);
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["loss"], 3.25);
  EXPECT_EQ(json["grad_norm"], 1.5);
  EXPECT_EQ(json["lr"], 1e-3);
  EXPECT_EQ(json["tokens_per_second"], 20000);
  EXPECT_EQ(json["samples_per_second"], 80);
  EXPECT_EQ(json["data_wait_seconds"], 0.125);
  EXPECT_EQ(json["exposed_communication_seconds"], 0.25);
  EXPECT_EQ(json["mfu"], 0.5);
  EXPECT_EQ(json["memory"]["planned_per_rank"], 4096);
  EXPECT_EQ(json["memory"]["planned_per_rank_by_class"]["parameters"], 77);
  EXPECT_EQ(json["memory"]["allocated"], 8192);
  EXPECT_EQ(json["memory"]["rss_peak"], 2000);
}

TEST(Metrics, UnknownValuesAreLeftOutAndNanIsNull) {
  StepMetrics metrics = makeMetrics(1);
  metrics.loss = std::nan("");
  Json json = Json::parse(metricsToJson(metrics, {}));
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_FALSE(json.contains("grad_norm"));
  EXPECT_FALSE(json.contains("mfu"));
  EXPECT_FALSE(json.contains("skipped"));
  metrics.isSkipped = true;
  EXPECT_EQ(Json::parse(metricsToJson(metrics, {}))["skipped"], true);
}

TEST(Metrics, ProgressLineIsShort) {
  StepMetrics metrics = makeMetrics(7);
  metrics.gradNorm = 1.5;
  metrics.dataWaitSeconds = 0.25;
  metrics.process.resident = 3ull << 30;
  MemorySummary memory;
  memory.plan.arenaBytes = 1 << 20;
  std::string line = progressLine(metrics, 200, memory);
  EXPECT_EQ(line, "step   7/200 | loss 3.2500 | norm 1.5 | lr 1.00e-03 | 20.0k tok/s | 500 ms | data 50% | "
                  "mem 1.00 MiB/rank, rss 3.00 GiB");
  EXPECT_LE(line.size(), 120u);
  metrics.hasPositions = false; // images
  EXPECT_NE(progressLine(metrics, 200, memory).find("| 80 samples/s | 500 ms"), std::string::npos);
}

TEST(Metrics, DurationsHaveTwoParts) {
  EXPECT_EQ(formatDuration(0.4), "0s");
  EXPECT_EQ(formatDuration(59.9), "59s");
  EXPECT_EQ(formatDuration(65), "1m05s");
  EXPECT_EQ(formatDuration(2 * 3600 + 3 * 60), "2h03m");
  EXPECT_EQ(formatDuration(3 * 86400 + 4 * 3600), "3d04h");
  EXPECT_EQ(formatDuration(-1), "0s");
  EXPECT_EQ(formatDuration(1e300), formatDuration(1e12));
}

TEST(Metrics, ProcessMemoryIsKnown) {
  ProcessMemory memory = processMemory();
  EXPECT_GT(memory.resident, 1u << 20);
  EXPECT_GE(memory.peakResident, memory.resident / 2);
}

std::vector<int64_t> stepsIn(const std::string &path) {
  std::istringstream stream(test::readFile(path));
  std::vector<int64_t> steps;
  for (std::string line; std::getline(stream, line);)
    steps.push_back(Json::parse(line)["step"]);
  return steps;
}

TEST(MetricsWriter, ResumingDropsLaterAndBrokenLines) {
  ScratchFolder scratch;
  std::string path = scratch.path("metrics.jsonl");
  {
    auto writer = MetricsWriter::open(path);
    ASSERT_STATUS_OK(writer);
    for (int64_t step : {1, 2, 3, 4})
      ASSERT_STATUS_OK((*writer)->write(makeMetrics(step), {}));
    EXPECT_EQ(stepsIn(path).size(), 4u); // on disk without closing
  }
  test::writeFile(path, test::readFile(path) + "{\"step\": 18446744073709551615}\n{\"step\": -1}\n{\"step\": 5, \"lo");
  auto resumed = MetricsWriter::open(path, 2);
  ASSERT_STATUS_OK(resumed);
  ASSERT_STATUS_OK((*resumed)->write(makeMetrics(3), {}));
  EXPECT_EQ(stepsIn(path), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_ERROR(MetricsWriter::open(scratch.path("no/metrics.jsonl")), "no such file or directory");
}

TEST(MetricsWriter, LinesOfARunThatLostItsFolderAreNotMixedIn) {
  ScratchFolder scratch;
  std::string path = scratch.path("metrics.jsonl");
  for (std::optional<int64_t> resumeStep : {std::optional<int64_t>(), std::optional<int64_t>(1)}) {
    auto former = MetricsWriter::open(path);
    ASSERT_STATUS_OK(former);
    ASSERT_STATUS_OK((*former)->write(makeMetrics(1), {}));
    auto taker = MetricsWriter::open(path, resumeStep);
    ASSERT_STATUS_OK(taker);
    ASSERT_STATUS_OK((*former)->write(makeMetrics(2), {}));
    ASSERT_STATUS_OK((*taker)->write(makeMetrics(3), {}));
    EXPECT_EQ(stepsIn(path), resumeStep ? (std::vector<int64_t>{1, 3}) : (std::vector<int64_t>{3}));
  }
}

TEST(MetricsWriter, FullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "no /dev/full";
  auto writer = MetricsWriter::open("/dev/full");
  ASSERT_STATUS_OK(writer);
  EXPECT_ERROR((*writer)->write(makeMetrics(1), {}), "no space left on device");
}

TEST(RunFolder, DescribesTheRun) {
  ScratchFolder scratch;
  auto folder = RunFolder::create(scratch.path("runs/a"));
  ASSERT_STATUS_OK(folder);
  auto artifact = test::makeArtifact();
  ASSERT_STATUS_OK(artifact);
  RunInfo info;
  info.commandLine = {"tessera-run", "test.tessera"};
  info.settings["seed"] = "1";
  info.unigramEntropy = 3.25;
  ASSERT_STATUS_OK(folder->writeRunInfo(**artifact, info));
  Json json = Json::parse(test::readFile(folder->runPath()));
  EXPECT_EQ(json["command"][1], "test.tessera");
  EXPECT_EQ(json["settings"]["seed"], "1");
  EXPECT_EQ(json["artifact"]["mesh"]["shard"], 2);
  EXPECT_EQ(json["artifact"]["model"]["strategy"], "zero3");
  EXPECT_EQ(json["artifact"]["fingerprint"], "0000000000001234");
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["memory_per_rank"]["reserved"], 1024);
  EXPECT_EQ(json["unigram_entropy"], 3.25);
  EXPECT_FALSE(json["tessera"].get<std::string>().empty());
}

TEST(RunFolder, KnowsWhatRanThere) {
  ScratchFolder scratch;
  auto folder = RunFolder::create(scratch.path("run"));
  ASSERT_STATUS_OK(folder);
  EXPECT_EQ(folder->lastStep(), 0);
  EXPECT_EQ(folder->finishedStep(), std::nullopt);
  EXPECT_EQ(folder->lastFingerprint(), "");
  // A run that was stopped before its first step has only said what memory it has.
  test::writeFile(folder->metricsPath(), "{\"stage\": \"after data creation\"}\nno json\n");
  EXPECT_EQ(folder->lastStep(), 0);
  test::writeFile(folder->metricsPath(), "{\"step\": 1, \"loss\": null}\n{\"step\": 2, \"loss\": 0.5}\n{\"ste");
  EXPECT_EQ(folder->lastStep(), 2);
  // Weights are the sign of the end where run.json says nothing of it, unless a run goes on beside those of an earlier
  // end.
  test::writeFile(folder->modelPath(), "weights");
  EXPECT_EQ(folder->finishedStep(), 2);
  test::writeFile(folder->runPath(), "{\"resumed_step\": 1}");
  EXPECT_EQ(folder->finishedStep(), std::nullopt);
  ASSERT_STATUS_OK(folder->recordEnd(7, 7, std::nullopt));
  EXPECT_EQ(folder->finishedStep(), 7);
  for (const char *text :
       {"", "[]", "{\"artifact\": 1}", "{\"artifact\": {}}", "{\"artifact\": {\"fingerprint\": 5}}"}) {
    test::writeFile(folder->runPath(), text);
    EXPECT_EQ(folder->lastFingerprint(), "") << text;
  }
  test::writeFile(folder->runPath(), "{\"artifact\": {\"fingerprint\": \"12ab\"}}");
  EXPECT_EQ(folder->lastFingerprint(), "12ab");
  test::writeFile(scratch.path("file"), "");
  EXPECT_ERROR(RunFolder::create(scratch.path("file/run")), "cannot create");
}

TEST(RunFolder, LeftOversAreRemoved) {
  ScratchFolder scratch;
  auto folder = RunFolder::create(scratch.path("run"));
  ASSERT_STATUS_OK(folder);
  const char *const ours[] = {"metrics.jsonl.tmp-00ff-1", "trace-1.json.tmp-00ff-2",
                              "dump-2/losses.safetensors.tmp-12-0"};
  // What the user keeps here, and what a run whose folder lies in this one is writing.
  const char *const others[] = {"trace.json",
                                "dump-2/losses.safetensors",
                                "checkpoints/.ckpt-1.tmp-5",
                                "mine/deep/x.tmp-12",
                                "notes.tmp-2024",
                                "other-run/model.safetensors.tmp-00ff-3",
                                "other-run/lease.tmp-00ff-4"};
  for (const char *name : ours)
    test::writeFile(folder->path() + "/" + name, "x");
  for (const char *name : others)
    test::writeFile(folder->path() + "/" + name, "x");
  ASSERT_STATUS_OK(folder->removeLeftOvers());
  for (const char *name : ours)
    EXPECT_FALSE(std::filesystem::exists(folder->path() + "/" + name)) << name;
  for (const char *name : others)
    EXPECT_TRUE(std::filesystem::exists(folder->path() + "/" + name)) << name;
}

} // namespace
} // namespace tessera
