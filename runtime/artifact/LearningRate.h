//===- LearningRate.h - the course of the learning rate ----------------------===//
//
// Schedules are made of a few parts, each a curve between two levels (see artifact.fbs). The compiler makes them, the
// runtime evaluates them. Knows nothing of either.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_LEARNINGRATE_H
#define TESSERA_RUNTIME_ARTIFACT_LEARNINGRATE_H

#include "runtime/artifact/artifact_generated.h"

#include <cstdint>
#include <string>

namespace tessera {

/// What a schedule is asked to be.
struct ScheduleRequest {
  std::string kind = "constant"; ///< scheduleKinds()
  double peak = 1e-3, lowest = 0;
  int64_t warmup = 0;                ///< steps of linear warm-up from 0, which every kind begins with
  int64_t decaySteps = 0;            ///< the last steps of the run, in which wsd decays
  std::string decayCurve = "linear"; ///< decayCurves(): of wsd
};

/// "constant, linear, cosine, inverse-sqrt, wsd".
std::string scheduleKinds();
/// "linear, cosine, 1-sqrt".
std::string decayCurves();

/// Fills `made`. Returns an error text that names the flag of tessera-compile and tessera-run; empty if all is well.
std::string makeLearningRate(const ScheduleRequest &request, artifact::LearningRateT &made);
/// What a schedule was made from.
ScheduleRequest requestOf(const artifact::LearningRateT &rate);

/// What is wrong with a schedule from a file: numbers that are not finite or negative, parts that are too many, unknown
/// or out of order; empty if it can be evaluated at any step.
std::string checkLearningRate(const artifact::LearningRateT &rate);

/// The learning rate of a step, which counts from 1, in a run of `totalSteps`. The schedule has been checked.
double learningRateAt(const artifact::LearningRateT &rate, int64_t step, int64_t totalSteps);

/// "linear 0 to peak before step 10; cosine peak to lowest until the end".
std::string describeParts(const artifact::LearningRateT &rate);

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_LEARNINGRATE_H
