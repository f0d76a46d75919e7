//===- Evaluation.h - the loss over a data set ------------------------------===//
//
// Runs the program that evaluates over all batches of the evaluation's data, always the same ones in the same order,
// and adds up what they say. Touches neither the state nor the place of the training in its own data.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_EVALUATION_H
#define TESSERA_RUNTIME_STEP_EVALUATION_H

#include "runtime/data/Loader.h"
#include "runtime/step/Session.h"
#include "runtime/telemetry/Metrics.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace tessera {

struct EvaluationOptions {
  std::string data;
  uint64_t batches = 0; ///< at most; 0: all
  DataOptions format;
};

/// What batches add up, {sum, count} of the loss and of each metric.
using EvaluationSums = std::vector<std::array<double, 2>>;

/// Shared by the ranks of a process.
class Evaluation {
public:
  /// Errors: the artifact has no program that evaluates, or the data do not fill one batch of it.
  static Result<std::unique_ptr<Evaluation>> create(const Artifact &artifact, const EvaluationOptions &options,
                                                    const std::vector<int> &ranksHere);

  uint64_t batches() const { return numBatches; }
  /// Samples at the end that are left out, since they fill no batch.
  uint64_t samplesLeftOut() const { return leftOut; }
  const std::string &dataFingerprint() const { return fingerprint; }
  /// "100 samples of bytes of text".
  std::string describeData() const { return std::to_string(numSamples) + " samples of " + format; }

  /// Reads a batch for the ranks of this process; by one of them, while all others still use the one before at most.
  Status read(uint64_t batch);
  /// Runs it, once it has been read, and adds its part to `sums`; all ranks call it together. `step`: of the training.
  Status run(uint64_t batch, Session &session, int64_t step, EvaluationSums &sums);
  /// What all batches say.
  EvaluationMetrics metrics(int64_t step, const EvaluationSums &sums, double seconds) const;

private:
  explicit Evaluation(const Artifact &artifact) : artifact(artifact) {}
  /// A number of several batches, by the results of each.
  struct Average {
    uint32_t sum = 0, count = 0;
  };

  Status findResults();
  void findFill();
  double valueOf(size_t average, const EvaluationSums &sums) const;
  void fillRows(HostBatch &batch, uint64_t from) const;

  const Artifact &artifact;
  size_t program = 0;
  std::vector<Average> averages; ///< the loss, and the metrics
  bool hasPerplexity = false;
  std::vector<BatchSpec> specs;
  int filled = -1; ///< the target whose ignored values take the place of samples that are missing; -1: none
  std::unique_ptr<Loader> loader;
  std::string fingerprint, format; ///< as SampleSource's
  uint64_t numSamples = 0, numBatches = 0, leftOut = 0;
  std::array<std::shared_ptr<const HostBatch>, 2> held; ///< by parity: a rank may still copy the one before
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_EVALUATION_H
