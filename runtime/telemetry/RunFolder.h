//===- RunFolder.h - where a run leaves its results -----------------------------------------===//
//
// The folder of a run: run.json (what ran, with which settings), metrics.jsonl, trace.json, checkpoints/,
// model.safetensors, and while a process works in it, lease.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TELEMETRY_RUNFOLDER_H
#define TESSERA_RUNTIME_TELEMETRY_RUNFOLDER_H

#include "runtime/artifact/Reader.h"
#include "runtime/telemetry/Metrics.h"

#include <map>

namespace tessera {

/// What run.json says besides the artifact's own facts.
struct RunInfo {
  std::vector<std::string> commandLine;
  std::map<std::string, std::string> settings; ///< As resolved: seed, data, weights, threads, ….
  int ranksInProcess = 1;
  int threadsPerRank = 1;
  std::optional<double> unigramEntropy; ///< Nats, of the training tokens.
  std::optional<uint64_t> samples;
  std::string initialValues; ///< Where they come from, in words; empty for a run that was resumed.
  std::string dataFormat;    ///< "uint16 tokens (by …)", …
  std::optional<int64_t> resumedStep;
  std::string resumedFrom; ///< the checkpoint; empty: none
  std::string resumedRun;  ///< the folder of its run, whose run.json says how the state was made; empty: not known
  std::map<std::string, double> launchSeconds; ///< from the command's begin to the first step, by stage and in total
};

class RunFolder {
public:
  /// Makes the folder if it does not exist.
  static Result<RunFolder> create(const std::string &path);
  /// A folder to read from, which need not exist.
  explicit RunFolder(std::string root) : root(std::move(root)) {}

  /// Removes what a process that was killed was writing. Only for the one that holds the lease.
  Status removeLeftOvers() const;
  /// The last step that a run has made here. 0: none; one that ended before its first step (of bad data, say) left
  /// nothing to keep.
  int64_t lastStep() const;
  /// The steps that were evaluated and their losses, in the order of the records; a loss that is not finite is no
  /// number.
  std::vector<std::pair<int64_t, double>> evaluations() const;
  /// Whether there is a record of the evaluation after a step.
  bool hasEvaluation(int64_t step) const;
  /// The step at which a run ended as it should have, with its weights written; nothing if none has, or goes on since.
  std::optional<int64_t> finishedStep() const;
  /// A file that a run would replace, in a folder whose run.json is missing or no run's; empty: none.
  std::string findRecordsOfOthers() const;
  /// Of the artifact that ran here last, as 16 hexadecimal digits; empty if that is not known.
  std::string lastFingerprint() const;

  const std::string &path() const { return root; }
  std::string metricsPath() const { return root + "/metrics.jsonl"; }
  std::string runPath() const { return root + "/run.json"; }
  /// Each process writes its own; that of rank 0 has no number.
  std::string tracePath(int firstRank = 0) const {
    return root + (firstRank == 0 ? "/trace.json" : "/trace-" + std::to_string(firstRank) + ".json");
  }
  /// Removes the traces of all processes, which the run writes anew.
  void removeTraces() const;
  std::string memoryPath() const { return root + "/memory.json"; }
  std::string dumpFolder(int64_t step) const { return root + "/dump-" + std::to_string(step); }
  std::string tensorBoardFolder() const { return root + "/tensorboard"; }
  std::string checkpointFolder() const { return root + "/checkpoints"; }
  std::string leasePath() const { return root + "/lease"; }
  std::string adapterFolder(bool isAverage) const { return root + (isAverage ? "/adapter-average" : "/adapter"); }
  std::string modelPath() const { return root + "/model.safetensors"; }

  /// Whether a run writes a file or folder of this name into its folder.
  static bool isOwnName(const std::string &name);
  /// What run.json says was given for a flag; empty if nothing.
  std::string setting(const std::string &flag) const;
  static std::string fingerprintOf(const Artifact &artifact);
  /// Of a run that was resumed with what the runs before it say of themselves (`earlier`).
  Status writeRunInfo(const Artifact &artifact, const RunInfo &info) const;
  /// The step whose weights a run that has ended left.
  std::optional<int64_t> exportedStep() const;
  /// Adds to run.json that the run has ended as it should have, whose weights it left, and which step had the lowest
  /// evaluated loss, if that was asked for.
  Status recordEnd(int64_t step, int64_t exportedStep, std::optional<int64_t> bestStep) const;

private:
  std::string root;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_TELEMETRY_RUNFOLDER_H
