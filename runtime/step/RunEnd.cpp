//===- RunEnd.cpp - what a run leaves behind ------------------------------===//
//
// Checkpoints, the comparison of replicas before them, and the ways in which a run
// ends early.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Log.h"
#include "runtime/step/Run.h"
#include "runtime/step/StateTransfer.h"

#include <cstdio>
#include <filesystem>

namespace tessera {

Result<std::vector<StagedState>> Run::stageStates(bool reads) const {
  std::vector<StagedState> staged;
  for (size_t index = 0; index < sessions.size(); ++index) {
    TESSERA_ASSIGN_OR_RETURN(StagedState made, StagedState::create(*sessions[index], states[index], reads));
    staged.push_back(std::move(made));
  }
  return staged;
}

uint64_t Run::dataPositionAfter(int64_t step) const {
  return firstSample + static_cast<uint64_t>((step - firstStep + 1) * rowsPerStep(specs));
}

Status Run::saveCheckpoint(int64_t step, bool isForBest) {
  CheckpointInfo info;
  info.step = static_cast<uint64_t>(step);
  info.dataPosition = dataPositionAfter(step);
  info.seed = seed;
  info.mesh = artifact->mesh();
  nonFinite[0].save(info);
  info.extra = dataOrder();
  info.extra["data"] = options.data;
  info.extra["artifact"] = options.artifact;
  if (evaluation)
    info.extra["content of evaluations"] = evaluation->dataFingerprint();
  info.extra.merge(courseAt(step));
  if (isForBest)
    info.extra[bestKey] = "yes";
  lastCheckpoint = step;
  TESSERA_ASSIGN_OR_RETURN(std::vector<StagedState> staged, stageStates());
  std::vector<RankState> views = viewsOf(staged);
  TESSERA_RETURN_IF_ERROR(checkReplicas(step, views)); // what is damaged must not replace what is not
  return checkpoints->save(info, views);
}

/// Once for a step: nothing changes the state before the next one.
Status Run::checkReplicas(int64_t step, const std::vector<RankState> &views) {
  if (!replicas->exist() || lastCompared == step)
    return Status::ok();
  if (Status same = replicas->compare(step, views, firstRank(), *world.front()); !same.isOk()) {
    // All processes come here: the checkpoint that they are writing is the one to go on from.
    if (Status written = checkpoints->finish(); !written.isOk())
      return same.withContext(written.message());
    return same;
  }
  lastCompared = step;
  return Status::ok();
}

Status Run::finish(int index) {
  if (index != 0)
    return Status::ok();
  BusyScope busy(*world[index]);
  // One whose last evaluation was stopped makes it up when it goes on, for which it needs a checkpoint.
  if ((options.checkpointEvery > 0 || options.keepsBest || stoppedBy != 0) && lastCheckpoint != reachedStep)
    TESSERA_RETURN_IF_ERROR(saveCheckpoint(reachedStep));
  TESSERA_RETURN_IF_ERROR(checkpoints->finish());
  if (options.keepsBest && stoppedBy != 0) { // which step is the best is not known yet
    if (isRoot(index))
      std::printf("stopped in the evaluation after step %lld; go on with --resume %s\n",
                  static_cast<long long>(reachedStep), options.out.c_str());
    return Status::ok();
  }
  removeSuperseded();
  if (options.keepsBest && !options.noExport && !options.exportsLastStep)
    TESSERA_RETURN_IF_ERROR(loadBest());
  if (!options.noExport)
    TESSERA_RETURN_IF_ERROR(exportWeights(index));
  if (!isRoot(index))
    return Status::ok();
  return folder->recordEnd(reachedStep, exportedStep(), options.keepsBest ? history.bestStep : std::nullopt);
}

/// Keeps the steps that were done: the run can be resumed even if it was to have no checkpoints.
Status Run::leaveResumable() {
  if (lastCheckpoint != lastStep)
    TESSERA_RETURN_IF_ERROR(saveCheckpoint(lastStep));
  TESSERA_RETURN_IF_ERROR(checkpoints->finish());
  if (lastStep >= firstStep && isTraced(lastStep) && isTraced(lastStep + 1)) // the steps that were to be traced go on
    writeTrace();
  if (firstRank() != 0)
    return Status::ok();
  std::string text = "stopped before the first step";
  if (lastStep > 0 && lastStep < firstStep) {
    text = "stopped after step " + std::to_string(lastStep) + "; go on with --resume " + checkpoint;
  } else if (lastStep > 0) {
    // A state that is not finite has no checkpoint.
    Result<std::string> newest = findCheckpoint(folder->checkpointFolder());
    bool isWhole = newest.isOk() && std::filesystem::path(*newest).filename() == checkpointName(lastStep);
    text = "stopped after step " + std::to_string(lastStep) +
           (isWhole         ? "; go on with --resume " + options.out
            : newest.isOk() ? ", which has no checkpoint; the newest is '" + *newest + "'"
                            : "; there is no checkpoint");
  }
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
  return Status::ok();
}

Status Run::finishEarly(int index, const EarlyEnd &end) {
  Status left;
  if (index == 0) {
    BusyScope busy(*world[index]);
    stoppedBy = end.signal;
    left = leaveResumable();
  }
  if (!left.isOk() && !end.error.isOk())
    return TESSERA_ERROR(IoError, end.error.message() + "; moreover, " + left.message());
  TESSERA_RETURN_IF_ERROR(left);
  // Nobody ends the run before all have saved their part.
  TESSERA_RETURN_IF_ERROR(endTogether(index));
  return end.error;
}

/// All has been written: what then fails on the way out is not the run's failure.
Status Run::endTogether(int index) {
  TESSERA_RETURN_IF_ERROR(world[index]->barrier("end of the run"));
  if (Status left = sessions[index]->leave(); !left.isOk())
    log::warn("rank {}: the run is complete, but its devices did not disconnect cleanly: {}", world[index]->rank(),
              left.message());
  return Status::ok();
}

} // namespace tessera
