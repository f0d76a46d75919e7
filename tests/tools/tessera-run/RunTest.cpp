//===- RunTest.cpp - tessera-run on a program made by hand: runs and bad input ------------===//
//
// Needs no compiler, so it also runs where only the runtime is built.
//
//===----------------------------------------------------------------------===//

#include "runtime/state/Checkpoint.h"
#include "runtime/state/Init.h"
#include "tests/runtime/ProgramFixture.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <sys/wait.h>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Outcome {
  int code = -1;
  std::string output;
};

class RunTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::vector<uint8_t> bytes = test::packPackage(test::makePackage());
    test::writeFile(artifact, {bytes.begin(), bytes.end()});
    test::writeFile(scratch.path("text/a.txt"), "a text that is long enough for some samples of four bytes");
  }

  /// Runs the tool in the scratch folder; `before` is shell text in front of it.
  Outcome run(const std::string &arguments, const std::string &before = "") {
    std::string command =
        "cd '" + scratch.root() + "' && " + before + " '" TESSERA_RUN "' --threads 1 " + arguments + " 2>&1";
    Outcome outcome;
    std::FILE *pipe = ::popen(command.c_str(), "r");
    if (!pipe)
      return outcome;
    std::array<char, 4096> buffer;
    for (size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      outcome.output.append(buffer.data(), count);
    int status = ::pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    return outcome;
  }

  void expectRuns(const std::string &arguments) {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
  }

  /// Ends with an error that says `text`, and leaves neither weights nor a checkpoint in "bad".
  void expectRefused(const std::string &arguments, const std::string &text, const std::string &before = "",
                     int status = 1) {
    Outcome outcome = run(arguments + " --out bad", before);
    EXPECT_EQ(outcome.code, status) << outcome.output;
    EXPECT_NE(outcome.output.find(text), std::string::npos) << "expected: " << text << "\ngot: " << outcome.output;
    EXPECT_NE(outcome.output.find("error: "), std::string::npos) << outcome.output;
    EXPECT_FALSE(fs::exists(scratch.path("bad/model.safetensors")));
    EXPECT_FALSE(fs::exists(scratch.path("bad/checkpoints/latest")));
    fs::remove_all(scratch.path("bad"));
  }

  std::vector<Json> metricsOf(const std::string &folder) {
    std::istringstream stream(test::readFile(scratch.path(folder + "/metrics.jsonl")));
    std::vector<Json> records;
    for (std::string line; std::getline(stream, line);)
      if (Json record = Json::parse(line); !record.contains("stage"))
        records.push_back(std::move(record));
    return records;
  }

  test::ScratchFolder scratch;
  std::string artifact = scratch.path("step.tessera");
};

TEST_F(RunTest, LeavesARunFolder) {
  expectRuns("step.tessera --data text --steps 5 --out run --checkpoint-every 2 --keep 1 --trace-steps 2 --seed 3");
  std::vector<Json> records = metricsOf("run");
  ASSERT_EQ(records.size(), 5u);
  for (int64_t step = 1; step <= 5; ++step) {
    EXPECT_EQ(records[step - 1]["step"], step);
    EXPECT_EQ(records[step - 1]["loss"], 3.0); // 1.5 on each of two ranks, added up
    EXPECT_GE(records[step - 1]["exposed_communication_seconds"], 0.0);
  }
  EXPECT_EQ(records[0]["memory"]["planned_per_rank"], 1024);
  EXPECT_FALSE(fs::exists(scratch.path("run/checkpoints/ckpt-4")));
  EXPECT_TRUE(fs::exists(scratch.path("run/checkpoints/ckpt-5/manifest.json")));

  Json info = Json::parse(test::readFile(scratch.path("run/run.json")));
  EXPECT_EQ(info["ranks"], 2);
  EXPECT_EQ(info["settings"]["seed"], "3");
  EXPECT_GT(info["unigram_entropy"].get<double>(), 1.0);

  Json trace = Json::parse(test::readFile(scratch.path("run/trace.json")));
  std::set<std::pair<int, int>> lanes;
  std::set<int> steps;
  for (const Json &event : trace["traceEvents"])
    if (event["ph"] == "X") {
      lanes.emplace(event["pid"], event["tid"]);
      steps.insert(event["args"]["step"].get<int>());
    }
  EXPECT_EQ(lanes, (std::set<std::pair<int, int>>{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
  EXPECT_EQ(steps.size(), 2u);
}

TEST_F(RunTest, ExportsItsSeededParameters) {
  expectRuns("step.tessera --data text --steps 1 --out run --seed 3");
  auto file = SafetensorsFile::open(scratch.path("run/model.safetensors"));
  ASSERT_STATUS_OK(file);
  test::FakeState expected({{{"h.0.w", {4, 6}, test::normal(0, 0.02)}}}, 1);
  ASSERT_STATUS_OK(initialiseState(expected.ranks[0], 3));
  const SafetensorsEntry *w = file->find("h.0.w");
  ASSERT_NE(w, nullptr);
  auto bytes = w->bytes.readAll();
  ASSERT_STATUS_OK(bytes);
  EXPECT_EQ(std::memcmp(bytes->data(), expected.gather("h.0.w").data(), bytes->size()), 0);
  // What was exported can be loaded; the program does not change it.
  expectRuns("step.tessera --data text --steps 1 --out again --seed 4 --weights run/model.safetensors");
  EXPECT_EQ(test::readFile(scratch.path("again/model.safetensors")),
            test::readFile(scratch.path("run/model.safetensors")));
}

TEST_F(RunTest, ResumesInItsOwnFolder) {
  expectRuns("step.tessera --data text --steps 4 --out run --checkpoint-every 3");
  fs::remove_all(scratch.path("run/checkpoints/ckpt-4"));
  test::writeFile(scratch.path("run/checkpoints/latest"), "ckpt-3\n");
  expectRuns("step.tessera --data text --steps 6 --out run --resume run");
  std::vector<Json> records = metricsOf("run");
  ASSERT_EQ(records.size(), 6u);
  for (int64_t step = 1; step <= 6; ++step)
    EXPECT_EQ(records[step - 1]["step"], step);
}

TEST_F(RunTest, RefusesBadData) {
  fs::create_directory(scratch.path("empty"));
  expectRefused("step.tessera --data empty", "folder 'empty' has no .txt, .json, .jsonl or .bin file");
  expectRefused("step.tessera --data absent.bin", "no data at 'absent.bin': no such file");
  test::writeFile(scratch.path("short.txt"), "abc");
  expectRefused("step.tessera --data short.txt", "is too short: it has 4 tokens, but one sample needs 5");
  test::writeFile(scratch.path("few.txt"), "abcdefg");
  expectRefused("step.tessera --data few.txt", "it has 1 samples, but one step needs 2");
  test::writeFile(scratch.path("bad.jsonl"), "{\"text\": \"fine\"}\n{\"text\": 3}\n");
  expectRefused("step.tessera --data bad.jsonl", "line 2 has a field 'text' that is not a string");
  test::writeFile(scratch.path("odd.bin"), std::string(101, 'x'));
  expectRefused("step.tessera --data odd.bin", "has 101 bytes, expected a multiple of 2");
  test::writeFile(scratch.path("large.bin"), std::string(100, '\1'));
  expectRefused("step.tessera --data large.bin",
                "as uint16, 50 of 50 values sampled are not in [0, 256), the first: token 0 is 257");
  test::writeFile(scratch.path("noise.npz"), "no archive");
  expectRefused("step.tessera --data noise.npz", "'noise.npz' is not a .npz archive");
}

TEST_F(RunTest, RefusesBadArtifactsAndOptions) {
  test::writeFile(scratch.path("noise.tessera"), std::string(500, '\7'));
  expectRefused("noise.tessera --data text", "noise.tessera");
  std::string whole = test::readFile(artifact);
  test::writeFile(scratch.path("cut.tessera"), whole.substr(0, whole.size() - 9));
  expectRefused("cut.tessera --data text", "cut.tessera");
  expectRefused("step.tessera --data text --ranks 3", "is for 2 ranks, --ranks asks for 3");
  expectRefused("step.tessera --data text --steps 0", "--steps: '0' is no whole number from 1", "", 2);
  expectRefused("step.tessera --data text --schedule foo", "--schedule: unknown value 'foo', expected one of constant",
                "", 2);
  test::writeFile(scratch.path("w.safetensors"), "short");
  expectRefused("step.tessera --data text --weights w.safetensors", "is not a valid safetensors file");
  test::writeFile(scratch.path("w.onnx"), "short");
  expectRefused("step.tessera --data text --weights w.onnx", "is not an ONNX model");
}

TEST_F(RunTest, RefusesBadCheckpoints) {
  expectRuns("step.tessera --data text --steps 2 --out run --checkpoint-every 2");
  expectRefused("step.tessera --data text --steps 4 --resume absent", "no checkpoint at 'absent'");
  expectRefused("step.tessera --data text --steps 2 --resume run", "is at step 2");
  std::string shard = scratch.path("run/checkpoints/ckpt-2/rank-1.safetensors"), content = test::readFile(shard);
  test::writeFile(shard, content.substr(0, content.size() - 1));
  expectRefused("step.tessera --data text --steps 4 --resume run", "'rank-1.safetensors' has");
  content.back() ^= 1;
  test::writeFile(shard, content);
  expectRefused("step.tessera --data text --steps 4 --resume run", "'rank-1.safetensors' does not match its hash");
  fs::remove(shard);
  expectRefused("step.tessera --data text --steps 4 --resume run", "rank-1.safetensors': no such file");
}

TEST_F(RunTest, AnEarlierRunIsNotOverwritten) {
  expectRuns("step.tessera --data text --steps 1 --out run");
  Outcome again = run("step.tessera --data text --steps 1 --out run");
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.output.find("already holds a run"), std::string::npos) << again.output;
}

TEST_F(RunTest, NoSpaceForACheckpointIsAnError) {
  // A parameter of 256 KiB, under a limit on file sizes that all other files keep.
  artifact::PackageT package = test::makePackage();
  constexpr int64_t elements = 1 << 16;
  package.arenas[0]->bytes = 512 + 4 * elements;
  test::addSlot(package, "wte", 0, 512, 4 * elements, artifact::MemoryClass::Parameters, 0, 6);
  auto state = std::make_unique<artifact::StateTensorT>();
  state->name = "wte";
  state->elements = elements;
  state->buffer = static_cast<uint32_t>(package.buffers.size());
  auto segment = std::make_unique<artifact::SegmentT>();
  segment->name = "wte";
  segment->shape = {elements};
  segment->init = std::make_unique<artifact::InitT>();
  state->segments.push_back(std::move(segment));
  package.state.push_back(std::move(state));
  package.buffers.push_back(test::makeBuffer(0, 512, {elements}));
  std::vector<uint8_t> bytes = test::packPackage(package);
  test::writeFile(scratch.path("large.tessera"), {bytes.begin(), bytes.end()});
  const std::string limit = "ulimit -f 100;";
  expectRefused("large.tessera --data text --steps 1 --checkpoint-every 1 --no-export",
                "checkpoint of step 1 is not written", limit);
  expectRefused("large.tessera --data text --steps 1", "cannot write 'bad/model.safetensors'", limit);
}

} // namespace
} // namespace tessera
