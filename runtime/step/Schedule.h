//===- Schedule.h - the scalars that a step is given -----------------------===//
//
// Learning rate, bias corrections and random seed of each step; numbers are computed in double precision from the
// artifact's settings. Keys of Program.optimizer: lr, schedule (constant | cosine), warmup (steps), min_lr, beta1,
// beta2.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_SCHEDULE_H
#define TESSERA_RUNTIME_STEP_SCHEDULE_H

#include "runtime/artifact/Reader.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

class Session;

/// What the command line changes.
struct ScheduleOverrides {
  std::optional<double> learningRate, minLearningRate;
  std::optional<int64_t> warmup;
  std::optional<std::string> schedule;
};

struct Schedule {
  /// From the artifact; `totalSteps` is where a cosine ends.
  static Result<Schedule> create(const Artifact &artifact, int64_t totalSteps, const ScheduleOverrides &overrides = {});

  /// Steps count from 1. Warm-up: lr * step / warmup. Then constant, or half a cosine down to `minLearningRate`, which
  /// is reached at the last step.
  double learningRate(int64_t step) const;
  /// What the random numbers of a step (dropout) are made from: a pure function of the run's seed and the step, so that
  /// a run is the same on any mesh and after it was resumed.
  static uint64_t stepSeed(uint64_t runSeed, int64_t step);
  /// Sets `lr`, `bias_correction1` = 1 - beta1^update, `bias_correction2`, `update_always` and `seed`, as far as the
  /// step has them. `update` counts from 1 the updates made, this step's included: steps without one are left out.
  Status apply(Session &session, int64_t step, int64_t update, bool updatesAlways, uint64_t runSeed) const;

  /// All that the scalars are made from: ranks with another schedule would train other parameters.
  std::string describe() const;

  double peak = 0, minLearningRate = 0;
  double beta1 = 0, beta2 = 0;
  int64_t warmup = 0, totalSteps = 0;
  bool isCosine = false;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_SCHEDULE_H
