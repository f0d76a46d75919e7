//===- RunFolder.cpp - where a run leaves its results ----------------------------------------===//

#include "runtime/telemetry/RunFolder.h"

#include "runtime/base/File.h"

#include <chrono>
#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace tessera {

using Json = nlohmann::ordered_json;

Result<RunFolder> RunFolder::create(const std::string &path, bool resume) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    return systemError("create", path, error.value());
  RunFolder folder(path);
  // A run that ended before its first step (of bad data, say) left no line; there is nothing to keep.
  const std::uintmax_t size = fs::file_size(folder.metricsPath(), error);
  if (!resume && !error && size > 0)
    return TESSERA_ERROR(InvalidArgument,
                         "run folder '" + path + "' already holds a run; resume it, remove it or choose another");
  return folder;
}

static Json toJson(const flatbuffers::Vector<flatbuffers::Offset<artifact::KeyValue>> *entries) {
  Json json = Json::object();
  if (entries)
    for (const artifact::KeyValue *entry : *entries)
      json[entry->key()->str()] = entry->value()->str();
  return json;
}

Status RunFolder::writeRunInfo(const Artifact &artifact, const RunInfo &info) const {
  const artifact::Program &program = artifact.program();
  MemoryPlan plan = memoryPlan(program);
  Json json = {{"tessera", TESSERA_VERSION},
               {"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
               {"command", info.commandLine},
               {"settings", info.settings}};
  Json mesh = Json::object();
  for (const Mesh::Axis &axis : artifact.mesh().axes)
    mesh[axis.name] = axis.size;
  json["artifact"] = {{"path", artifact.path()},
                      {"producer", program.producer() ? program.producer()->str() : ""},
                      {"fingerprint", fmt::format("{:016x}", program.fingerprint())},
                      {"target", program.target()->str()},
                      {"mesh", std::move(mesh)},
                      {"model", toJson(program.model())},
                      {"optimizer", toJson(program.optimizer())}};
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
  if (info.resumedStep)
    json["resumed_step"] = *info.resumedStep;
  if (!info.launchSeconds.empty())
    json["launch_seconds"] = info.launchSeconds;
  return writeFileAtomically(runPath(), json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

} // namespace tessera
