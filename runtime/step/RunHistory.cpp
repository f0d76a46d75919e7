//===- RunHistory.cpp - what a run goes on from ---------------------------===//
//
// A run that is resumed may have other settings than the one that wrote the
// checkpoint. That is allowed, and said.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Log.h"
#include "runtime/step/Run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace fs = std::filesystem;

namespace tessera {

static constexpr const char *scheduleKey = "schedule", *stepsKey = "steps", *rateKey = "learning rate",
                            *nextRateKey = "next learning rate";
/// Before what the artifact says of a setting.
static constexpr std::string_view compiledPrefix = "compiled ";

/// Not settings that leave the steps of a run as they are, up to rounding, nor those that the schedule is compared for.
static bool isOfTheCourse(std::string_view setting) {
  static constexpr std::string_view others[] = {
      "source", "strategy", "wrap", "flops_per_step", "peak_flops_per_second", "lr", "schedule", "warmup", "min_lr"};
  return std::find(std::begin(others), std::end(others), setting) == std::end(others);
}

static std::string exactly(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

std::optional<RunFolder> Run::folderOfCheckpoint() const {
  const fs::path folder = absolutePath(checkpoint).parent_path();
  RunFolder run(folder.parent_path().string());
  return folder == run.checkpointFolder() ? std::optional(run) : std::nullopt;
}

std::map<std::string, std::string> Run::courseAt(int64_t step) const {
  std::map<std::string, std::string> course = {{scheduleKey, schedule->describe()},
                                               {stepsKey, std::to_string(totalSteps)},
                                               {rateKey, exactly(schedule->learningRate(step))},
                                               {nextRateKey, exactly(schedule->learningRate(step + 1))}};
  for (const auto *entries : {artifact->package().model(), artifact->package().optimizer()})
    for (uint32_t index = 0; entries && index < entries->size(); ++index)
      if (const std::string_view key = entries->Get(index)->key()->string_view(); isOfTheCourse(key))
        course[std::string(compiledPrefix) + std::string(key)] = entries->Get(index)->value()->str();
  return course;
}

/// Checkpoints of earlier versions say nothing of it.
void Run::warnOfOtherCourse(const CheckpointInfo &info) const {
  const auto step = static_cast<int64_t>(info.step);
  std::map<std::string, std::string> mine = courseAt(step), theirs = info.extra;
  if (!theirs.contains(scheduleKey))
    return;
  const double before = std::strtod(theirs[rateKey].c_str(), nullptr), next = schedule->learningRate(step + 1),
               expected = std::strtod(theirs[nextRateKey].c_str(), nullptr);
  const bool isOther = theirs[scheduleKey] != mine[scheduleKey];
  const std::string why =
      isOther ? "the schedule is " + mine[scheduleKey] + ", that of '" + checkpoint + "' was " + theirs[scheduleKey]
              : "the schedule depends on the last step, which is " + mine[stepsKey] + ", and for '" + checkpoint +
                    "' was " + theirs[stepsKey];
  if (step < totalSteps && std::abs(next - expected) > 1e-9 * std::max(next, expected))
    log::warn("the learning rate goes from {:.4g} in step {} to {:.4g} in step {}, and would have gone to {:.4g}: {}",
              before, step, next, step + 1, expected, why);
  else if (isOther)
    log::warn("{}", why);
  std::map<std::string, std::pair<std::string, std::string>> differences; // mine, theirs
  for (const auto &[key, value] : mine)
    if (key.starts_with(compiledPrefix) && (!theirs.contains(key) || theirs[key] != value))
      differences[key.substr(compiledPrefix.size())] = {value, theirs.contains(key) ? theirs[key] : "unset"};
  for (const auto &[key, value] : theirs)
    if (key.starts_with(compiledPrefix) && !mine.contains(key))
      differences[key.substr(compiledPrefix.size())] = {"unset", value};
  if (differences.erase("computation") > 0 && theirs.contains(std::string(compiledPrefix) + "computation"))
    log::warn("'{}' computes something else than what '{}' was trained with: another model with the same parameters",
              options.artifact, checkpoint);
  for (const auto &[name, values] : differences)
    log::warn("'{}' was compiled with {} {}, what '{}' was trained with had {}", options.artifact, name, values.first,
              checkpoint, values.second);
}

void Run::printResumed() const {
  const int64_t step = firstStep - 1;
  std::string text = "resumed from " + checkpoint + " after step " + std::to_string(step);
  if (firstStep > totalSteps)
    text += ", which was the last";
  else if (const int64_t recorded = folder->lastStep(); recorded > step)
    text += "; steps " + std::to_string(firstStep) + " to " + std::to_string(recorded) + " of '" + options.out +
            "' are done again";
  std::printf("%s\n", text.c_str());
}

void Run::printEvaluated() const {
  std::string what;
  if (initialValues) {
    what = "values: " + initialValues->describe(*artifact, options.seed.value_or(0));
  } else {
    const auto step = static_cast<int64_t>(resumed[0].step);
    what = "step " + std::to_string(step) + " ('" + checkpoint + "')";
    const std::optional<RunFolder> run = folderOfCheckpoint();
    std::error_code error;
    if (const int64_t last = run ? run->lastStep() : 0; last > step)
      log::warn("'{}' is of step {}, but its run went on to step {}{}", checkpoint, step, last,
                fs::exists(run->modelPath(), error) ? ": --weights " + run->modelPath() + " are the weights of its end"
                                                    : "");
  }
  std::printf("%s: evaluates %s over %s\n", options.artifact.c_str(), what.c_str(), evaluation->describeData().c_str());
  std::fflush(stdout);
}

} // namespace tessera
