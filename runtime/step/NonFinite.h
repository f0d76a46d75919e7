//===- NonFinite.h - what becomes of steps that are not finite -------------===//
//
// An artifact with a guard leaves parameters and states as they were in a step whose loss or gradient norm is not
// finite. Here such steps are counted, reported, and end the run where there are too many. All ranks decide alike: a
// step's results are the same for all.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_NONFINITE_H
#define TESSERA_RUNTIME_STEP_NONFINITE_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

struct CheckpointInfo;

/// What a step came to.
struct StepOutcome {
  int64_t step = 0;
  double loss = 0;
  std::optional<double> gradNorm;
  std::optional<bool> isUpdated; ///< none: the artifact has no guard, and every step is an update
  double learningRate = 0;

  bool isFinite() const;
};

class NonFinite {
public:
  enum class Choice { Skip, Stop, Ignore };
  /// So many skipped steps in a row end the run.
  static constexpr uint64_t maxInARow = 10;

  /// `choice`: skip, stop, ignore, or empty for the default: skip, or stop for an artifact without a guard
  /// (`hasGuard`), of which skip is an error.
  static Result<NonFinite> create(const std::string &choice, bool hasGuard);

  /// Goes on with the counts of a checkpoint, and writes them into one.
  void resume(const CheckpointInfo &info);
  void save(CheckpointInfo &info) const;

  bool ignores() const { return choice == Choice::Ignore; }
  /// The number of the update that this step is to make; steps and updates count from 1.
  int64_t updateOf(int64_t step) const { return step - static_cast<int64_t>(skipped); }
  /// Whether the last step changed nothing.
  bool hasSkipped() const { return inARow > 0; }
  /// How many steps up to the last one changed nothing.
  uint64_t skippedInARow() const { return inARow; }

  /// Counts the step; an error if the run is to end. `speaks`: this rank reports.
  Status after(const StepOutcome &outcome, bool speaks);
  /// What is to be done with final weights that are not finite, as `problem` says (empty: they are): an error, or a
  /// warning where such steps are ignored.
  Status checkExport(const std::string &problem) const;

private:
  explicit NonFinite(Choice choice) : choice(choice) {}

  Choice choice;
  uint64_t skipped = 0, inARow = 0;
  bool hasWarned = false;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_NONFINITE_H
