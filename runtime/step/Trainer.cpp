//===- Trainer.cpp - a whole training run in one process -------------------===//

#include "runtime/step/Trainer.h"

#include "runtime/base/Log.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/data/Loader.h"
#include "runtime/state/Checkpoint.h"
#include "runtime/state/Init.h"
#include "runtime/state/Weights.h"
#include "runtime/step/Dump.h"
#include "runtime/step/Session.h"
#include "runtime/telemetry/ChromeTrace.h"
#include "runtime/telemetry/RunFolder.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double modelNumber(const Artifact &artifact, const std::string &key) {
  return std::strtod(artifact.modelOption(key).c_str(), nullptr);
}

class Run {
public:
  explicit Run(const TrainOptions &options) : options(options) {}

  /// Everything that can be refused before memory is taken.
  Status open();
  Status runRank(int rank);

  bool isStopped() const { return stopping; }
  int numRanks() const { return static_cast<int>(artifact->numRanks()); }
  Communicator &communicator(int rank) { return *world[rank]; }

private:
  Status checkExport() const;
  Status setUpRank(int rank);
  Status setUpShared();
  Status trainStep(int rank, int64_t step);
  Status afterStep(int64_t step, double seconds);
  Status saveCheckpoint(int64_t step);
  Status finish();
  Status finishEarly();
  void printHead() const;
  bool isTraced(int64_t step) const;

  const TrainOptions options;
  std::shared_ptr<const Artifact> artifact;
  std::vector<BatchSpec> specs;
  std::unique_ptr<SampleSource> samples;
  std::unique_ptr<WeightSource> weights;
  std::string checkpoint; ///< to resume; empty: none
  std::optional<double> unigramEntropy;
  std::optional<Schedule> schedule;
  std::optional<RunFolder> folder;
  std::optional<StepDump> dump;
  uint64_t seed = 0;
  double tokensPerStep = 0, flopsPerStep = 0;

  std::vector<std::unique_ptr<Communicator>> world;
  std::vector<std::unique_ptr<Session>> sessions; ///< by rank; destroyed after all threads have ended
  std::vector<RankState> states;                  ///< by rank
  std::vector<CheckpointInfo> resumed;            ///< by rank, what each read

  // Rank 0's, except that all read `batch` and pass events to `exposed` between the barriers of a step.
  std::unique_ptr<Loader> loader;
  std::shared_ptr<const HostBatch> batch;
  std::unique_ptr<MetricsWriter> metrics;
  std::unique_ptr<CheckpointWriter> checkpoints;
  std::optional<ExposedTime> exposed;
  ChromeTrace trace;
  MemorySummary memory;
  int64_t firstStep = 1, lastStep = 0, lastCheckpoint = 0;
  int lossResult = -1, normResult = -1;
  bool hasWarned = false;
  bool stopping = false; ///< written by rank 0 before the barrier that begins a step
};

Status Run::open() {
  if (options.steps < 1)
    return TESSERA_ERROR(InvalidArgument, "--steps must be at least 1, got " + std::to_string(options.steps));
  TESSERA_RETURN_IF_ERROR(checkExport());
  TESSERA_ASSIGN_OR_RETURN(artifact, Artifact::open(options.artifact));
  if (options.ranks > 0 && options.ranks != numRanks())
    return TESSERA_ERROR(InvalidArgument, "artifact '" + options.artifact + "' is for " + std::to_string(numRanks()) +
                                              " ranks, --ranks asks for " + std::to_string(options.ranks));
  TESSERA_ASSIGN_OR_RETURN(schedule, Schedule::create(*artifact, options.steps, options.schedule));
  TESSERA_ASSIGN_OR_RETURN(std::set<std::string> kinds, StepDump::parseKinds(options.dump));
  if (!kinds.empty() && options.dumpStep > options.steps)
    return TESSERA_ERROR(InvalidArgument, "--dump-step is " + std::to_string(options.dumpStep) +
                                              ", but --steps ends at " + std::to_string(options.steps));
  dump.emplace(*artifact, std::move(kinds), options.dumpStep);
  TESSERA_ASSIGN_OR_RETURN(specs, batchSpecs(*artifact));
  TESSERA_ASSIGN_OR_RETURN(samples, openSamples(options.data, specs, {options.textField, options.tokenBytes}));
  if (Result<double> entropy = samples->unigramEntropy(); entropy.isOk())
    unigramEntropy = *entropy;
  else if (entropy.status().code() != StatusCode::Unsupported)
    return entropy.status();
  if (!options.weights.empty()) {
    TESSERA_ASSIGN_OR_RETURN(weights, WeightSource::open(options.weights));
  }
  if (!options.resume.empty()) {
    std::string inRun = options.resume + "/checkpoints";
    TESSERA_ASSIGN_OR_RETURN(checkpoint, findCheckpoint(std::filesystem::is_directory(inRun) ? inRun : options.resume));
  }
  for (size_t result = 0; artifact->program().results() && result < artifact->program().results()->size(); ++result) {
    const artifact::ResultTensor &entry = *artifact->program().results()->Get(static_cast<uint32_t>(result));
    if (entry.role() == artifact::ResultRole::Loss && lossResult < 0)
      lossResult = static_cast<int>(result);
    else if (entry.role() == artifact::ResultRole::Metric && entry.name()->string_view() == "grad_norm")
      normResult = static_cast<int>(result);
  }
  if (lossResult < 0)
    return TESSERA_ERROR(DataLoss, "artifact '" + options.artifact + "' has no loss");
  flopsPerStep = modelNumber(*artifact, "flops_per_step");
  tokensPerStep = modelNumber(*artifact, "tokens_per_step");
  if (tokensPerStep <= 0 && !specs.empty())
    tokensPerStep = static_cast<double>(specs.front().rows());
  TESSERA_ASSIGN_OR_RETURN(folder, RunFolder::create(options.out, !checkpoint.empty()));
  world = createLocalWorld(numRanks(), {options.stallTimeoutSeconds});
  sessions.resize(world.size());
  states.resize(world.size());
  resumed.resize(world.size());
  return Status::ok();
}

/// The weights are written after the last step: a path that cannot work must not cost the whole run.
Status Run::checkExport() const {
  if (options.exportPath.empty())
    return Status::ok();
  std::filesystem::path path(options.exportPath);
  std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  if (std::filesystem::is_directory(path))
    return TESSERA_ERROR(InvalidArgument, "--export: '" + options.exportPath + "' is a folder, expected a file");
  // The run folder is made below.
  if (std::filesystem::path(options.out).lexically_normal() == std::filesystem::path(parent).lexically_normal())
    return Status::ok();
  if (!std::filesystem::is_directory(parent))
    return TESSERA_ERROR(InvalidArgument, "--export: there is no folder '" + parent + "'");
  if (access(parent.c_str(), W_OK) != 0)
    return TESSERA_ERROR(InvalidArgument, "--export: the folder '" + parent + "' is not writable");
  return Status::ok();
}

Status Run::setUpRank(int rank) {
  SessionOptions sessionOptions{options.threads, numRanks()};
  TESSERA_ASSIGN_OR_RETURN(sessions[rank], Session::create(artifact, *world[rank], sessionOptions));
  Session &session = *sessions[rank];
  TESSERA_ASSIGN_OR_RETURN(
      states[rank], makeRankState(*artifact, rank, [&](size_t state) { return session.stateBuffer(state).data; }));
  const RankState &state = states[rank];
  if (!checkpoint.empty()) {
    TESSERA_ASSIGN_OR_RETURN(resumed[rank], loadCheckpoint(checkpoint, {state}));
    return Status::ok();
  }
  clearState(state);
  uint64_t initialSeed = options.seed.value_or(0);
  if (weights)
    return loadWeights(state, *weights, initialSeed);
  return initialiseState(state, initialSeed);
}

Status Run::setUpShared() {
  const CheckpointInfo &info = resumed[0];
  seed = options.seed.value_or(checkpoint.empty() ? 0 : info.seed);
  if (!checkpoint.empty()) {
    firstStep = static_cast<int64_t>(info.step) + 1;
    if (firstStep > options.steps)
      return TESSERA_ERROR(InvalidArgument, "checkpoint '" + checkpoint + "' is at step " + std::to_string(info.step) +
                                                ", --steps ends at " + std::to_string(options.steps));
    if (dump->isWantedBefore(firstStep))
      return TESSERA_ERROR(InvalidArgument, "--dump-step is " + std::to_string(options.dumpStep) +
                                                ", but the run goes on at step " + std::to_string(firstStep));
  }
  lastCheckpoint = firstStep - 1;
  LoaderOptions loaderOptions;
  loaderOptions.seed = seed;
  loaderOptions.position = info.dataPosition;
  loaderOptions.shuffle = options.shuffle;
  uint64_t numSamples = samples->samples();
  TESSERA_ASSIGN_OR_RETURN(loader, Loader::create(std::move(samples), specs, loaderOptions));
  memory.plan = memoryPlan(artifact->program());
  memory.ranksInProcess = numRanks();
  for (const std::unique_ptr<Session> &session : sessions)
    memory.allocatedBytes += session->memory().allocatedBytes + session->memory().workspaceBytes;

  RunInfo runInfo;
  runInfo.commandLine = options.commandLine;
  runInfo.settings = options.settings;
  runInfo.settings["seed"] = std::to_string(seed);
  runInfo.ranksInProcess = numRanks();
  runInfo.threadsPerRank = sessions[0]->threads();
  runInfo.unigramEntropy = unigramEntropy;
  runInfo.samples = numSamples;
  std::optional<int64_t> resumedStep;
  if (!checkpoint.empty())
    resumedStep = firstStep - 1;
  runInfo.resumedStep = resumedStep;
  TESSERA_RETURN_IF_ERROR(folder->writeRunInfo(*artifact, runInfo));
  TESSERA_ASSIGN_OR_RETURN(metrics, MetricsWriter::open(folder->metricsPath(), resumedStep));
  if (options.checkpointEvery > 0)
    checkpoints =
        std::make_unique<CheckpointWriter>(CheckpointOptions{folder->checkpointFolder(), options.keepCheckpoints});
  if (numRanks() > 1)
    exposed.emplace(numRanks());
  printHead();
  return Status::ok();
}

void Run::printHead() const {
  std::printf("%s: %d rank%s x %d threads, %s planned per rank, %llu samples", options.artifact.c_str(), numRanks(),
              numRanks() == 1 ? "" : "s", sessions[0]->threads(), formatBytes(memory.plan.arenaBytes).c_str(),
              static_cast<unsigned long long>(loader->samples()));
  if (unigramEntropy)
    std::printf(", unigram entropy %.4f", *unigramEntropy);
  std::printf("\n");
  if (!checkpoint.empty())
    std::printf("resumed from %s after step %lld\n", checkpoint.c_str(), static_cast<long long>(firstStep - 1));
  std::fflush(stdout);
}

/// The first step of a run is not like the others; it is traced only if there are too few.
bool Run::isTraced(int64_t step) const {
  int64_t first = options.steps - firstStep >= options.traceSteps ? firstStep + 1 : firstStep;
  return step >= first && step < first + options.traceSteps && step <= options.steps;
}

Status Run::trainStep(int rank, int64_t step) {
  Session &session = *sessions[rank];
  for (size_t index = 0; index < specs.size(); ++index) {
    int group = artifact->program().batch()->Get(static_cast<uint32_t>(index))->shard_group();
    copyRankPart(specs[index], batch->tensors[index].data(), artifact->groupSize(group),
                 artifact->positionInGroup(group, rank), session.batchBuffer(index).data);
  }
  TESSERA_RETURN_IF_ERROR(schedule->apply(session, step, seed));
  StepOptions stepOptions;
  if (exposed)
    stepOptions.trace = &*exposed;
  else if (isTraced(step))
    stepOptions.trace = &trace;
  if (dump->isWanted(step))
    dump->prepare(rank, states[rank], stepOptions);
  return session.step(step, stepOptions);
}

Status Run::afterStep(int64_t step, double seconds) {
  StepMetrics record;
  record.step = step;
  record.loss = sessions[0]->resultValue(lossResult);
  if (normResult >= 0)
    record.gradNorm = sessions[0]->resultValue(normResult);
  record.learningRate = schedule->learningRate(step);
  record.seconds = seconds;
  record.tokens = tokensPerStep;
  record.dataWaitSeconds = loader->waitSeconds();
  if (exposed)
    record.exposedCommunicationSeconds = exposed->takeMeanSeconds();
  if (flopsPerStep > 0)
    record.flops = flopsPerStep;
  if (options.peakFlops > 0)
    record.peakFlops = options.peakFlops;
  record.process = processMemory();
  TESSERA_RETURN_IF_ERROR(metrics->write(record, memory));
  if (step == firstStep || step == options.steps || (options.logEvery > 0 && step % options.logEvery == 0)) {
    std::printf("%s\n", progressLine(record, options.steps, memory).c_str());
    std::fflush(stdout);
  }
  if (!std::isfinite(record.loss) && !hasWarned) {
    log::warn("the loss of step {} is not finite", step);
    hasWarned = true;
  }
  if (dump->isWanted(step))
    TESSERA_RETURN_IF_ERROR(dump->write(options.out + "/dump-" + std::to_string(step), states, record.loss));
  if (options.traceSteps > 0 && isTraced(step) && !isTraced(step + 1))
    TESSERA_RETURN_IF_ERROR(trace.write(folder->tracePath()));
  if (checkpoints && step % options.checkpointEvery == 0)
    return saveCheckpoint(step);
  return Status::ok();
}

Status Run::saveCheckpoint(int64_t step) {
  CheckpointInfo info;
  info.step = static_cast<uint64_t>(step);
  info.dataPosition = loader->position();
  info.seed = seed;
  info.mesh = artifact->mesh();
  info.extra["data"] = options.data;
  info.extra["artifact"] = options.artifact;
  lastCheckpoint = step;
  return checkpoints->save(info, states);
}

Status Run::finish() {
  if (checkpoints) {
    if (lastCheckpoint != options.steps)
      TESSERA_RETURN_IF_ERROR(saveCheckpoint(options.steps));
    TESSERA_RETURN_IF_ERROR(checkpoints->finish());
  }
  if (options.noExport)
    return Status::ok();
  std::string path = options.exportPath.empty() ? folder->modelPath() : options.exportPath;
  return exportParameters(path, states, {{"step", std::to_string(options.steps)}});
}

/// Keeps the steps that were done: the run can be resumed even if it was to have no checkpoints.
Status Run::finishEarly() {
  if (!checkpoints)
    checkpoints =
        std::make_unique<CheckpointWriter>(CheckpointOptions{folder->checkpointFolder(), options.keepCheckpoints});
  if (lastCheckpoint != lastStep)
    TESSERA_RETURN_IF_ERROR(saveCheckpoint(lastStep));
  TESSERA_RETURN_IF_ERROR(checkpoints->finish());
  if (lastStep >= firstStep && isTraced(lastStep) && isTraced(lastStep + 1)) // the steps that were to be traced go on
    TESSERA_RETURN_IF_ERROR(trace.write(folder->tracePath()));
  if (lastStep == 0)
    std::printf("stopped before the first step\n");
  else
    std::printf("stopped after step %lld; go on with --resume %s\n", static_cast<long long>(lastStep),
                lastStep < firstStep ? checkpoint.c_str() : options.out.c_str());
  return Status::ok();
}

Status Run::runRank(int rank) {
  Communicator &self = *world[rank];
  TESSERA_RETURN_IF_ERROR(setUpRank(rank));
  TESSERA_RETURN_IF_ERROR(self.barrier("set-up of the ranks"));
  if (rank == 0)
    TESSERA_RETURN_IF_ERROR(setUpShared());
  TESSERA_RETURN_IF_ERROR(self.barrier("begin of the run"));
  for (int64_t step = firstStep; step <= options.steps; ++step) {
    Clock::time_point begin = Clock::now();
    if (rank == 0 && options.stopSignal && options.stopSignal->load() != 0) {
      lastStep = step - 1;
      stopping = true;
    } else if (rank == 0) {
      if (exposed)
        exposed->setNext(isTraced(step) ? &trace : nullptr);
      TESSERA_ASSIGN_OR_RETURN(batch, loader->next());
    }
    TESSERA_RETURN_IF_ERROR(self.barrier("data of step " + std::to_string(step)));
    if (stopping)
      return rank == 0 ? finishEarly() : Status::ok();
    TESSERA_RETURN_IF_ERROR(trainStep(rank, step));
    TESSERA_RETURN_IF_ERROR(self.barrier("end of step " + std::to_string(step)));
    if (rank == 0)
      TESSERA_RETURN_IF_ERROR(afterStep(step, secondsSince(begin)));
  }
  return rank == 0 ? finish() : Status::ok();
}

/// How long ranks have to notice that the run has failed, before they are taken to be stuck.
constexpr std::chrono::seconds abortGrace{10};

} // namespace

Result<TrainOutcome> train(const TrainOptions &options) {
  auto run = std::make_shared<Run>(options);
  TESSERA_RETURN_IF_ERROR(run->open());

  struct Progress {
    std::mutex mutex;
    std::condition_variable changed;
    int running;
    bool hasFailed = false;
  };
  auto progress = std::make_shared<Progress>();
  progress->running = run->numRanks();
  std::vector<std::thread> threads;
  threads.reserve(run->numRanks());
  for (int rank = 0; rank < run->numRanks(); ++rank)
    threads.emplace_back([run, progress, rank] {
      Status status = run->runRank(rank);
      if (!status.isOk())
        run->communicator(rank).abort(status);
      std::lock_guard<std::mutex> lock(progress->mutex);
      --progress->running;
      progress->hasFailed |= !status.isOk();
      progress->changed.notify_all();
    });

  std::unique_lock<std::mutex> lock(progress->mutex);
  progress->changed.wait(lock, [&] { return progress->running == 0 || progress->hasFailed; });
  bool allEnded = progress->changed.wait_for(lock, abortGrace, [&] { return progress->running == 0; });
  lock.unlock();
  for (std::thread &thread : threads)
    allEnded ? thread.join() : thread.detach(); // a stuck rank keeps `run` alive
  TESSERA_RETURN_IF_ERROR(run->communicator(0).abortReason());
  return TrainOutcome{run->isStopped()};
}

} // namespace tessera
