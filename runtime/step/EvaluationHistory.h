//===- EvaluationHistory.h - the best evaluation of a run -------------------===//

#ifndef TESSERA_RUNTIME_STEP_EVALUATIONHISTORY_H
#define TESSERA_RUNTIME_STEP_EVALUATIONHISTORY_H

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tessera {

/// Which step had the lowest loss. The records of a run say all of it, so that a run which goes on decides alike.
struct EvaluationHistory {
  /// Of (step, loss) in the order of the steps.
  static EvaluationHistory of(const std::vector<std::pair<int64_t, double>> &evaluations, int64_t lastStep) {
    EvaluationHistory history;
    for (auto [step, loss] : evaluations)
      if (step <= lastStep)
        history.add(step, loss);
    return history;
  }

  /// Whether the loss is lower than all before; one that is not finite never is.
  bool add(int64_t step, double loss) {
    if (std::isfinite(loss) && (!bestStep || loss < bestLoss)) {
      bestStep = step;
      bestLoss = loss;
      sinceBest = 0;
      return true;
    }
    ++sinceBest;
    return false;
  }

  /// Whether the last `patience` evaluations were no better; 0: never.
  bool isOver(int64_t patience) const { return patience > 0 && sinceBest >= patience; }

  std::optional<int64_t> bestStep;
  double bestLoss = 0;
  int64_t sinceBest = 0; ///< evaluations
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_EVALUATIONHISTORY_H
