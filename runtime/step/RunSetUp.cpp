//===- RunSetUp.cpp - ranks, and what those of a process share ------------===//

#include "runtime/base/Log.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/state/CheckpointFolder.h"
#include "runtime/step/Run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace tessera {

/// This machine, until it is started anew.
static std::string hostIdentity() {
  std::string identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity;
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return identity + "/" + name;
}

bool Run::hasPlacedParameters() const {
  const auto *state = artifact->package().state();
  for (uint32_t index = 0; state && index < state->size(); ++index)
    if (const auto *segments = state->Get(index)->segments())
      for (const artifact::Segment *segment : *segments)
        if (segment->split_dim() >= 0)
          return true;
  return false;
}

/// Earlier steps may have had another number of samples: then as many steps as the epochs have do not end them.
Status Run::checkEpochs() const {
  const double wanted = options.epochs * static_cast<double>(epochSamples) * (1 - 1e-12);
  const auto reached = static_cast<double>(dataPositionAfter(totalSteps));
  if (options.epochs == 0 || reached >= wanted)
    return Status::ok();
  const auto rows = static_cast<double>(rowsPerStep(specs));
  return TESSERA_ERROR(
      InvalidArgument,
      fmt::format("--epochs {} ({} steps of {} samples) would end after {} samples, since the steps before '{}' had "
                  "other batch sizes: --steps {} ends where it should",
                  options.epochs, totalSteps, rows, reached, checkpoint,
                  totalSteps + static_cast<int64_t>(std::ceil((wanted - reached) / rows))));
}

/// What the processes of a run must agree on besides the artifact. Not compared is what may be another on each rank
/// (threads, devices) and what rank 0 alone does, or each for itself (reports, the files of an export and of
/// --autotune). A step that is traced is not captured into a graph, and NCCL wants that of all ranks or of none. All
/// compare with rank 0, so that all give one error.
Status Run::compareSettings(Communicator &self) const {
  std::string initialContent = "none", checkpointIdentity = "none";
  if (initialValues)
    initialContent = initialValues->content();
  if (!checkpoint.empty()) {
    TESSERA_ASSIGN_OR_RETURN(checkpointIdentity, identityOfCheckpoint(checkpoint));
  }
  std::vector<std::pair<std::string, std::string>> mine = {
      {"samples in --data", std::to_string(numSamples)},
      {"the content of --data", dataFingerprint},
      {"--eval-every or --eval-batches",
       std::to_string(options.evalEvery) + ", " + std::to_string(options.evalBatches)},
      {"--eval-only", options.evalOnly ? "on" : "off"},
      {"--export-only", options.exportOnly ? "on" : "off"},
      {"--export-hf, --export-like or --export-dtype",
       options.exportHf + " " + options.exportLike + " " + options.exportDtype},
      {"the content of --eval-data", evaluation ? evaluation->dataFingerprint() : "none"},
      {"--steps or --epochs", std::to_string(totalSteps) + (options.epochs > 0 ? " of --epochs" : "")},
      {"--keep-best, --patience or --export-step", std::string(options.keepsBest ? "on " : "off ") +
                                                       std::to_string(options.patience) +
                                                       (options.exportsLastStep ? " last" : " best")},
      {"--seed", options.seed ? std::to_string(*options.seed) : "default"},
      {"--end-of-document", endOfDocument()},
      {"--order", options.shuffle ? "shuffled" : "sequential"},
      {"--lr, --min-lr, --warmup, --schedule or its decay", schedule->describe()},
      {"--on-nonfinite", options.onNonFinite.empty() ? "default" : options.onNonFinite},
      {"the initial values (--weights)", initialContent},
      {"--checkpoint-every", std::to_string(options.checkpointEvery)},
      {"--keep", std::to_string(options.keepCheckpoints)},
      {"--check-replicas", std::to_string(options.checkReplicas)},
      {"the name of --out", options.out.empty() ? "none" : absolutePath(options.out).filename().string()},
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

/// Ranks along a model axis compute what is not split each for itself, products too, and have to come to the same bits:
/// nothing brings their copies together again.
Status Run::compareArithmetic(Communicator &self, const Session &session) const {
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all,
                           self.gatherBlobs(session.arithmetic(), "comparison of devices"));
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      return TESSERA_ERROR(InvalidArgument,
                           "rank " + std::to_string(rank) + " computes with " + all[rank] + ", rank 0 with " + all[0] +
                               ": where parameters are split over model axes, the other ones would come to differ "
                               "between ranks; give all ranks the same --threads, and processors (or GPUs and "
                               "libraries) of one kind");
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
  if (hasPlacedParameters())
    TESSERA_RETURN_IF_ERROR(compareArithmetic(self, session));
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
  } else {
    TESSERA_RETURN_IF_ERROR(initialValues->set(state, initialSeed));
  }
  TESSERA_RETURN_IF_ERROR(staged.write());
  if (index == 0)
    launchSeconds["parameters"] = secondsSince(begin);
  return Status::ok();
}

std::string Run::endOfDocument() const {
  return options.endOfDocument < 0 ? "none" : "token " + std::to_string(options.endOfDocument);
}

std::map<std::string, std::string> Run::dataOrder() const {
  return {{"order", options.shuffle ? "shuffled" : "sequential"},
          {"samples", std::to_string(numSamples)},
          {"content", dataFingerprint},
          {"end of a document", endOfDocument()}};
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
    if (name == "end of a document")
      log::warn("the {} (--end-of-document) is {}, that of '{}' was {}: the run continues at sample {} with other "
                "positions or documents",
                name, value, checkpoint, found->second, info.dataPosition);
    else if (name != "content")
      log::warn("the {} of the data is {}, that of '{}' was {}: the run continues at sample {} of a different order",
                name, value, checkpoint, found->second, info.dataPosition);
    else if (theirs["samples"] == mine["samples"]) // else that is said
      log::warn("the data is not what '{}' was trained on: the run continues at sample {} of the new data", checkpoint,
                info.dataPosition);
  }
  if (auto found = theirs.find("content of evaluations");
      evaluation && found != theirs.end() && found->second != evaluation->dataFingerprint())
    log::warn("--eval-data is not what '{}' was evaluated on: later losses of evaluations are of other samples",
              checkpoint);
}

/// Checkpoints of steps that are done again stay until others of their steps are written.
Status Run::leaveLaterCheckpoints() const {
  const std::optional<RunFolder> run = folderOfCheckpoint();
  std::error_code error;
  if (!run || !std::filesystem::equivalent(run->path(), options.out, error))
    return Status::ok();
  const Result<std::string> newest = findCheckpoint(folder->checkpointFolder());
  const std::string name = newest.isOk() ? std::filesystem::path(*newest).filename().string() : "";
  const std::optional<uint64_t> step = stepOfCheckpoint(name);
  if (!step || *step < static_cast<uint64_t>(firstStep))
    return Status::ok();
  log::warn("'{}' is of steps that this run makes again; it stays until it is written anew", *newest);
  return makeLatest(absolutePath(checkpoint));
}

/// What the ranks of a process share; its leader calls it.
Status Run::setUpProcess() {
  const CheckpointInfo &info = resumed[0];
  seed = options.seed.value_or(checkpoint.empty() ? 0 : info.seed);
  if (!checkpoint.empty()) {
    firstStep = static_cast<int64_t>(info.step) + 1;
    // With nothing left to do, a run that is started again by a script ends as it should have.
    if (firstStep > totalSteps + (options.resumesAuto() ? 1 : 0))
      return TESSERA_ERROR(InvalidArgument, "checkpoint '" + checkpoint + "' is at step " + std::to_string(info.step) +
                                                ", " + endOfSteps());
    if (dump->isWantedBefore(firstStep) && !options.resumesAuto())
      return TESSERA_ERROR(InvalidArgument, "--dump-step is " + std::to_string(options.dumpStep) +
                                                ", but the run continues at step " + std::to_string(firstStep));
    if (firstRank() == 0) {
      warnOfOtherOrder(info);
      warnOfOtherCourse(info);
    }
  }
  lastCheckpoint = firstStep - 1;
  firstSample = info.dataPosition;
  TESSERA_RETURN_IF_ERROR(checkEpochs());
  LoaderOptions loaderOptions;
  loaderOptions.seed = seed;
  loaderOptions.position = info.dataPosition;
  loaderOptions.shuffle = options.shuffle;
  std::vector<int> ranks;
  for (const std::unique_ptr<Communicator> &member : world)
    ranks.push_back(member->rank());
  loaderOptions.part = partOfRanks(*artifact, specs, ranks);
  TESSERA_ASSIGN_OR_RETURN(loader, Loader::create(std::move(samples), specs, loaderOptions));
  CheckpointOptions checkpointOptions;
  checkpointOptions.folder = folder->checkpointFolder();
  checkpointOptions.keep = options.keepCheckpoints;
  checkpointOptions.isBest = [this](uint64_t step) { return static_cast<int64_t>(step) == bestStep; };
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
  for (const std::unique_ptr<Session> &session : sessions) {
    memory.allocatedBytes += session->memory().reservedBytes();
    memory.hostBytes += session->memory().hostBytes;
  }

  RunInfo runInfo;
  runInfo.commandLine = options.commandLine;
  runInfo.settings = options.settings;
  runInfo.settings["seed"] = std::to_string(seed);
  runInfo.ranksInProcess = ranksHere();
  runInfo.threadsPerRank = sessions[0]->threads();
  runInfo.unigramEntropy = unigramEntropy;
  runInfo.samples = numSamples;
  if (initialValues)
    runInfo.initialValues = initialValues->describe(*artifact, seed);
  runInfo.dataFormat = dataFormat;
  launchSeconds["total"] = secondsSince(launched);
  runInfo.launchSeconds = launchSeconds;
  std::optional<int64_t> resumedStep;
  if (!checkpoint.empty()) {
    resumedStep = firstStep - 1;
    runInfo.resumedFrom = checkpoint;
    if (std::optional<RunFolder> run = folderOfCheckpoint())
      runInfo.resumedRun = run->path();
  }
  runInfo.resumedStep = resumedStep;
  stepsBegan = Clock::now();
  printHead(); // before the records of earlier steps are changed
  if (artifact->modelOption("mode") == "evaluation")
    log::warn(
        "'{}' is of a module in evaluation mode, and trains without dropout and with the statistics of batch norms "
        "as they are; --eval-only evaluates it",
        options.artifact);
  if (resumedStep && hasRoot())
    TESSERA_RETURN_IF_ERROR(leaveLaterCheckpoints());
  TESSERA_RETURN_IF_ERROR(folder->writeRunInfo(*artifact, runInfo));
  if (options.traceSteps > 0 && hasRoot())
    folder->removeTraces();
  TESSERA_ASSIGN_OR_RETURN(metrics, MetricsWriter::open(folder->metricsPath(), resumedStep));
  TESSERA_RETURN_IF_ERROR(readHistory());
  if (options.tensorBoard) {
    TESSERA_ASSIGN_OR_RETURN(tensorBoard, TensorBoardWriter::open(folder->tensorBoardFolder(), resumedStep));
  }
  return Status::ok();
}

StageMemory Run::memoryOf(int index, uint64_t allocated, uint64_t peak) const {
  MemoryStats stats = sessions[index]->memory();
  return {allocated, peak, stats.reservedBytes(), stats.hostBytes, processMemory()};
}

/// The first two memory lines; the third follows the first step.
Status Run::reportSetUp(int index) {
  uint64_t state = stateBytes(artifact->package());
  StageMemory stages[2] = {{0, 0, 0, 0, afterData}, memoryOf(index, state, state)};
  std::string blob(reinterpret_cast<const char *>(stages), sizeof(stages));
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all, world[index]->collectBlobs(blob, 0, "memory of the ranks"));
  if (!isRoot(index))
    return Status::ok();
  std::vector<StageMemory> data(all.size()), model(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::memcpy(&data[rank], all[rank].data(), sizeof(StageMemory));
    std::memcpy(&model[rank], all[rank].data() + sizeof(StageMemory), sizeof(StageMemory));
  }
  TESSERA_RETURN_IF_ERROR(reportStage("after data creation", firstStep - 1, data));
  return reportStage("after model creation", firstStep - 1, model);
}

Status Run::reportStage(const std::string &stage, int64_t step, const std::vector<StageMemory> &ranks) {
  for (const std::string &line : options.logsMemory ? stageLines(stage, ranks) : std::vector<std::string>())
    std::printf("%s%s\n", lineStart(isRemote()).c_str(), line.c_str());
  return metrics->writeLine(stageToJson(stage, step, ranks));
}

void Run::printHead() const {
  const std::string mesh = numRanks() == 1 ? "" : "on " + artifact->mesh().toString() + " ";
  std::printf("%s: %d rank%s %s%sx %d threads, %s planned per rank%s, %llu samples of %s", options.artifact.c_str(),
              numRanks(), numRanks() == 1 ? "" : "s", isRemote() ? "in as many processes " : "", mesh.c_str(),
              sessions[0]->threads(), formatBytes(memory.plan.arenaBytes).c_str(),
              memory.plan.hostBytes ? (" and " + formatBytes(memory.plan.hostBytes) + " on the host").c_str() : "",
              static_cast<unsigned long long>(numSamples), dataFormat.c_str());
  if (unigramEntropy)
    std::printf(", unigram entropy %.4f", *unigramEntropy);
  if (evaluation)
    std::printf("; evaluations over %s", evaluation->describeData().c_str());
  std::printf("\n");
  if (initialValues)
    std::printf("initial values: %s\n", initialValues->describe(*artifact, seed).c_str());
  if (!checkpoint.empty())
    printResumed();
  std::fflush(stdout);
}

} // namespace tessera
