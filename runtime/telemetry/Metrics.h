//===- Metrics.h - what a step reports ------------------------------------------------===//
//
// One record per step: written as a JSON line, shown as a progress line. See docs/telemetry.md for the fields.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TELEMETRY_METRICS_H
#define TESSERA_RUNTIME_TELEMETRY_METRICS_H

#include "runtime/base/Status.h"
#include "runtime/telemetry/MemoryPlan.h"

#include <cstdio>
#include <memory>
#include <optional>

namespace tessera {

/// Bytes of this process as the kernel counts them; 0 where it does not say.
struct ProcessMemory {
  uint64_t resident = 0, peakResident = 0;
};
ProcessMemory processMemory();

struct StepMetrics {
  int64_t step = 0;
  double loss = 0;
  std::optional<double> gradNorm;
  double learningRate = 0;
  bool isSkipped = false;   ///< The step changed nothing.
  double seconds = 0;       ///< Of the whole step, data wait included.
  double tokens = 0;        ///< Tokens (or samples) of the step, over all ranks.
  double samples = 0;       ///< Of the step, over all ranks.
  bool hasPositions = true; ///< A dimension of what the step reads counts positions: it has tokens.
  double dataWaitSeconds = 0;
  // Means over the ranks:
  double computeSeconds = 0;
  std::optional<double> exposedCommunicationSeconds, hiddenCommunicationSeconds;
  double hostSeconds = 0;                ///< The rest: inputs, issue of instructions, agreement between ranks.
  std::optional<double> launcherSeconds; ///< On a GPU: CPU time until it has been given the step.
  std::optional<double> flops;           ///< Of the step, over all ranks.
  std::optional<double> peakFlops;       ///< Per second, over all ranks.
  ProcessMemory process;

  double tokensPerSecond() const { return seconds > 0 ? tokens / seconds : 0; }
  double samplesPerSecond() const { return seconds > 0 ? samples / seconds : 0; }
  /// Model FLOP/s over peak FLOP/s.
  std::optional<double> mfu() const;
};

/// What an evaluation found.
struct EvaluationMetrics {
  int64_t step = 0;                                   ///< Of the training, after which it was.
  double loss = 0;                                    ///< Of all that counts in the data, not a mean of batches' means.
  std::optional<double> perplexity, counted;          ///< Targets that are not ignored.
  std::vector<std::pair<std::string, double>> others; ///< Metrics by their names, of all batches as one.
  uint64_t batches = 0, samples = 0;
  double seconds = 0;
};
/// A line of metrics.jsonl, with `"stage": "evaluation"`.
std::string evaluationToJson(const EvaluationMetrics &metrics);
/// "step 100/200 | eval loss 3.1234 | …"; with 0 steps in all, "eval loss …".
std::string evaluationLine(const EvaluationMetrics &metrics, int64_t totalSteps);

/// Planned and allocated bytes: the same for all steps.
struct MemorySummary {
  MemoryPlan plan; ///< Of one rank.
  int ranksInProcess = 1;
  uint64_t allocatedBytes = 0; ///< Of all ranks of the process, on the device.
  uint64_t hostBytes = 0;      ///< Of all ranks of the process, on the host (--offload).
};

/// One JSON object in one line, without the line's end. Numbers that are not finite become null.
std::string metricsToJson(const StepMetrics &metrics, const MemorySummary &memory);
/// "45s", "1m05s", "2h03m" or "3d04h".
std::string formatDuration(double seconds);
/// What a line of the console begins with: nothing on a terminal, else "2026-11-28 13:14:11 ", local time. `isRemote`:
/// of ranks in processes, whose launchers may give them a terminal that nobody sees.
std::string lineStart(bool isRemote);
/// "step 10/200 | loss 3.2140 | …".
std::string progressLine(const StepMetrics &metrics, int64_t totalSteps, const MemorySummary &memory);

/// Appends JSON lines to a file, each complete on disk before the next step.
class MetricsWriter {
public:
  /// Begins a file; with `resumeStep` keeps the lines of an existing one up to that step.
  static Result<std::unique_ptr<MetricsWriter>> open(const std::string &path,
                                                     std::optional<int64_t> resumeStep = std::nullopt);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter &) = delete;
  MetricsWriter &operator=(const MetricsWriter &) = delete;

  Status write(const StepMetrics &metrics, const MemorySummary &memory);
  /// A record that is not a step's, without the line's end.
  Status writeLine(const std::string &json);

private:
  MetricsWriter(std::string path, std::FILE *file) : path(std::move(path)), file(file) {}
  std::string path;
  std::FILE *file;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_TELEMETRY_METRICS_H
