//===- Run.cpp - the steps of a training run -------------------------------===//

#include "runtime/step/Run.h"

#include "runtime/base/Log.h"
#include "runtime/state/FiniteState.h"
#include "runtime/step/StateTransfer.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tessera {
namespace {

/// What each rank tells of a step.
struct RankReport {
  RankTimes times;
  double seconds = 0, dataWait = 0, launcher = 0;
  StageMemory memory;

  std::string toBlob() const { return {reinterpret_cast<const char *>(this), sizeof(*this)}; }
  static RankReport fromBlob(const std::string &blob) {
    RankReport report;
    std::memcpy(&report, blob.data(), std::min(blob.size(), sizeof(report)));
    return report;
  }
};

/// What the leader of a process knows before a step: a signal that asks for the end, or why there are no data.
struct Wish {
  int signal = 0;
  StatusCode code = StatusCode::Ok;
  std::string message;

  std::string toBlob() const {
    const int head[2] = {signal, static_cast<int>(code)};
    return std::string(reinterpret_cast<const char *>(head), sizeof(head)) + message;
  }
  /// Ranks that are not leaders send nothing.
  static Wish fromBlob(const std::string &blob) {
    int head[2] = {};
    if (blob.size() < sizeof(head))
      return {};
    std::memcpy(head, blob.data(), sizeof(head));
    return {head[0], static_cast<StatusCode>(head[1]), blob.substr(sizeof(head))};
  }
};

} // namespace

/// A trace is for people: a training does not end for want of one.
void Run::writeTrace() const {
  const Status written =
      trace.write(folder->tracePath(firstRank()), [this](int stream) { return artifact->streamName(stream); });
  if (!written.isOk())
    log::warn("{}; the run goes on without it", written.message());
}

/// The first step of a run is not like the others; it is traced only if there are too few.
bool Run::isTraced(int64_t step) const {
  int64_t first = totalSteps - firstStep >= options.traceSteps ? firstStep + 1 : firstStep;
  return step >= first && step < first + options.traceSteps && step <= totalSteps;
}

/// The second step, or the only one.
bool Run::isSnapshot(int64_t step) const { return snapshot && step == std::min(firstStep + 1, totalSteps); }

std::vector<TraceSink *> Run::sinksOf(int64_t step) {
  std::vector<TraceSink *> sinks;
  if (isTraced(step))
    sinks.push_back(&trace);
  if (isSnapshot(step))
    sinks.push_back(&*snapshot);
  return sinks;
}

bool Run::isReported(int64_t step) const {
  if (step == firstStep || step == totalSteps)
    return true;
  const int64_t every = options.logEvery.value_or(10);
  return every > 0 && step % every == 0 && (options.logEvery || secondsSince(lastReported) >= 1.0);
}

/// " | 1m05s, 12m30s left": since the run said what it trains, and for the steps that remain at the mean pace of those
/// done.
std::string Run::timesSoFar(int64_t step) const {
  const double elapsed = secondsSince(stepsBegan);
  const std::string text = " | " + formatDuration(elapsed);
  const auto done = static_cast<double>(step - firstStep + 1), left = static_cast<double>(totalSteps - step);
  return left > 0 ? text + ", " + formatDuration(elapsed / done * left) + " left" : text;
}

/// Leaders read the batch; then all ranks agree whether there is a step.
Result<Run::EarlyEnd> Run::beginStep(int index, int64_t step) {
  Communicator &self = *world[index];
  std::string mine;
  if (index == 0) {
    BusyScope busy(self);
    if (lease && lease->isLost())
      return lease->check();
    Wish wish;
    wish.signal = options.stopSignal ? options.stopSignal->load() : 0;
    times->setNext(sinksOf(step));
    if (wish.signal == 0) {
      auto next = loader->next();
      wish.code = next.status().code();
      wish.message = next.status().message();
      if (next.isOk())
        batch = *std::move(next);
      faults.at("data", self.rank(), step);
    }
    mine = wish.toBlob();
  }
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> wishes,
                           self.gatherBlobs(mine, "data of step " + std::to_string(step)));
  // The first of each kind that any of the ranks has, so that all processes end alike.
  EarlyEnd end;
  for (size_t rank = 0; rank < wishes.size(); ++rank) {
    const Wish wish = Wish::fromBlob(wishes[rank]);
    if (end.signal == 0)
      end.signal = wish.signal;
    if (wish.code == StatusCode::Ok || !end.error.isOk())
      continue;
    end.error = static_cast<int>(rank) == self.rank() || !isRemote()
                    ? Status(wish.code, wish.message)
                    : TESSERA_ERROR(Aborted, "rank " + std::to_string(rank) + ": " + wish.message);
  }
  return end;
}

Status Run::trainStep(int index, int64_t step) {
  Session &session = *sessions[index];
  int rank = session.rank();
  double begin = threadSeconds();
  for (size_t tensor = 0; tensor < specs.size(); ++tensor)
    copyRankPart(specs[tensor], batch->tensors[tensor].data(), rankParts(*artifact, tensor, rank),
                 session.batchToWrite(tensor));
  schedule->apply(session, step, nonFinite[index].updateOf(step), nonFinite[index].ignores(), seed);
  StepOptions stepOptions;
  stepOptions.trace = &*times;
  if (dump->isWanted(step))
    dump->prepare(rank, states[index], stepOptions);
  faults.at("step", rank, step);
  TESSERA_RETURN_IF_ERROR(session.step(step, stepOptions));
  faults.flip(rank, step, states[index]);
  launcherSeconds[index] = session.lastIssued() - begin;
  return Status::ok();
}

/// All ranks meet after the step; rank 0 learns how it went for each.
Status Run::endStep(int index, int64_t step, Clock::time_point begin, double seconds) {
  Communicator &self = *world[index];
  RankReport mine{times->take(self.rank()), seconds, loader->waitSeconds(), launcherSeconds[index], {}};
  if (step == firstStep)
    mine.memory = memoryOf(index, stateBytes(artifact->package()),
                           memoryPlan(artifact->package(), artifact->training()).peakBytes);
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> reports,
                           self.gatherBlobs(mine.toBlob(), "end of step " + std::to_string(step)));
  Status goesOn = nonFinite[index].after(outcomeOf(index, step), isRoot(index));
  {
    // What follows may take long: reports, a dump, the wait for the checkpoint before.
    BusyScope busy(self);
    if (isRoot(index))
      TESSERA_RETURN_IF_ERROR(report(step, secondsSince(begin), reports));
    TESSERA_RETURN_IF_ERROR(writeDump(index, step));
    if (goesOn.isOk())
      return afterStep(index, step);
    if (index == 0)
      TESSERA_RETURN_IF_ERROR(checkpoints->finish());
  }
  return endNonFinite(index, goesOn);
}

StepOutcome Run::outcomeOf(int index, int64_t step) const {
  const Session &session = *sessions[index];
  StepOutcome outcome{step, session.resultValue(lossResult), {}, {}, schedule->learningRate(step)};
  if (normResult >= 0)
    outcome.gradNorm = session.resultValue(normResult);
  if (updatedResult >= 0)
    outcome.isUpdated = session.resultValue(updatedResult) != 0;
  return outcome;
}

/// Ends the run for `reason`, once the leaders have written the checkpoint that they were at.
Status Run::endNonFinite(int index, const Status &reason) {
  TESSERA_RETURN_IF_ERROR(world[index]->barrier("end of the run"));
  Result<std::string> newest = findCheckpoint(folder->checkpointFolder());
  std::string path = newest.isOk() ? *newest : checkpoint;
  return TESSERA_ERROR(InvalidArgument,
                       reason.message() +
                           (path.empty() ? "; there is no checkpoint" : "; the newest checkpoint is '" + path + "'"));
}

Status Run::report(int64_t step, double seconds, const std::vector<std::string> &reports) {
  StepMetrics record;
  const StepOutcome outcome = outcomeOf(0, step);
  record.step = step;
  record.loss = outcome.loss;
  if (outcome.loss == 0 && !hasToldZeroLoss && artifact->modelOption("loss") == "cross-entropy") {
    hasToldZeroLoss = true;
    log::warn(
        "the loss of step {} is 0: where all targets of a step are ignored, this is its loss, and PyTorch's is not "
        "a number",
        step);
  }
  record.gradNorm = outcome.gradNorm;
  record.learningRate = outcome.learningRate;
  record.isSkipped = nonFinite[0].hasSkipped();
  record.seconds = seconds;
  record.tokens = tokensPerStep;
  record.samples = samplesPerStep;
  record.hasPositions = hasPositions;
  RankTimes mean;
  double launcher = 0;
  double ranks = static_cast<double>(reports.size());
  for (const std::string &blob : reports) {
    RankReport rank = RankReport::fromBlob(blob);
    double host = std::max(0.0, rank.seconds - rank.dataWait - rank.times.compute - rank.times.exposed);
    // The wait of a rank that began before rank 0, which was at a checkpoint, is outside the step.
    double early = std::max(0.0, rank.seconds - seconds);
    for (double *part : {&host, &rank.times.exposed}) {
      const double cut = std::min(early, *part);
      *part -= cut;
      early -= cut;
    }
    mean.compute += rank.times.compute / ranks;
    mean.exposed += rank.times.exposed / ranks;
    mean.hidden += rank.times.hidden / ranks;
    launcher += rank.launcher / ranks;
    record.dataWaitSeconds += rank.dataWait / ranks;
    record.hostSeconds += host / ranks;
  }
  record.computeSeconds = mean.compute;
  if (numRanks() > 1) {
    record.exposedCommunicationSeconds = mean.exposed;
    record.hiddenCommunicationSeconds = mean.hidden;
  }
  if (sessions[0]->issuesAhead())
    record.launcherSeconds = launcher;
  if (flopsPerStep > 0)
    record.flops = flopsPerStep;
  if (peakFlops > 0)
    record.peakFlops = peakFlops;
  record.process = processMemory();
  if (step == firstStep) {
    std::vector<StageMemory> warm;
    warm.reserve(reports.size());
    for (const std::string &blob : reports)
      warm.push_back(RankReport::fromBlob(blob).memory);
    TESSERA_RETURN_IF_ERROR(reportStage("after warm-up", step, warm));
  }
  TESSERA_RETURN_IF_ERROR(metrics->write(record, memory));
  if (tensorBoard)
    TESSERA_RETURN_IF_ERROR(tensorBoard->write(record, memory));
  if (isReported(step)) {
    std::printf("%s%s%s\n", lineStart(isRemote()).c_str(), progressLine(record, totalSteps, memory).c_str(),
                timesSoFar(step).c_str());
    std::fflush(stdout);
    lastReported = Clock::now();
  }
  return Status::ok();
}

/// Of a step that ends the run, too: it is the one to look at.
Status Run::writeDump(int index, int64_t step) {
  if (index != 0 || !dump->isWanted(step))
    return Status::ok();
  std::vector<std::string> gradientStorage, storage;
  TESSERA_ASSIGN_OR_RETURN(std::vector<StagedState> staged, stageStates());
  TESSERA_ASSIGN_OR_RETURN(std::vector<RankState> gradients,
                           collectStates(index, dump->gradients(firstRank(), ranksHere()), gradientStorage));
  TESSERA_ASSIGN_OR_RETURN(std::vector<RankState> parameters, collectStates(index, viewsOf(staged), storage));
  if (!isRoot(index))
    return Status::ok();
  return dump->write(folder->dumpFolder(step), gradients, parameters, sessions[0]->resultValue(lossResult));
}

/// What is written after some of the steps: by rank 0 what there is one of, by leaders their part of a checkpoint.
Status Run::afterStep(int index, int64_t step) {
  if (index != 0)
    return Status::ok();
  TESSERA_RETURN_IF_ERROR(checkpoints->check()); // a full disk is reported now, not at the next checkpoint
  if (options.traceSteps > 0 && isTraced(step) && !isTraced(step + 1))
    writeTrace();
  if (isSnapshot(step) && isRoot(index))
    if (Status written =
            snapshot->write(folder->memoryPath(), artifact->package(), sessions[index]->memory().reservedBytes());
        !written.isOk())
      log::warn("{}; the run goes on without it", written.message());
  // A step that changed nothing has the state of an earlier one: its checkpoint would only push out others.
  // It is written after the next one that changed something.
  isCheckpointDue |= options.checkpointEvery > 0 && step % options.checkpointEvery == 0;
  if (isCheckpointDue && !nonFinite[index].hasSkipped()) {
    isCheckpointDue = false;
    return saveCheckpoint(step);
  }
  if (options.checkReplicas > 0 && step % options.checkReplicas == 0 && replicas->exist()) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<StagedState> staged, stageStates());
    return checkReplicas(step, viewsOf(staged));
  }
  return Status::ok();
}

Result<std::vector<RankState>> Run::collectStates(int index, const std::vector<RankState> &mine,
                                                  std::vector<std::string> &storage) const {
  if (!isRemote())
    return mine;
  return collectRankStates(*world[index], mine.front(), states[index], storage);
}

Status Run::runRank(int index) {
  Communicator &self = *world[index];
  TESSERA_RETURN_IF_ERROR(setUpRank(index));
  TESSERA_RETURN_IF_ERROR(self.barrier("set-up of the ranks"));
  if (options.evalOnly)
    return evaluateOnly(index);
  if (options.exportOnly)
    return exportOnly(index);
  if (index == 0) {
    BusyScope busy(self);
    TESSERA_RETURN_IF_ERROR(setUpProcess());
  }
  TESSERA_RETURN_IF_ERROR(self.barrier("begin of the run"));
  TESSERA_RETURN_IF_ERROR(reportSetUp(index));
  begun = true;
  TESSERA_ASSIGN_OR_RETURN(bool goesOn, makeUpEvaluation(index));
  int64_t reached = firstStep - 1;
  for (int64_t step = firstStep; goesOn && step <= totalSteps; ++step) {
    Clock::time_point begin = Clock::now();
    TESSERA_ASSIGN_OR_RETURN(EarlyEnd end, beginStep(index, step));
    if (end.isWanted()) {
      if (index == 0)
        lastStep = step - 1;
      return finishEarly(index, end);
    }
    TESSERA_RETURN_IF_ERROR(trainStep(index, step));
    TESSERA_RETURN_IF_ERROR(endStep(index, step, begin, secondsSince(begin)));
    reached = step;
    if (isEvaluated(step)) {
      TESSERA_ASSIGN_OR_RETURN(goesOn, evaluate(index, step));
    }
  }
  if (index == 0)
    reachedStep = reached;
  TESSERA_RETURN_IF_ERROR(finish(index));
  // No rank has succeeded before rank 0 has written the final weights.
  return endTogether(index);
}

} // namespace tessera
