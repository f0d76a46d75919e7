//===- Metrics.cpp - what a step reports -------------------------------------------------===//

#include "runtime/telemetry/Metrics.h"

#include "runtime/base/File.h"
#include "runtime/base/Log.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace tessera {

using Json = nlohmann::ordered_json;

ProcessMemory processMemory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    uint64_t *target = line.starts_with("VmRSS:")   ? &memory.resident
                       : line.starts_with("VmHWM:") ? &memory.peakResident
                                                    : nullptr;
    if (target)
      *target = std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) * 1024; // the kernel says kB
  }
  return memory;
}

std::optional<double> StepMetrics::mfu() const {
  if (!flops || !peakFlops || *peakFlops <= 0 || seconds <= 0)
    return std::nullopt;
  return *flops / seconds / *peakFlops;
}

static Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string metricsToJson(const StepMetrics &metrics, const MemorySummary &memory) {
  Json json = {{"step", metrics.step}, {"loss", number(metrics.loss)}};
  if (metrics.gradNorm)
    json["grad_norm"] = number(*metrics.gradNorm);
  json["lr"] = number(metrics.learningRate);
  if (metrics.isSkipped)
    json["skipped"] = true;
  json["step_seconds"] = number(metrics.seconds);
  json["tokens_per_second"] = number(metrics.tokensPerSecond());
  json["samples_per_second"] = number(metrics.samplesPerSecond());
  json["data_wait_seconds"] = number(metrics.dataWaitSeconds);
  json["compute_seconds"] = number(metrics.computeSeconds);
  if (metrics.exposedCommunicationSeconds)
    json["exposed_communication_seconds"] = number(*metrics.exposedCommunicationSeconds);
  if (metrics.hiddenCommunicationSeconds)
    json["hidden_communication_seconds"] = number(*metrics.hiddenCommunicationSeconds);
  json["host_seconds"] = number(metrics.hostSeconds);
  if (metrics.launcherSeconds)
    json["launcher_cpu_seconds"] = number(*metrics.launcherSeconds);
  if (auto mfu = metrics.mfu())
    json["mfu"] = number(*mfu);
  Json classes = Json::object();
  for (size_t i = 0; i < numMemoryClasses; ++i)
    classes[std::string(toString(static_cast<artifact::MemoryClass>(i)))] = memory.plan.bytesAtPeak[i];
  json["memory"] = {{"planned_per_rank", memory.plan.arenaBytes},
                    {"planned_per_rank_by_class", std::move(classes)},
                    {"ranks_in_process", memory.ranksInProcess},
                    {"allocated", memory.allocatedBytes},
                    {"host", memory.hostBytes},
                    {"rss", metrics.process.resident},
                    {"rss_peak", metrics.process.peakResident}};
  return json.dump();
}

static std::string shortCount(double value) {
  if (value >= 1e6)
    return fmt::format("{:.2f}M", value / 1e6);
  return value >= 1e4 ? fmt::format("{:.1f}k", value / 1e3) : fmt::format("{:.0f}", value);
}

std::string formatDuration(double seconds) {
  // Of steps that take for ever, more than a number of days is not known.
  const auto whole = static_cast<int64_t>(std::clamp(seconds, 0.0, 1e12));
  constexpr int64_t minute = 60, hour = 60 * minute, day = 24 * hour;
  if (whole < minute)
    return fmt::format("{}s", whole);
  if (whole < hour)
    return fmt::format("{}m{:02}s", whole / minute, whole % minute);
  if (whole < day)
    return fmt::format("{}h{:02}m", whole / hour, whole % hour / minute);
  return fmt::format("{}d{:02}h", whole / day, whole % day / hour);
}

/// The sign of what is not a number means nothing.
static double withoutSignOfNan(double value) { return std::isnan(value) ? std::abs(value) : value; }

std::string lineStart(bool isRemote) {
  if (!isRemote && ::isatty(STDOUT_FILENO))
    return "";
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%F %T ", &local));
}

std::string progressLine(const StepMetrics &metrics, int64_t totalSteps, const MemorySummary &memory) {
  std::string line = fmt::format("step {:>{}}/{} | loss {:.4f}", metrics.step, std::to_string(totalSteps).size(),
                                 totalSteps, withoutSignOfNan(metrics.loss));
  if (metrics.gradNorm)
    line += fmt::format(" | norm {:.3g}", withoutSignOfNan(*metrics.gradNorm));
  line += fmt::format(" | lr {:.2e} | {} | {:.0f} ms", metrics.learningRate,
                      metrics.hasPositions ? shortCount(metrics.tokensPerSecond()) + " tok/s"
                                           : shortCount(metrics.samplesPerSecond()) + " samples/s",
                      metrics.seconds * 1e3);
  if (metrics.seconds > 0 && metrics.dataWaitSeconds > 0.02 * metrics.seconds)
    line += fmt::format(" | data {:.0f}%", 100 * metrics.dataWaitSeconds / metrics.seconds);
  if (auto mfu = metrics.mfu())
    line += fmt::format(" | mfu {:.0f}%", 100 * *mfu);
  return line + " | mem " + formatBytes(memory.plan.arenaBytes) + "/rank, rss " + formatBytes(metrics.process.resident);
}

std::string evaluationToJson(const EvaluationMetrics &metrics) {
  Json json = {{"stage", "evaluation"}, {"step", metrics.step}, {"eval_loss", number(metrics.loss)}};
  if (metrics.perplexity)
    json["eval_perplexity"] = number(*metrics.perplexity);
  for (const auto &[name, value] : metrics.others)
    json["eval_" + name] = number(value);
  if (metrics.counted)
    json["eval_targets"] = static_cast<uint64_t>(*metrics.counted);
  json["eval_samples"] = metrics.samples;
  json["eval_batches"] = metrics.batches;
  json["eval_seconds"] = metrics.seconds;
  return json.dump();
}

std::string evaluationLine(const EvaluationMetrics &metrics, int64_t totalSteps) {
  std::string line = totalSteps > 0
                         ? fmt::format("step {:>{}}/{} | ", metrics.step, std::to_string(totalSteps).size(), totalSteps)
                         : "";
  line += fmt::format("eval loss {:.6f}", withoutSignOfNan(metrics.loss));
  if (metrics.perplexity)
    line += fmt::format(" | perplexity {:.4g}", withoutSignOfNan(*metrics.perplexity));
  for (const auto &[name, value] : metrics.others)
    line += fmt::format(" | {} {:.4g}", name, withoutSignOfNan(value));
  if (metrics.counted)
    line += fmt::format(" | {:.0f} targets", *metrics.counted);
  return line + fmt::format(" | {} samples in {} {} | {:.0f} ms", metrics.samples, metrics.batches,
                            metrics.batches == 1 ? "batch" : "batches", metrics.seconds * 1e3);
}

/// The complete lines of an earlier run up to `lastStep`; what a crash cut off is dropped.
static std::string linesUpTo(const std::string &path, int64_t lastStep) {
  std::ifstream stream(path);
  std::string kept, line;
  size_t numDamaged = 0;
  while (std::getline(stream, line)) {
    Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_unsigned())
      numDamaged += !stream.eof(); // else a crash cut it off
    else if (json["step"].get<uint64_t>() <= static_cast<uint64_t>(lastStep))
      kept += line + "\n";
  }
  if (numDamaged > 0)
    log::warn("'{}': {} lines are not ones of a run, and are dropped", path, numDamaged);
  return kept;
}

Result<std::unique_ptr<MetricsWriter>> MetricsWriter::open(const std::string &path, std::optional<int64_t> resumeStep) {
  // Always a new file: a run that was suspended and has lost its folder may still have a line for the old one.
  TESSERA_RETURN_IF_ERROR(writeFileAtomically(path, resumeStep ? linesUpTo(path, *resumeStep) : ""));
  std::FILE *file = std::fopen(path.c_str(), "ae");
  if (!file)
    return systemError("write", path, errno);
  return std::unique_ptr<MetricsWriter>(new MetricsWriter(path, file));
}

MetricsWriter::~MetricsWriter() { std::fclose(file); }

Status MetricsWriter::write(const StepMetrics &metrics, const MemorySummary &memory) {
  return writeLine(metricsToJson(metrics, memory));
}

Status MetricsWriter::writeLine(const std::string &json) {
  std::string line = json + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file) != line.size() || std::fflush(file) != 0)
    return systemError("write", path, errno);
  return Status::ok();
}

} // namespace tessera
