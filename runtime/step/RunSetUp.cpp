//===- RunSetUp.cpp - what comes before the first step ---------------------===//

#include "runtime/base/Log.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/state/Init.h"
#include "runtime/step/Run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace tessera {

static double modelNumber(const Artifact &artifact, const std::string &key) {
  return std::strtod(artifact.modelOption(key).c_str(), nullptr);
}

Run::Run(const TrainOptions &options, std::unique_ptr<Communicator> connection) : options(options) {
  if (connection)
    world.push_back(std::move(connection));
}

Status Run::open() {
  if (options.steps < 1)
    return TESSERA_ERROR(InvalidArgument, "--steps must be at least 1, got " + std::to_string(options.steps));
  if (!options.weights.empty() && !options.resume.empty() && !options.resumesAuto())
    return TESSERA_ERROR(InvalidArgument, "--weights starts a run and --resume continues one: give one of "
                                          "them, or --resume auto");
  if (options.evalOnly && options.resumesAuto())
    return TESSERA_ERROR(InvalidArgument, "--eval-only needs a checkpoint, not --resume auto");
  TESSERA_RETURN_IF_ERROR(checkExport());
  TESSERA_ASSIGN_OR_RETURN(artifact, Artifact::open(options.artifact));
  if (options.ranks > 0 && options.ranks != numRanks())
    return TESSERA_ERROR(InvalidArgument, "artifact '" + options.artifact + "' is for " + std::to_string(numRanks()) +
                                              " ranks, --ranks asks for " + std::to_string(options.ranks));
  if (!world.empty() && world.front()->numRanks() != numRanks())
    return TESSERA_ERROR(InvalidArgument, "artifact '" + options.artifact + "' is for " + std::to_string(numRanks()) +
                                              " ranks, but " + std::to_string(world.front()->numRanks()) +
                                              " processes were started: each is one rank");
  // A missing GPU must not hide behind what is wrong with the data.
  if (!options.openDevice)
    TESSERA_RETURN_IF_ERROR(checkDevice(*artifact));
  if (!options.exportLora.empty() && adaptersOf(*artifact).empty())
    return TESSERA_ERROR(InvalidArgument,
                         "--export-lora: artifact '" + options.artifact + "' has no adapters (compile with --lora)");
  if (!options.exportPath.empty() && !adaptersOf(*artifact).empty() && options.exportLora != "merged" &&
      options.exportLora != "both")
    return TESSERA_ERROR(InvalidArgument,
                         "--export names the file of the merged model, which --export-lora merged or both write");
  TESSERA_ASSIGN_OR_RETURN(schedule, Schedule::create(*artifact, options.steps, options.schedule));
  TESSERA_ASSIGN_OR_RETURN(std::set<std::string> kinds, StepDump::parseKinds(options.dump));
  if (!kinds.empty() && options.dumpStep > options.steps)
    return TESSERA_ERROR(InvalidArgument, "--dump-step is " + std::to_string(options.dumpStep) +
                                              ", but --steps ends at " + std::to_string(options.steps));
  dump.emplace(*artifact, std::move(kinds), options.dumpStep);
  TESSERA_ASSIGN_OR_RETURN(replicas, Replicas::create(*artifact));
  TESSERA_ASSIGN_OR_RETURN(specs, batchSpecs(*artifact));
  TESSERA_RETURN_IF_ERROR(openEvaluation());
  Clock::time_point begin = Clock::now();
  if (!options.evalOnly)
    TESSERA_RETURN_IF_ERROR(openTrainingData());
  launchSeconds["data"] = secondsSince(begin);
  if (!options.weights.empty()) {
    TESSERA_ASSIGN_OR_RETURN(weights, WeightSource::open(options.weights));
  }
  for (size_t result = 0; artifact->training().results() && result < artifact->training().results()->size(); ++result) {
    const artifact::ResultTensor &entry = *artifact->training().results()->Get(static_cast<uint32_t>(result));
    if (entry.role() == artifact::ResultRole::Loss && lossResult < 0)
      lossResult = static_cast<int>(result);
    else if (entry.role() == artifact::ResultRole::Metric && entry.name()->string_view() == "grad_norm")
      normResult = static_cast<int>(result);
    else if (entry.role() == artifact::ResultRole::Updated)
      updatedResult = static_cast<int>(result);
  }
  if (lossResult < 0)
    return TESSERA_ERROR(DataLoss, "artifact '" + options.artifact + "' has no loss");
  TESSERA_ASSIGN_OR_RETURN(NonFinite policy, NonFinite::create(options.onNonFinite, updatedResult >= 0));
  flopsPerStep = modelNumber(*artifact, "flops_per_step");
  tokensPerStep = modelNumber(*artifact, "tokens_per_step");
  // Of a GPU it is known from the target file that the artifact was compiled with.
  peakFlops = options.peakFlops > 0 ? options.peakFlops : modelNumber(*artifact, "peak_flops_per_second");
  if (tokensPerStep <= 0 && !specs.empty())
    tokensPerStep = static_cast<double>(rowsPerStep(specs));
  if (options.evalOnly) {
    TESSERA_ASSIGN_OR_RETURN(checkpoint, chooseCheckpoint());
  } else {
    TESSERA_RETURN_IF_ERROR(openFolder());
  }
  if (world.empty())
    world = createLocalWorld(numRanks(), {options.stallTimeoutSeconds});
  sessions.resize(world.size());
  states.resize(world.size());
  resumed.resize(world.size());
  launcherSeconds.resize(world.size());
  nonFinite.assign(world.size(), policy);
  return Status::ok();
}

Status Run::openTrainingData() {
  TESSERA_ASSIGN_OR_RETURN(samples, openSamples(options.data, specs, {options.textField, options.tokenBytes}));
  faults.at("open", world.empty() ? 0 : firstRank(), 0);
  numSamples = samples->samples();
  TESSERA_ASSIGN_OR_RETURN(dataFingerprint, samples->fingerprint());
  afterData = processMemory();
  if (hasRoot()) {
    if (Result<double> entropy = samples->unigramEntropy(); entropy.isOk())
      unigramEntropy = *entropy;
    else if (entropy.status().code() != StatusCode::Unsupported)
      return entropy.status();
  }
  return Status::ok();
}

Status Run::openFolder() {
  TESSERA_ASSIGN_OR_RETURN(folder, RunFolder::create(options.out));
  if (hasRoot()) {
    LeaseOptions leaseOptions;
    leaseOptions.takesOver = options.takesOver;
    leaseOptions.stopSignal = options.stopSignal;
    TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<Lease> acquired, Lease::acquire(folder->leasePath(), leaseOptions));
    {
      std::lock_guard<std::mutex> lock(leaseMutex);
      if (isReleased) // the run has ended meanwhile, without waiting for this thread
        return TESSERA_ERROR(Aborted, "the run has ended");
      lease = std::move(acquired);
    }
    TESSERA_RETURN_IF_ERROR(folder->removeLeftOvers());
    TESSERA_RETURN_IF_ERROR(recoverCheckpoints(folder->checkpointFolder()));
  }
  TESSERA_ASSIGN_OR_RETURN(checkpoint, chooseCheckpoint());
  return hasRoot() ? checkFolderIsFree() : Status::ok();
}

/// The checkpoint to go on from; empty: a new run.
Result<std::string> Run::chooseCheckpoint() const {
  std::string chosen;
  if (options.resumesAuto() && hasRoot()) {
    TESSERA_ASSIGN_OR_RETURN(std::optional<std::string> newest, newestWholeCheckpoint(folder->checkpointFolder()));
    chosen = newest ? std::filesystem::path(*newest).filename().string() : "";
  }
  // One looks for all, as another host may not see yet what was written last; and all take part, whatever their flags.
  if (!world.empty())
    TESSERA_RETURN_IF_ERROR(world.front()->broadcast(chosen, 0, "choice of the checkpoint"));
  if (options.resumesAuto())
    return chosen.empty() ? std::string() : folder->checkpointFolder() + "/" + chosen;
  if (options.resume.empty())
    return std::string();
  std::string inRun = options.resume + "/checkpoints";
  std::error_code error;
  return findCheckpoint(std::filesystem::is_directory(inRun, error) ? inRun : options.resume);
}

/// Only the run that the checkpoint is of goes on in its folder; another one's records must not be mixed with it.
Status Run::checkFolderIsFree() const {
  std::error_code error;
  if (!checkpoint.empty() && std::filesystem::equivalent(checkpoint + "/..", folder->checkpointFolder(), error))
    return Status::ok();
  bool hasCheckpoints = std::filesystem::exists(folder->checkpointFolder(), error) &&
                        !std::filesystem::is_empty(folder->checkpointFolder(), error);
  bool isEmpty = !folder->holdsSteps() && !hasCheckpoints;
  std::string last = folder->lastFingerprint();
  if (isEmpty || (options.resumesAuto() && last == RunFolder::fingerprintOf(*artifact)))
    return Status::ok();
  if (options.resumesAuto())
    return TESSERA_ERROR(InvalidArgument,
                         "run folder '" + options.out + "' holds a run " +
                             (last.empty() ? "without a run.json" : "of another artifact (" + last + ")") +
                             " and no checkpoint; remove it or choose another");
  return TESSERA_ERROR(InvalidArgument,
                       "run folder '" + options.out + "' already holds a run; resume it, remove it or choose another");
}

void Run::releaseFolder(bool isAnyRankRunning) {
  if (!isAnyRankRunning)
    checkpoints.reset(); // after the one that is being written
  std::lock_guard<std::mutex> lock(leaseMutex);
  isReleased = true;
  if (lease)
    lease->release();
}

/// The weights are written after the last step: a path that cannot work must not cost the whole run.
Status Run::checkExport() const {
  if (options.exportPath.empty())
    return Status::ok();
  std::filesystem::path path(options.exportPath);
  std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  std::error_code error; // a name that the system cannot take is no folder
  if (std::filesystem::is_directory(path, error))
    return TESSERA_ERROR(InvalidArgument, "--export: '" + options.exportPath + "' is a folder, expected a file");
  // The run folder is made below.
  if (std::filesystem::path(options.out).lexically_normal() == std::filesystem::path(parent).lexically_normal())
    return Status::ok();
  if (!std::filesystem::is_directory(parent, error))
    return TESSERA_ERROR(InvalidArgument, "--export: there is no folder '" + parent + "'");
  if (access(parent.c_str(), W_OK) != 0)
    return TESSERA_ERROR(InvalidArgument, "--export: the folder '" + parent + "' is not writable");
  return Status::ok();
}

/// This machine, until it is started anew.
static std::string hostIdentity() {
  std::string identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity;
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return identity + "/" + name;
}

/// What the processes of a run must agree on besides the artifact. Not compared is what may be another on each rank
/// (threads, devices) and what rank 0 alone does, or each for itself (reports, the files of an export and of
/// --autotune). A step that is traced is not captured into a graph, and NCCL wants that of all ranks or of none. All
/// compare with rank 0, so that all give one error.
Status Run::compareSettings(Communicator &self) const {
  std::string weightsContent = "none", checkpointIdentity = "none";
  if (weights) {
    BusyScope busy(self);
    TESSERA_ASSIGN_OR_RETURN(weightsContent, weights->fingerprint());
  }
  if (!checkpoint.empty()) {
    TESSERA_ASSIGN_OR_RETURN(checkpointIdentity, identityOfCheckpoint(checkpoint));
  }
  std::vector<std::pair<std::string, std::string>> mine = {
      {"samples in --data", std::to_string(numSamples)},
      {"the content of --data", dataFingerprint},
      {"--eval-every or --eval-batches",
       std::to_string(options.evalEvery) + ", " + std::to_string(options.evalBatches)},
      {"--eval-only", options.evalOnly ? "on" : "off"},
      {"the content of --eval-data", evaluation ? evaluation->dataFingerprint() : "none"},
      {"--steps", std::to_string(options.steps)},
      {"--seed", options.seed ? std::to_string(*options.seed) : "default"},
      {"--order", options.shuffle ? "shuffled" : "sequential"},
      {"--lr, --min-lr, --warmup, --schedule or its decay", schedule->describe()},
      {"--on-nonfinite", options.onNonFinite.empty() ? "default" : options.onNonFinite},
      {"the content of --weights", weightsContent},
      {"--checkpoint-every", std::to_string(options.checkpointEvery)},
      {"--keep", std::to_string(options.keepCheckpoints)},
      {"--check-replicas", std::to_string(options.checkReplicas)},
      {"the name of --out",
       options.out.empty()
           ? "none"
           : (std::filesystem::absolute(options.out) / ".").lexically_normal().parent_path().filename().string()},
      {"--attention-gradient", options.gpu.hasFastAttentionGradient ? "fast" : "deterministic"},
      {"--reproducible", options.gpu.isReproducible ? "on" : "off"},
      {"--autotune", options.gpu.autotune ? "on" : "off"},
      {"--no-graph", options.gpu.usesGraphs ? "off" : "on"},
      {"--trace-steps", std::to_string(options.traceSteps)},
      {"--memory-snapshot", options.memorySnapshot ? "on" : "off"},
      {"--stall-timeout", std::to_string(options.stallTimeoutSeconds)},
      {"--dump", options.dump + " at " + std::to_string(options.dumpStep)},
      {"the checkpoint to resume", checkpointIdentity},
      {"export of weights", options.noExport ? "no" : "yes"},
      {"--export-lora", options.exportLora.empty() ? "default" : options.exportLora},
  };
  TESSERA_ASSIGN_OR_RETURN(
      std::vector<std::string> all,
      self.gatherBlobs(nlohmann::json(mine).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                       "comparison of settings"));
  auto root = nlohmann::json::parse(all[0]);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    auto other = nlohmann::json::parse(all[rank]);
    for (size_t index = 0; index < root.size(); ++index)
      if (other[index] != root[index])
        return TESSERA_ERROR(InvalidArgument, "rank " + std::to_string(rank) + " and rank 0 differ in " +
                                                  root[index][0].get<std::string>() + ": " +
                                                  other[index][1].get<std::string>() + " and " +
                                                  root[index][1].get<std::string>());
  }
  return Status::ok();
}

Status Run::setUpRank(int index) {
  Communicator &self = *world[index];
  if (isRemote()) {
    TESSERA_RETURN_IF_ERROR(compareSettings(self));
    std::string here = hostIdentity();
    TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> hosts, self.gatherBlobs(here, "comparison of hosts"));
    processesOnHost = static_cast<int>(std::count(hosts.begin(), hosts.end(), here));
    rankOnHost = static_cast<int>(std::count(hosts.begin(), hosts.begin() + self.rank(), here));
  }
  Clock::time_point begin = Clock::now();
  SessionOptions sessionOptions;
  sessionOptions.threads = options.threads;
  sessionOptions.ranksInProcess = isRemote() ? processesOnHost : numRanks();
  sessionOptions.rankOnHost = isRemote() ? rankOnHost : index;
  sessionOptions.gpu = options.gpu;
  sessionOptions.stallTimeoutSeconds = options.stallTimeoutSeconds;
  sessionOptions.openDevice = options.openDevice;
  TESSERA_ASSIGN_OR_RETURN(sessions[index], Session::create(artifact, self, sessionOptions));
  Session &session = *sessions[index];
  TESSERA_ASSIGN_OR_RETURN(states[index], makeRankState(*artifact, self.rank(),
                                                        [&](size_t state) { return session.stateBuffer(state).data; }));
  BusyScope busy(self);
  TESSERA_ASSIGN_OR_RETURN(StagedState staged, StagedState::create(session, states[index], /*reads=*/false));
  const RankState &state = staged.views();
  if (index == 0)
    launchSeconds["memory_and_code"] = secondsSince(begin);
  begin = Clock::now();
  uint64_t initialSeed = options.seed.value_or(0);
  if (!checkpoint.empty()) {
    TESSERA_ASSIGN_OR_RETURN(resumed[index], loadCheckpoint(checkpoint, {state}));
    nonFinite[index].resume(resumed[index]);
  } else if (weights) {
    TESSERA_RETURN_IF_ERROR(
        loadWeights(state, *weights, initialSeed, {.optional = namesOf(adaptersOf(*artifact)), .isZeroed = true}));
  } else {
    if (isRoot(index) && !adaptersOf(*artifact).empty())
      log::warn("adapters are trained beside a model of random values: --weights gives it its own");
    TESSERA_RETURN_IF_ERROR(initialiseState(state, initialSeed, /*isZeroed=*/true));
  }
  TESSERA_RETURN_IF_ERROR(staged.write());
  if (index == 0)
    launchSeconds["parameters"] = secondsSince(begin);
  return Status::ok();
}

/// The rows of a batch that ranks of this process read; empty: all.
std::vector<bool> Run::neededRows() const {
  std::vector<bool> rows;
  if (isRemote())
    for (size_t index = 0; index < specs.size(); ++index)
      for (const std::unique_ptr<Communicator> &member : world)
        markRankRows(specs[index], rankParts(*artifact, index, member->rank()), rows);
  return rows;
}

std::map<std::string, std::string> Run::dataOrder() const {
  return {{"order", options.shuffle ? "shuffled" : "sequential"},
          {"samples", std::to_string(numSamples)},
          {"content", dataFingerprint}};
}

/// A run may go on with other data; that some samples then come twice and others never is nothing to hide.
void Run::warnOfOtherOrder(const CheckpointInfo &info) const {
  std::map<std::string, std::string> mine = dataOrder();
  mine["seed"] = std::to_string(seed);
  std::map<std::string, std::string> theirs = info.extra;
  theirs["seed"] = std::to_string(info.seed);
  for (const auto &[name, value] : mine) {
    auto found = theirs.find(name);
    if (found == theirs.end() || found->second == value)
      continue;
    if (name != "content")
      log::warn("the {} of the data is {}, that of '{}' was {}: the run continues at sample {} of a different order",
                name, value, checkpoint, found->second, info.dataPosition);
    else if (theirs["samples"] == mine["samples"]) // else that is said
      log::warn("the data is not what '{}' was trained on: the run continues at sample {} of the new data", checkpoint,
                info.dataPosition);
  }
}

/// What the ranks of a process share; its leader calls it.
Status Run::setUpProcess() {
  const CheckpointInfo &info = resumed[0];
  seed = options.seed.value_or(checkpoint.empty() ? 0 : info.seed);
  if (!checkpoint.empty()) {
    firstStep = static_cast<int64_t>(info.step) + 1;
    // With nothing left to do, a run that is started again by a script ends as it should have.
    if (firstStep > options.steps + (options.resumesAuto() ? 1 : 0))
      return TESSERA_ERROR(InvalidArgument, "checkpoint '" + checkpoint + "' is at step " + std::to_string(info.step) +
                                                ", --steps ends at " + std::to_string(options.steps));
    if (dump->isWantedBefore(firstStep) && !options.resumesAuto())
      return TESSERA_ERROR(InvalidArgument, "--dump-step is " + std::to_string(options.dumpStep) +
                                                ", but the run continues at step " + std::to_string(firstStep));
    if (firstRank() == 0)
      warnOfOtherOrder(info);
  }
  lastCheckpoint = firstStep - 1;
  firstSample = info.dataPosition;
  LoaderOptions loaderOptions;
  loaderOptions.seed = seed;
  loaderOptions.position = info.dataPosition;
  loaderOptions.shuffle = options.shuffle;
  loaderOptions.rows = neededRows();
  TESSERA_ASSIGN_OR_RETURN(loader, Loader::create(std::move(samples), specs, loaderOptions));
  CheckpointOptions checkpointOptions;
  checkpointOptions.folder = folder->checkpointFolder();
  checkpointOptions.keep = options.keepCheckpoints;
  if (isRemote()) {
    Communicator &self = *world.front();
    checkpointOptions.peers = {self.rank(), [&self](const std::string &text) {
                                 return self.gatherBlobs(text, "writing of a checkpoint", BlobChannel::Checkpoints);
                               }};
  }
  if (lease)
    checkpointOptions.mayPublish = [this] { return lease->check(); };
  checkpointOptions.isStrict = !nonFinite[0].ignores();
  checkpoints = std::make_unique<CheckpointWriter>(checkpointOptions);
  times.emplace(firstRank(), ranksHere());
  if (options.memorySnapshot)
    snapshot.emplace(firstRank());
  return firstRank() == 0 ? setUpReports() : Status::ok();
}

Status Run::setUpReports() {
  memory.plan = memoryPlan(artifact->package(), artifact->training());
  memory.ranksInProcess = ranksHere();
  for (const std::unique_ptr<Session> &session : sessions)
    memory.allocatedBytes += session->memory().allocatedBytes + session->memory().workspaceBytes;

  RunInfo runInfo;
  runInfo.commandLine = options.commandLine;
  runInfo.settings = options.settings;
  runInfo.settings["seed"] = std::to_string(seed);
  runInfo.ranksInProcess = ranksHere();
  runInfo.threadsPerRank = sessions[0]->threads();
  runInfo.unigramEntropy = unigramEntropy;
  runInfo.samples = numSamples;
  launchSeconds["total"] = secondsSince(launched);
  runInfo.launchSeconds = launchSeconds;
  std::optional<int64_t> resumedStep;
  if (!checkpoint.empty())
    resumedStep = firstStep - 1;
  runInfo.resumedStep = resumedStep;
  TESSERA_RETURN_IF_ERROR(folder->writeRunInfo(*artifact, runInfo));
  TESSERA_ASSIGN_OR_RETURN(metrics, MetricsWriter::open(folder->metricsPath(), resumedStep));
  if (options.tensorBoard) {
    TESSERA_ASSIGN_OR_RETURN(tensorBoard, TensorBoardWriter::open(folder->tensorBoardFolder(), resumedStep));
  }
  printHead();
  return Status::ok();
}

StageMemory Run::memoryOf(int index, uint64_t allocated, uint64_t peak) const {
  MemoryStats stats = sessions[index]->memory();
  return {allocated, peak, stats.allocatedBytes + stats.workspaceBytes, processMemory()};
}

/// The first two memory lines; the third follows the first step.
Status Run::reportSetUp(int index) {
  uint64_t state = stateBytes(artifact->package());
  StageMemory stages[2] = {{0, 0, 0, afterData}, memoryOf(index, state, state)};
  std::string blob(reinterpret_cast<const char *>(stages), sizeof(stages));
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all, world[index]->collectBlobs(blob, 0, "memory of the ranks"));
  if (!isRoot(index))
    return Status::ok();
  std::vector<StageMemory> data(all.size()), model(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::memcpy(&data[rank], all[rank].data(), sizeof(StageMemory));
    std::memcpy(&model[rank], all[rank].data() + sizeof(StageMemory), sizeof(StageMemory));
  }
  TESSERA_RETURN_IF_ERROR(metrics->writeLine(stageToJson("after data creation", firstStep - 1, data)));
  return metrics->writeLine(stageToJson("after model creation", firstStep - 1, model));
}

void Run::printHead() const {
  const std::string mesh = numRanks() == 1 ? "" : "on " + artifact->mesh().toString() + " ";
  std::printf("%s: %d rank%s %s%sx %d threads, %s planned per rank, %llu samples", options.artifact.c_str(), numRanks(),
              numRanks() == 1 ? "" : "s", isRemote() ? "in as many processes " : "", mesh.c_str(),
              sessions[0]->threads(), formatBytes(memory.plan.arenaBytes).c_str(),
              static_cast<unsigned long long>(numSamples));
  if (unigramEntropy)
    std::printf(", unigram entropy %.4f", *unigramEntropy);
  std::printf("\n");
  if (!checkpoint.empty())
    std::printf("resumed from %s after step %lld%s\n", checkpoint.c_str(), static_cast<long long>(firstStep - 1),
                firstStep > options.steps ? ", which was the last" : "");
  std::fflush(stdout);
}

} // namespace tessera
