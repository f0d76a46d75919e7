//===- Schedule.h - the scalars that a step is given -----------------------===//
//
// Learning rate, bias corrections and random seed of each step; numbers are computed in double precision from what the
// artifact says of each scalar (HyperKind), and from its course of the learning rate.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_SCHEDULE_H
#define TESSERA_RUNTIME_STEP_SCHEDULE_H

#include "runtime/artifact/LearningRate.h"
#include "runtime/artifact/Reader.h"
#include "runtime/base/Status.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

class Session;

/// A number of steps, or a share of all of them: the next whole step, as transformers has it.
struct StepCount {
  double value;
  bool isShare;

  int64_t of(int64_t totalSteps) const {
    return static_cast<int64_t>(isShare ? std::ceil(value * static_cast<double>(totalSteps)) : value);
  }
};

/// What the command line changes.
struct ScheduleOverrides {
  std::optional<double> learningRate, minLearningRate;
  std::optional<StepCount> warmup, decaySteps;
  std::optional<std::string> schedule, decayCurve;
};

struct Schedule {
  /// From the artifact; `totalSteps` is where schedules end.
  static Result<Schedule> create(const Artifact &artifact, int64_t totalSteps, const ScheduleOverrides &overrides = {});

  /// Steps count from 1.
  double learningRate(int64_t step) const { return learningRateAt(rate, step, totalSteps); }
  ScheduleRequest request() const { return requestOf(rate); }
  /// What the random numbers of a step (dropout) are made from: a pure function of the run's seed and the step, so that
  /// a run is the same on any mesh and after it was resumed.
  static uint64_t stepSeed(uint64_t runSeed, int64_t step);
  /// Sets the scalars that the step has. `update` counts from 1 the updates made, this step's included: steps without
  /// one are left out.
  void apply(Session &session, int64_t step, int64_t update, bool updatesAlways, uint64_t runSeed) const;

  /// All that the scalars are made from: ranks with another schedule would train other parameters.
  std::string describe() const;

  artifact::LearningRateT rate; ///< checked
  int64_t totalSteps = 0;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_SCHEDULE_H
