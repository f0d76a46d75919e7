//===- Schedule.cpp - the scalars that a step is given ---------------------===//

#include "runtime/step/Schedule.h"

#include "runtime/state/Philox.h"
#include "runtime/step/Session.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <utility>

namespace tessera {

/// A number from the artifact's settings; `fallback` if it has none.
static Result<double> numberOption(const Artifact &artifact, const std::string &key, double fallback) {
  std::string text = artifact.optimizerOption(key);
  if (text.empty())
    return fallback;
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value))
    return TESSERA_ERROR(DataLoss, "artifact '" + artifact.path() + "': optimizer setting " + key + " is '" + text +
                                       "', not a number");
  return value;
}

Result<Schedule> Schedule::create(const Artifact &artifact, int64_t totalSteps, const ScheduleOverrides &overrides) {
  Schedule made;
  TESSERA_ASSIGN_OR_RETURN(made.peak, numberOption(artifact, "lr", 1e-3));
  TESSERA_ASSIGN_OR_RETURN(made.minLearningRate, numberOption(artifact, "min_lr", 0));
  TESSERA_ASSIGN_OR_RETURN(double warmup, numberOption(artifact, "warmup", 0));
  TESSERA_ASSIGN_OR_RETURN(made.beta1, numberOption(artifact, "beta1", 0.9));
  TESSERA_ASSIGN_OR_RETURN(made.beta2, numberOption(artifact, "beta2", 0.999));
  std::string kind = overrides.schedule.value_or(artifact.optimizerOption("schedule"));
  if (kind != "" && kind != "constant" && kind != "cosine")
    return TESSERA_ERROR(InvalidArgument, "unknown schedule '" + kind + "', expected constant or cosine");
  made.isCosine = kind == "cosine";
  made.peak = overrides.learningRate.value_or(made.peak);
  made.minLearningRate = overrides.minLearningRate.value_or(made.minLearningRate);
  made.warmup = overrides.warmup.value_or(static_cast<int64_t>(std::clamp(warmup, 0.0, 1e15)));
  made.totalSteps = totalSteps;
  if (overrides.minLearningRate && !made.isCosine)
    return TESSERA_ERROR(InvalidArgument, "--min-lr is where a cosine ends, but the schedule is constant");
  return made;
}

double Schedule::learningRate(int64_t step) const {
  if (step < warmup)
    return peak * static_cast<double>(step) / static_cast<double>(warmup);
  if (!isCosine || totalSteps <= warmup)
    return peak;
  double progress = static_cast<double>(step - warmup) / static_cast<double>(totalSteps - warmup);
  return minLearningRate + 0.5 * (peak - minLearningRate) * (1 + std::cos(std::numbers::pi * std::min(progress, 1.0)));
}

std::string Schedule::describe() const {
  std::string text = isCosine ? "cosine" : "constant";
  for (auto [name, value] : {std::pair{"lr", peak}, {"min_lr", minLearningRate}, {"beta1", beta1}, {"beta2", beta2}}) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.17g", value);
    text += " " + std::string(name) + "=" + number;
  }
  return text + " warmup=" + std::to_string(warmup);
}

uint64_t Schedule::stepSeed(uint64_t runSeed, int64_t step) {
  auto words =
      philox(static_cast<uint64_t>(step), {static_cast<uint32_t>(runSeed), static_cast<uint32_t>(runSeed >> 32)});
  return words[0] | static_cast<uint64_t>(words[1]) << 32;
}

Status Schedule::apply(Session &session, int64_t step, int64_t update, bool updatesAlways, uint64_t runSeed) const {
  const auto *table = session.artifact().training().hyper();
  if (!table)
    return Status::ok();
  for (const artifact::HyperScalar *hyper : *table) {
    std::string_view name = hyper->name()->string_view();
    if (name == "seed") {
      TESSERA_RETURN_IF_ERROR(session.setSeed(stepSeed(runSeed, step)));
      continue;
    }
    double value = 0;
    if (name == "lr")
      value = learningRate(step);
    else if (name == "bias_correction1")
      value = 1 - std::pow(beta1, static_cast<double>(update));
    else if (name == "bias_correction2")
      value = 1 - std::pow(beta2, static_cast<double>(update));
    else if (name == "update_always")
      value = updatesAlways ? 1 : 0;
    else
      return TESSERA_ERROR(Unsupported,
                           "the step wants scalar '" + std::string(name) + "', which this runtime does not know");
    TESSERA_RETURN_IF_ERROR(session.setHyper(name, value));
  }
  return Status::ok();
}

} // namespace tessera
