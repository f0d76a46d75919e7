//===- RunEvaluation.cpp - evaluations of a training run -------------------===//

#include "runtime/base/Log.h"
#include "runtime/step/Run.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace tessera {

Status Run::openEvaluation() {
  if (options.evalData.empty()) {
    if (options.evalEvery > 0 || options.evalBatches > 0 || options.evalOnly)
      return TESSERA_ERROR(InvalidArgument, "--eval-every, --eval-batches and --eval-only need --eval-data");
    return Status::ok();
  }
  EvaluationOptions asked;
  asked.data = options.evalData;
  asked.batches = static_cast<uint64_t>(options.evalBatches);
  asked.format = {options.textField, options.tokenBytes, options.endOfDocument, options.readsBytes};
  std::vector<int> ranks;
  if (world.empty())
    for (int rank = 0; rank < numRanks(); ++rank)
      ranks.push_back(rank);
  for (const std::unique_ptr<Communicator> &member : world)
    ranks.push_back(member->rank());
  TESSERA_ASSIGN_OR_RETURN(evaluation, Evaluation::create(*artifact, asked, ranks));
  if (hasRoot() && evaluation->samplesLeftOut() > 0)
    log::warn("--eval-data: the last {} samples fill no batch and are left out", evaluation->samplesLeftOut());
  return Status::ok();
}

bool Run::isEvaluated(int64_t step) const {
  return evaluation && (step == options.steps || (options.evalEvery > 0 && step % options.evalEvery == 0));
}

/// All ranks run all batches; one that is asked to end ends the evaluation of all. Returns the signal that it was asked
/// by; 0: all batches were run.
Result<int> Run::evaluateAll(int index, int64_t step, EvaluationSums &sums) {
  Communicator &self = *world[index];
  for (uint64_t batch = 0; batch < evaluation->batches(); ++batch) {
    std::string mine;
    if (index == 0) {
      BusyScope busy(self);
      if (const int signal = options.stopSignal ? options.stopSignal->load() : 0; signal != 0)
        mine = std::to_string(signal);
      else
        TESSERA_RETURN_IF_ERROR(evaluation->read(batch));
    }
    TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all,
                             self.gatherBlobs(mine, "batch " + std::to_string(batch) +
                                                        " of the evaluation after step " + std::to_string(step)));
    for (const std::string &each : all)
      if (!each.empty())
        return std::atoi(each.c_str());
    TESSERA_RETURN_IF_ERROR(evaluation->run(batch, *sessions[index], step, sums));
  }
  return 0;
}

/// An evaluation that was due after the step that the run goes on from, and is not in its records, is made now: a
/// signal, or the end of a process, came before it.
Status Run::makeUpEvaluation(int index) {
  const int64_t step = firstStep - 1;
  if (step < 1 || !isEvaluated(step))
    return Status::ok();
  const bool isMissing = isRoot(index) && folder->lastStep() == step && !folder->hasEvaluation(step);
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all,
                           world[index]->gatherBlobs(isMissing ? "missing" : "", "evaluation of an earlier run"));
  for (const std::string &each : all)
    if (!each.empty())
      return evaluate(index, step);
  return Status::ok();
}

Status Run::evaluate(int index, int64_t step) {
  Clock::time_point begin = Clock::now();
  EvaluationSums sums;
  TESSERA_ASSIGN_OR_RETURN(const int signal, evaluateAll(index, step, sums));
  const bool isComplete = signal == 0;
  if (!isComplete && index == 0) {
    if (step == options.steps || options.evalOnly) // else the next step sees it
      stoppedBy = signal;
    if (hasRoot())
      log::warn("the evaluation after step {} was stopped", step);
  }
  if (!isComplete || !isRoot(index))
    return Status::ok();
  BusyScope busy(*world[index]);
  const EvaluationMetrics record = evaluation->metrics(step, sums, secondsSince(begin));
  if (!std::isfinite(record.loss))
    log::warn("the loss of the evaluation after step {} is not finite", step);
  if (metrics)
    TESSERA_RETURN_IF_ERROR(metrics->writeLine(evaluationToJson(record)));
  if (tensorBoard)
    TESSERA_RETURN_IF_ERROR(tensorBoard->write(record));
  std::printf("%s%s\n", options.evalOnly ? "" : lineStart(isRemote()).c_str(),
              evaluationLine(record, options.evalOnly ? 0 : options.steps).c_str());
  std::fflush(stdout);
  return Status::ok();
}

/// The state is there; nothing is trained or written.
Status Run::evaluateOnly(int index) {
  begun = true;
  if (isRoot(index))
    printEvaluated();
  TESSERA_RETURN_IF_ERROR(evaluate(index, static_cast<int64_t>(resumed[index].step)));
  return endTogether(index);
}

} // namespace tessera
