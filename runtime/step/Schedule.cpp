//===- Schedule.cpp - the scalars that a step is given ---------------------===//

#include "runtime/step/Schedule.h"

#include "runtime/state/Philox.h"
#include "runtime/step/Session.h"

#include <cmath>
#include <cstdio>
#include <utility>

namespace tessera {

Result<Schedule> Schedule::create(const Artifact &artifact, int64_t totalSteps, const ScheduleOverrides &overrides) {
  Schedule made;
  made.totalSteps = totalSteps;
  if (const artifact::LearningRate *rate = artifact.package().learning_rate())
    rate->UnPackTo(&made.rate);
  const bool isOverridden = overrides.learningRate || overrides.minLearningRate || overrides.warmup ||
                            overrides.decaySteps || overrides.schedule || overrides.decayCurve;
  if (!isOverridden)
    return made;
  ScheduleRequest request = requestOf(made.rate);
  if (overrides.schedule && *overrides.schedule != request.kind)
    request = {*overrides.schedule, request.peak, request.lowest, request.warmup}; // of the artifact's own kind no more
  request.peak = overrides.learningRate.value_or(request.peak);
  request.lowest = overrides.minLearningRate.value_or(request.lowest);
  if (overrides.warmup)
    request.warmup = overrides.warmup->of(totalSteps);
  if (overrides.decaySteps)
    request.decaySteps = overrides.decaySteps->of(totalSteps);
  request.decayCurve = overrides.decayCurve.value_or(request.decayCurve);
  if (request.kind == "constant" && !overrides.minLearningRate)
    request.lowest = 0; // the artifact's schedule has an end, this one has none
  if (std::string problem = makeLearningRate(request, made.rate); !problem.empty())
    return TESSERA_ERROR(InvalidArgument, problem);
  return made;
}

std::string Schedule::describe() const {
  std::string text = rate.kind;
  for (auto [name, value] : {std::pair{"lr", rate.peak}, {"min_lr", rate.lowest}}) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.17g", value);
    text += " " + std::string(name) + "=" + number;
  }
  return text + " (" + describeParts(rate) + ")";
}

uint64_t Schedule::stepSeed(uint64_t runSeed, int64_t step) {
  auto words =
      philox(static_cast<uint64_t>(step), {static_cast<uint32_t>(runSeed), static_cast<uint32_t>(runSeed >> 32)});
  return words[0] | static_cast<uint64_t>(words[1]) << 32;
}

void Schedule::apply(Session &session, int64_t step, int64_t update, bool updatesAlways, uint64_t runSeed) const {
  const auto *table = session.artifact().training().hyper();
  for (uint32_t index = 0; table && index < table->size(); ++index) {
    const artifact::HyperScalar &hyper = *table->Get(index);
    switch (hyper.kind()) {
    case artifact::HyperKind::Seed:
      session.setSeed(index, stepSeed(runSeed, step));
      break;
    case artifact::HyperKind::LearningRate:
      session.setHyper(index, learningRate(step));
      break;
    case artifact::HyperKind::BiasCorrection:
      session.setHyper(index, 1 - std::pow(hyper.beta(), static_cast<double>(update)));
      break;
    case artifact::HyperKind::UpdateAlways:
      session.setHyper(index, updatesAlways ? 1 : 0);
      break;
    }
  }
}

} // namespace tessera
