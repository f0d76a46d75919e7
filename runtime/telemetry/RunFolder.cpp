//===- RunFolder.cpp - where a run leaves its results ----------------------------------------===//

#include "runtime/telemetry/RunFolder.h"

#include "runtime/base/File.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace tessera {

using Json = nlohmann::ordered_json;

Result<RunFolder> RunFolder::create(const std::string &path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    return systemError("create", path, error.value());
  return RunFolder(path);
}

/// Whether a temporary name in a run folder can be that of a file which a run writes there.
static bool isForFileOfRun(const std::string &name) {
  for (const char *prefix : {"run.json.", "metrics.jsonl.", "memory.json.", "model.safetensors.",
                             "model-average.safetensors.", "lease.", "trace.json.", "trace-"})
    if (name.starts_with(prefix))
      return true;
  return false;
}

Status RunFolder::removeLeftOvers() const {
  std::error_code error;
  std::vector<fs::path> found;
  // Other files are not ours, and other folders may be those of runs that go on.
  for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    const bool isInside = entry.depth() > 0, isOurs = name.starts_with("dump-") || name.starts_with("adapter");
    if (entry->is_directory(error) && (isInside || !isOurs))
      entry.disable_recursion_pending();
    if (isTemporaryName(name) && (isInside || isForFileOfRun(name)) && entry->is_regular_file(error))
      found.push_back(entry->path());
  }
  for (const fs::path &path : found)
    if (!fs::remove(path, error) && error)
      return systemError("remove", path.string(), error.value());
  return Status::ok();
}

void RunFolder::removeTraces() const {
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool isTrace = name == "trace.json" || (name.starts_with("trace-") && name.ends_with(".json") &&
                                                  name.find_first_not_of("0123456789", 6) == name.size() - 5);
    std::error_code ignored;
    if (isTrace && entry->is_regular_file(ignored))
      fs::remove(entry->path(), ignored);
  }
}

/// Without content if it is no regular file: a pipe would be waited for.
static std::ifstream openRecords(const std::string &path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? std::ifstream(path) : std::ifstream();
}

int64_t RunFolder::lastStep() const {
  std::ifstream stream = openRecords(metricsPath());
  int64_t last = 0;
  for (std::string line; std::getline(stream, line);) {
    Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("loss") && json.contains("step") && json["step"].is_number_integer())
      last = std::max(last, json["step"].get<int64_t>());
  }
  return last;
}

std::vector<std::pair<int64_t, double>> RunFolder::evaluations() const {
  std::vector<std::pair<int64_t, double>> found;
  std::ifstream stream = openRecords(metricsPath());
  for (std::string line; std::getline(stream, line);) {
    Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || json.value("stage", Json()) != "evaluation")
      continue;
    const Json step = json.value("step", Json()), loss = json.value("eval_loss", Json());
    if (step.is_number_integer())
      found.emplace_back(step.get<int64_t>(),
                         loss.is_number() ? loss.get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  return found;
}

bool RunFolder::hasEvaluation(int64_t step) const {
  const auto all = evaluations();
  return std::any_of(all.begin(), all.end(), [&](const auto &each) { return each.first == step; });
}

/// What run.json says; an empty object if there is none that can be read.
static Json readRunInfo(const std::string &path) {
  std::ifstream stream = openRecords(path);
  Json json = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json::object();
}

std::string RunFolder::setting(const std::string &flag) const {
  const Json json = readRunInfo(runPath());
  const auto settings = json.find("settings");
  if (settings == json.end() || !settings->is_object())
    return "";
  const auto found = settings->find(flag);
  return found != settings->end() && found->is_string() ? found->get<std::string>() : "";
}

bool RunFolder::isOwnName(const std::string &name) {
  for (const char *own : {"run.json", "metrics.jsonl", "memory.json", "lease", "checkpoints", "tensorboard", "adapter",
                          "adapter-average", "model.safetensors", "model-average.safetensors", "trace.json"})
    if (name == own)
      return true;
  return name.starts_with("trace-") || name.starts_with("dump-");
}

std::string RunFolder::findRecordsOfOthers() const {
  if (readRunInfo(runPath()).contains("artifact"))
    return "";
  std::error_code error;
  for (const std::string &path : {runPath(), metricsPath(), tracePath(), memoryPath()})
    if (fs::exists(path, error))
      return path;
  return "";
}

std::optional<int64_t> RunFolder::finishedStep() const {
  const Json json = readRunInfo(runPath());
  if (auto step = json.find("finished_step"); step != json.end() && step->is_number_integer())
    return step->get<int64_t>();
  if (json.contains("resumed_step")) // it goes on, beside the weights that it had
    return std::nullopt;
  std::error_code error;
  return fs::exists(modelPath(), error) ? std::optional(lastStep()) : std::nullopt;
}

static Status writeRunInfoText(const std::string &path, const Json &json) {
  return writeFileAtomically(path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<int64_t> RunFolder::exportedStep() const {
  const Json json = readRunInfo(runPath());
  const auto step = json.find("exported_step");
  return step != json.end() && step->is_number_integer() ? std::optional(step->get<int64_t>()) : finishedStep();
}

Status RunFolder::recordEnd(int64_t step, int64_t exportedStep, std::optional<int64_t> bestStep) const {
  Json json = readRunInfo(runPath());
  json["finished_step"] = step;
  json["exported_step"] = exportedStep;
  if (bestStep)
    json["best_step"] = *bestStep;
  return writeRunInfoText(runPath(), json);
}

/// What the run in a folder and those before it say of themselves, the first one first. Of a checkpoint that was taken
/// out of its run nothing is known.
static Json runsUpTo(const std::string &folder) {
  Json last = folder.empty() ? Json::object() : readRunInfo(RunFolder(folder).runPath());
  Json runs = Json::array();
  if (last.empty())
    return runs;
  if (auto earlier = last.find("earlier"); earlier != last.end() && earlier->is_array())
    runs = *earlier;
  for (const char *ofTheMachine : {"earlier", "memory_per_rank", "host", "launch_seconds"})
    last.erase(ofTheMachine);
  runs.push_back(std::move(last));
  return runs;
}

std::string RunFolder::lastFingerprint() const {
  Json json = readRunInfo(runPath());
  if (!json.contains("artifact") || !json["artifact"].is_object())
    return "";
  auto fingerprint = json["artifact"].find("fingerprint");
  return fingerprint != json["artifact"].end() && fingerprint->is_string() ? fingerprint->get<std::string>() : "";
}

std::string RunFolder::fingerprintOf(const Artifact &artifact) {
  return fmt::format("{:016x}", artifact.package().fingerprint());
}

static Json toJson(const flatbuffers::Vector<flatbuffers::Offset<artifact::KeyValue>> *entries) {
  Json json = Json::object();
  if (entries)
    for (const artifact::KeyValue *entry : *entries)
      json[entry->key()->str()] = entry->value()->str();
  return json;
}

/// A run that goes on is still one from the values that it began with.
static void keepInitialValues(Json &json) {
  if (json["earlier"].empty())
    return;
  const Json last = json["earlier"].back(); // a copy: new fields move the others
  if (last.contains("initial_values"))
    json["initial_values"] = last["initial_values"];
  json["settings"].erase("weights"); // --resume auto may have been given some, and does not read them
  if (last.contains("settings") && last["settings"].contains("weights"))
    json["settings"]["weights"] = last["settings"]["weights"];
}

Status RunFolder::writeRunInfo(const Artifact &artifact, const RunInfo &info) const {
  const artifact::Package &package = artifact.package();
  MemoryPlan plan = memoryPlan(package, artifact.training());
  Json json = {{"tessera", TESSERA_VERSION},
               {"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
               {"command", info.commandLine},
               {"settings", info.settings}};
  Json mesh = Json::object(), roles = Json::object();
  for (const Mesh::Axis &axis : artifact.mesh().axes) {
    mesh[axis.name] = axis.size;
    roles[axis.name] = toString(axis.role);
  }
  json["artifact"] = {{"path", absolutePath(artifact.path()).string()},
                      {"producer", package.producer() ? package.producer()->str() : ""},
                      {"fingerprint", fingerprintOf(artifact)},
                      {"target", package.target()->str()},
                      {"mesh", std::move(mesh)},
                      {"mesh_roles", std::move(roles)},
                      {"model", toJson(package.model())},
                      {"optimizer", toJson(package.optimizer())}};
  json["ranks"] = artifact.numRanks();
  json["ranks_in_process"] = info.ranksInProcess;
  json["threads_per_rank"] = info.threadsPerRank;
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  json["host"] = {{"name", host}, {"cores", std::thread::hardware_concurrency()}};
  Json classes = Json::object();
  for (size_t i = 0; i < numMemoryClasses; ++i)
    classes[std::string(toString(static_cast<artifact::MemoryClass>(i)))] = plan.bytesAtPeak[i];
  json["memory_per_rank"] = {{"reserved", plan.arenaBytes},
                             {"host", plan.hostBytes},
                             {"peak", plan.peakBytes},
                             {"by_class", std::move(classes)}};
  if (info.unigramEntropy)
    json["unigram_entropy"] = *info.unigramEntropy;
  if (info.samples)
    json["samples"] = *info.samples;
  if (!info.initialValues.empty())
    json["initial_values"] = info.initialValues;
  if (!info.dataFormat.empty())
    json["data_format"] = info.dataFormat;
  if (info.resumedStep) {
    json["resumed_step"] = *info.resumedStep;
    json["resumed_from"] = info.resumedFrom;
    json["earlier"] = runsUpTo(info.resumedRun);
    keepInitialValues(json);
  }
  if (!info.launchSeconds.empty())
    json["launch_seconds"] = info.launchSeconds;
  return writeRunInfoText(runPath(), json);
}

} // namespace tessera
