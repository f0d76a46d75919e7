//===- NonFinite.cpp - what becomes of steps that are not finite -----------===//

#include "runtime/step/NonFinite.h"

#include "runtime/base/Log.h"
#include "runtime/state/Manifest.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace tessera {

bool StepOutcome::isFinite() const { return std::isfinite(loss) && (!gradNorm || std::isfinite(*gradNorm)); }

/// The sign of what is not a number means nothing.
static std::string number(double value) { return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value); }

/// "its loss is nan (gradient norm nan)".
static std::string describe(const StepOutcome &outcome) {
  if (std::isfinite(outcome.loss) && outcome.gradNorm)
    return "its gradient norm is " + number(*outcome.gradNorm) + " (loss " + number(outcome.loss) + ")";
  std::string text = "its loss is " + number(outcome.loss);
  return outcome.gradNorm ? text + " (gradient norm " + number(*outcome.gradNorm) + ")" : text;
}

/// What the end of a run says besides the step.
static std::string describeRate(const StepOutcome &outcome) {
  return "; learning rate " + number(outcome.learningRate) +
         "; use a lower --lr, a longer --warmup, or go on regardless with --on-nonfinite ignore";
}

Result<NonFinite> NonFinite::create(const std::string &choice, bool hasGuard) {
  if (choice == "ignore")
    return NonFinite(Choice::Ignore);
  if (choice == "stop" || (choice.empty() && !hasGuard))
    return NonFinite(Choice::Stop);
  if (!choice.empty() && choice != "skip")
    return TESSERA_ERROR(InvalidArgument, "--on-nonfinite is '" + choice + "', expected skip, stop or ignore");
  if (!hasGuard)
    return TESSERA_ERROR(InvalidArgument,
                         "--on-nonfinite skip: the artifact cannot skip an update; compile it with --guard-updates on");
  return NonFinite(Choice::Skip);
}

void NonFinite::resume(const CheckpointInfo &info) {
  skipped = info.skippedSteps;
  inARow = info.skippedInARow;
}

void NonFinite::save(CheckpointInfo &info) const {
  info.skippedSteps = skipped;
  info.skippedInARow = inARow;
}

Status NonFinite::after(const StepOutcome &outcome, bool speaks) {
  const bool isSkipped = !outcome.isUpdated.value_or(true);
  skipped += isSkipped;
  inARow = isSkipped ? inARow + 1 : 0;
  const std::string step = "step " + std::to_string(outcome.step);
  if (ignores()) {
    if (!outcome.isFinite() && speaks && !std::exchange(hasWarned, true))
      log::warn("{} is not finite: {}", step, describe(outcome));
    return Status::ok();
  }
  if (!isSkipped && outcome.isFinite())
    return Status::ok();
  if (!isSkipped)
    return TESSERA_ERROR(InvalidArgument, step + " is not finite: " + describe(outcome) +
                                              "; its update is made, as the artifact cannot skip one (tessera-compile "
                                              "--guard-updates on)" +
                                              describeRate(outcome));
  if (choice == Choice::Stop)
    return TESSERA_ERROR(InvalidArgument, step + " changed nothing: " + describe(outcome) + describeRate(outcome));
  if (inARow >= maxInARow)
    return TESSERA_ERROR(InvalidArgument,
                         fmt::format("{} steps in a row changed nothing, from step {} on; of the last, ", inARow,
                                     outcome.step - static_cast<int64_t>(inARow) + 1) +
                             describe(outcome) + describeRate(outcome));
  constexpr uint64_t saidAtOnce = 3;
  if (speaks && (skipped <= saidAtOnce || std::has_single_bit(skipped)))
    log::warn("{} changed nothing: {}{}", step, describe(outcome),
              skipped > 1 ? fmt::format("; {} such steps so far", skipped) : "");
  return Status::ok();
}

Status NonFinite::checkExport(const std::string &problem) const {
  if (problem.empty())
    return Status::ok();
  if (!ignores())
    return TESSERA_ERROR(InvalidArgument, "the final weights are not written: " + problem);
  log::warn("of the final weights, {}", problem);
  return Status::ok();
}

} // namespace tessera
