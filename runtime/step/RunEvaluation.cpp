//===- RunEvaluation.cpp - evaluations of a training run -------------------===//

#include "runtime/base/Log.h"
#include "runtime/data/TokenizedData.h"
#include "runtime/state/CheckpointFolder.h"
#include "runtime/step/Run.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>

namespace tessera {

Status Run::openEvaluation() {
  evalData = options.evalData == "none" ? "" : options.evalData;
  if (options.evalData.empty() && !options.trainsNothing()) {
    TESSERA_ASSIGN_OR_RETURN(const std::optional<TokenizedData> data, TokenizedData::read(options.data));
    const bool hasValidation = data && data->splits.count("valid") != 0;
    if (hasValidation && artifact->findProgram(artifact::ProgramKind::Evaluate))
      evalData = options.data;
    else if (hasValidation && hasRoot())
      log::info("the split 'valid' of '{}' is not evaluated: artifact '{}' was compiled without --evaluate",
                options.data, options.artifact);
  }
  if (evalData.empty()) {
    if (options.evalEvery > 0 || options.evalBatches > 0 || options.evalOnly || options.keepsBest)
      return TESSERA_ERROR(InvalidArgument,
                           "--eval-every, --eval-batches, --eval-only, --keep-best and --patience need "
                           "--eval-data, or --data with a split 'valid', and an artifact that was "
                           "compiled with --evaluate");
    return Status::ok();
  }
  if (options.keepsBest && options.evalEvery == 0 && options.epochs == 0)
    return TESSERA_ERROR(InvalidArgument,
                         "--keep-best and --patience need several evaluations: --eval-every, or --epochs");
  EvaluationOptions asked;
  asked.data = evalData;
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
  if (!evaluation)
    return false;
  return step == totalSteps ||
         (options.evalEvery > 0 ? step % options.evalEvery == 0 : options.epochs > 0 && endsEpoch(step));
}

/// Whether the first sample behind the step is of another epoch than the first one of the step.
bool Run::endsEpoch(int64_t step) const {
  return dataPositionAfter(step) / epochSamples != dataPositionAfter(step - 1) / epochSamples;
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
Result<bool> Run::makeUpEvaluation(int index) {
  const int64_t step = firstStep - 1;
  if (step < 1 || !isEvaluated(step))
    return judge(index, step, std::nullopt);
  const bool isMissing = isRoot(index) && folder->lastStep() == step && !folder->hasEvaluation(step);
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all,
                           world[index]->gatherBlobs(isMissing ? "missing" : "", "evaluation of an earlier run"));
  for (const std::string &each : all)
    if (!each.empty())
      return evaluate(index, step);
  return judge(index, step, std::nullopt);
}

Result<bool> Run::evaluate(int index, int64_t step) {
  Clock::time_point begin = Clock::now();
  EvaluationSums sums;
  TESSERA_ASSIGN_OR_RETURN(const int signal, evaluateAll(index, step, sums));
  const bool isComplete = signal == 0;
  if (!isComplete && index == 0) {
    if (step == totalSteps || options.evalOnly) // else the next step sees it
      stoppedBy = signal;
    if (hasRoot())
      log::warn("the evaluation after step {} was stopped", step);
  }
  if (!isComplete)
    return true;
  std::optional<double> loss;
  if (isRoot(index)) {
    BusyScope busy(*world[index]);
    const EvaluationMetrics record = evaluation->metrics(step, sums, secondsSince(begin));
    loss = record.loss;
    if (!std::isfinite(record.loss))
      log::warn("the loss of the evaluation after step {} is not finite", step);
    if (metrics)
      TESSERA_RETURN_IF_ERROR(metrics->writeLine(evaluationToJson(record)));
    if (tensorBoard)
      TESSERA_RETURN_IF_ERROR(tensorBoard->write(record));
    std::printf("%s%s\n", options.evalOnly ? "" : lineStart(isRemote()).c_str(),
                evaluationLine(record, options.evalOnly ? 0 : totalSteps).c_str());
    std::fflush(stdout);
  }
  return judge(index, step, loss);
}

/// What rank 0 finds of an evaluation, or, without one, of those before: whether it is the best one, and whether the
/// run goes on.
Result<bool> Run::judge(int index, int64_t step, std::optional<double> loss) {
  if (!options.keepsBest || options.trainsNothing())
    return true;
  std::string verdict;
  if (isRoot(index)) {
    verdict = loss && history.add(step, *loss) ? "best" : history.isOver(options.patience) ? "over" : "goes on";
    if (verdict == "over" && step < totalSteps) {
      const std::string than = history.bestStep
                                   ? fmt::format("below {:.4f}, that of step {}", history.bestLoss, *history.bestStep)
                                   : std::string("that is finite");
      std::printf("%s%lld evaluations without a loss %s: the run ends\n", lineStart(isRemote()).c_str(),
                  static_cast<long long>(history.sinceBest), than.c_str());
      std::fflush(stdout);
    }
  }
  TESSERA_RETURN_IF_ERROR(
      world[index]->broadcast(verdict, 0, "verdict on the evaluation after step " + std::to_string(step)));
  if (verdict == "best" && index == 0)
    TESSERA_RETURN_IF_ERROR(keepBest(step));
  return verdict != "over";
}

/// The leaders write the state, unless they do or did so already.
Status Run::keepBest(int64_t step) {
  BusyScope busy(*world.front());
  removeSuperseded();
  bestStep = step;
  if (lastCheckpoint != step) {
    keptForBest.push_back(step);
    return saveCheckpoint(step, /*isForBest=*/true);
  }
  // Its checkpoint may have got its name before it was known to be the best one.
  const std::filesystem::path path = folder->checkpointFolder() + "/" + checkpointName(static_cast<uint64_t>(step));
  std::error_code error;
  return hasRoot() && std::filesystem::exists(path, error) ? makeBest(path) : Status::ok();
}

/// Removes checkpoints that were written as the best ones and are so no more, once another one has its name.
void Run::removeSuperseded() {
  const std::optional<uint64_t> best = hasRoot() ? bestCheckpoint(folder->checkpointFolder()) : std::nullopt;
  std::erase_if(keptForBest, [&](int64_t step) {
    // A later one may be in the making.
    const bool isSuperseded = best && step < static_cast<int64_t>(*best);
    if (isSuperseded)
      removeCheckpoint(folder->checkpointFolder(), static_cast<uint64_t>(step));
    return isSuperseded;
  });
}

bool Run::isPatienceOver(int64_t step) const {
  return EvaluationHistory::of(RunFolder(options.out).evaluations(), step).isOver(options.patience);
}

/// What a run that goes on knows of the evaluations before, if the best checkpoint is still there.
Status Run::readHistory() {
  if (!options.keepsBest)
    return Status::ok();
  if (!checkpoint.empty())
    history = EvaluationHistory::of(folder->evaluations(), firstStep - 1);
  if (!history.bestStep) {
    forgetBest(folder->checkpointFolder());
    return Status::ok();
  }
  const std::filesystem::path path =
      std::filesystem::path(folder->checkpointFolder()) / checkpointName(static_cast<uint64_t>(*history.bestStep));
  const Result<Manifest> manifest = readManifest((path / manifestName).string());
  if (!manifest.isOk()) {
    log::warn("'{}', of the lowest loss of evaluations so far, is not there: the best checkpoint is that of the "
              "evaluations to come",
              path.string());
    history = {};
    forgetBest(folder->checkpointFolder());
    return Status::ok();
  }
  bestStep = *history.bestStep;
  if (manifest->info.extra.contains(bestKey))
    keptForBest.push_back(*history.bestStep);
  return makeBest(path);
}

/// Brings the state of the best step back, to export it.
Status Run::loadBest() {
  std::string step; // empty: there is none
  if (hasRoot() && history.bestStep) {
    const std::optional<uint64_t> best = bestCheckpoint(folder->checkpointFolder());
    if (best && static_cast<int64_t>(*best) == *history.bestStep)
      step = std::to_string(*best);
  }
  if (isRemote())
    TESSERA_RETURN_IF_ERROR(world.front()->broadcast(step, 0, "best step"));
  if (step.empty())
    return TESSERA_ERROR(NotFound,
                         fmt::format("no checkpoint of the lowest loss of evaluations is there, so that its weights "
                                     "are not exported: the same command with --resume auto and --export-step last "
                                     "exports those of step {}",
                                     reachedStep));
  if (std::atoll(step.c_str()) == reachedStep)
    return Status::ok();
  bestStep = std::atoll(step.c_str());
  const std::string path = folder->checkpointFolder() + "/" + checkpointName(static_cast<uint64_t>(bestStep.load()));
  TESSERA_ASSIGN_OR_RETURN(std::vector<StagedState> staged, stageStates(/*reads=*/false));
  TESSERA_RETURN_IF_ERROR(loadCheckpoint(path, viewsOf(staged)).status());
  for (StagedState &state : staged)
    TESSERA_RETURN_IF_ERROR(state.write());
  exportsBest = true;
  return Status::ok();
}

/// The state is there; nothing is trained or written.
Status Run::evaluateOnly(int index) {
  begun = true;
  if (isRoot(index))
    printEvaluated();
  TESSERA_RETURN_IF_ERROR(evaluate(index, static_cast<int64_t>(resumed[index].step)).status());
  return endTogether(index);
}

} // namespace tessera
