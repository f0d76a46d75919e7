//===- RunOpen.cpp - the files of a run, before its ranks are set up ------===//
//
// Everything that can be wrong with what the user named is found here: artifact,
// data, folder, checkpoint, and the file that the weights will be written to.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Log.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/state/Safetensors.h"
#include "runtime/step/Run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

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
  if (!options.modelFile.empty() && !options.resume.empty() && !options.resumesAuto())
    return TESSERA_ERROR(InvalidArgument, "--model-file is where a run begins, and --resume continues one: give one of "
                                          "them, or --resume auto");
  if (options.trainsNothing() && options.resumesAuto())
    return TESSERA_ERROR(InvalidArgument, "--eval-only and --export-only need a checkpoint, not --resume auto");
  if (options.exportOnly && (options.exportHf.empty() || options.resume.empty() || options.evalOnly))
    return TESSERA_ERROR(InvalidArgument,
                         "--export-only writes a checkpoint's weights: it needs --resume and --export-hf");
  TESSERA_RETURN_IF_ERROR(checkNotAmongData());
  TESSERA_ASSIGN_OR_RETURN(artifact, Artifact::open(options.artifact));
  TESSERA_RETURN_IF_ERROR(checkExport());
  if (options.ranks > 0 && options.ranks != numRanks())
    return TESSERA_ERROR(InvalidArgument, "artifact '" + options.artifact + "' is for " + std::to_string(numRanks()) +
                                              " ranks, --ranks asks for " + std::to_string(options.ranks));
  if (!world.empty() && world.front()->numRanks() != numRanks())
    return TESSERA_ERROR(InvalidArgument, "artifact '" + options.artifact + "' is for " + std::to_string(numRanks()) +
                                              " ranks, but " + std::to_string(world.front()->numRanks()) +
                                              " processes were started: each is one rank");
  // A missing GPU must not hide behind what is wrong with the data.
  if (!options.openDevice)
    TESSERA_RETURN_IF_ERROR(checkDevice(*artifact, options.gpu));
  if (hasPlacedParameters() && (options.gpu.hasFastAttentionGradient || !options.gpu.isReproducible))
    return TESSERA_ERROR(
        InvalidArgument,
        std::string(options.gpu.isReproducible ? "--attention-gradient fast" : "--reproducible off") +
            " cannot be used where parameters are split over model axes: the other ones are computed by "
            "each rank for itself and have to come to the same bits");
  if (!options.exportLora.empty() && adaptersOf(*artifact).empty())
    return TESSERA_ERROR(InvalidArgument,
                         "--export-lora: artifact '" + options.artifact + "' has no adapters (compile with --lora)");
  if (!options.exportPath.empty() && !adaptersOf(*artifact).empty() && options.exportLora != "merged" &&
      options.exportLora != "both")
    return TESSERA_ERROR(InvalidArgument,
                         "--export names the file of the merged model, which --export-lora merged or both write");
  TESSERA_ASSIGN_OR_RETURN(replicas, Replicas::create(*artifact));
  TESSERA_ASSIGN_OR_RETURN(specs, batchSpecs(*artifact));
  TESSERA_RETURN_IF_ERROR(openEvaluation());
  Clock::time_point begin = Clock::now();
  if (!options.trainsNothing())
    TESSERA_RETURN_IF_ERROR(openTrainingData());
  launchSeconds["data"] = secondsSince(begin);
  TESSERA_RETURN_IF_ERROR(openCourse());
  TESSERA_RETURN_IF_ERROR(checkFolderExport());
  if (options.resume.empty())
    TESSERA_RETURN_IF_ERROR(openInitialValues());
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
  samplesPerStep = modelNumber(*artifact, "samples_per_step");
  hasPositions = modelNumber(*artifact, "positions_per_sample") > 0;
  // Of a GPU it is known from the target file that the artifact was compiled with.
  peakFlops = options.peakFlops > 0 ? options.peakFlops : modelNumber(*artifact, "peak_flops_per_second");
  if (tokensPerStep <= 0 && !specs.empty())
    tokensPerStep = static_cast<double>(rowsPerStep(specs));
  if (options.trainsNothing()) {
    TESSERA_ASSIGN_OR_RETURN(checkpoint, chooseCheckpoint());
  } else {
    TESSERA_RETURN_IF_ERROR(openFolder());
  }
  if (checkpoint.empty() && !initialValues)
    TESSERA_RETURN_IF_ERROR(openInitialValues());
  if (world.empty())
    world = createLocalWorld(numRanks(), {options.stallTimeoutSeconds});
  sessions.resize(world.size());
  states.resize(world.size());
  resumed.resize(world.size());
  launcherSeconds.resize(world.size());
  nonFinite.assign(world.size(), policy);
  return Status::ok();
}

Status Run::openInitialValues() {
  if (options.evalOnly && options.weights.empty() && !artifact->package().model_file())
    return TESSERA_ERROR(InvalidArgument, "--eval-only needs --resume or --weights: the model file of artifact '" +
                                              options.artifact + "' has no values");
  TESSERA_ASSIGN_OR_RETURN(initialValues,
                           InitialValues::open(*artifact, options.weights, options.modelFile, options.isPartialWeight));
  return Status::ok();
}

std::string Run::endOfSteps() const {
  return fmt::format("{} ends at {}", options.epochs > 0 ? "--epochs" : "--steps", totalSteps);
}

/// How many steps there are, and what each is given.
Status Run::openCourse() {
  totalSteps = options.steps;
  if (options.epochs > 0 && !options.trainsNothing()) {
    const double steps = std::ceil(options.epochs * static_cast<double>(epochSamples) /
                                   static_cast<double>(rowsPerStep(specs)) * (1 - 1e-12));
    if (!(steps < 1e15))
      return TESSERA_ERROR(InvalidArgument, fmt::format("--epochs {} are {} steps", options.epochs, steps));
    totalSteps = std::max<int64_t>(static_cast<int64_t>(steps), 1);
  }
  TESSERA_ASSIGN_OR_RETURN(schedule, Schedule::create(*artifact, totalSteps, options.schedule));
  const ScheduleRequest course = schedule->request();
  if (course.warmup + course.decaySteps > totalSteps && hasRoot() && !options.trainsNothing())
    log::warn("the learning rate warms up for {} steps{}, and {}", course.warmup,
              course.decaySteps > 0 ? fmt::format(" and decays in the last {}", course.decaySteps) : "", endOfSteps());
  TESSERA_ASSIGN_OR_RETURN(std::set<std::string> kinds, StepDump::parseKinds(options.dump));
  if (!kinds.empty() && options.dumpStep > totalSteps)
    return TESSERA_ERROR(InvalidArgument, fmt::format("--dump-step is {}, but {}", options.dumpStep, endOfSteps()));
  dump.emplace(*artifact, std::move(kinds), options.dumpStep);
  return Status::ok();
}

Status Run::openTrainingData() {
  TESSERA_ASSIGN_OR_RETURN(
      samples, openSamples(options.data, specs,
                           {options.textField, options.tokenBytes, options.endOfDocument, options.readsBytes}));
  faults.at("open", world.empty() ? 0 : firstRank(), 0);
  numSamples = samples->samples();
  epochSamples = SampleOrder(samples->parts(), 0, options.shuffle).epochSamples();
  dataFormat = samples->format();
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
  const std::string run = "run folder '" + options.out + "'", way = "remove it or choose another";
  const std::optional<int64_t> finished = folder->finishedStep();
  if (!checkpoint.empty() &&
      std::filesystem::equivalent(absolutePath(checkpoint).parent_path(), folder->checkpointFolder(), error))
    return options.resumesAuto() && finished && *finished > totalSteps
               ? TESSERA_ERROR(InvalidArgument, run + " holds a run that has made " + std::to_string(*finished) +
                                                    " steps, and " + endOfSteps() +
                                                    ": its weights and metrics would be replaced; " + way +
                                                    ", or name the checkpoint that --resume is to go back to")
               : Status::ok();
  const int64_t steps = folder->lastStep();
  bool hasCheckpoints = std::filesystem::exists(folder->checkpointFolder(), error) &&
                        !std::filesystem::is_empty(folder->checkpointFolder(), error);
  if (steps == 0 && !hasCheckpoints) {
    std::string found = findInTheWay();
    if (found.empty())
      found = folder->findRecordsOfOthers();
    return found.empty()
               ? Status::ok()
               : TESSERA_ERROR(InvalidArgument, run + " holds '" + found + "', which the run would replace; " + way);
  }
  if (!options.resumesAuto())
    return TESSERA_ERROR(InvalidArgument, run + " already holds a run; resume it, " + way);
  std::string last = folder->lastFingerprint();
  if (last != RunFolder::fingerprintOf(*artifact))
    return TESSERA_ERROR(InvalidArgument,
                         run + " holds a run " +
                             (last.empty() ? "without a run.json" : "of another artifact (" + last + ")") +
                             " and no checkpoint; " + way);
  if (finished)
    return TESSERA_ERROR(InvalidArgument, run + " holds a run that has made all its " + std::to_string(*finished) +
                                              " steps and left no checkpoint to go on from: its weights and metrics "
                                              "would be replaced; " +
                                              way);
  if (steps > 0)
    log::warn("{} holds {} steps of a run that was ended before its first checkpoint: they are done again, and their "
              "records replaced",
              run, steps);
  return Status::ok();
}

/// The files of weights at `path`: with averages there are two.
static std::vector<std::string> filesOf(const Artifact &artifact, const std::string &path) {
  return hasAverages(artifact) ? std::vector{path, averagePath(path)} : std::vector{path};
}

/// What lies in the folder already where the run will write weights, a dump or event files; empty: nothing.
std::string Run::findInTheWay() const {
  const bool hasAdapters = !adaptersOf(*artifact).empty();
  std::vector<std::string> written;
  if (options.exportPath.empty() && (!hasAdapters || options.exportLora == "merged" || options.exportLora == "both"))
    written = filesOf(*artifact, folder->modelPath());
  if (hasAdapters && options.exportLora != "merged")
    for (bool isAverage : {false, true})
      if (!isAverage || hasAverages(*artifact))
        written.push_back(folder->adapterFolder(isAverage));
  if (options.noExport || !options.exportHf.empty())
    written.clear();
  const bool isOfRun = !folder->lastFingerprint().empty(); // which was ended before its first step
  if (!options.dump.empty() && !isOfRun)
    written.push_back(folder->dumpFolder(options.dumpStep));
  if (options.tensorBoard && !isOfRun)
    written.push_back(folder->tensorBoardFolder());
  std::error_code error;
  for (const std::string &path : written)
    if (std::filesystem::exists(path, error))
      return path;
  return "";
}

void Run::releaseFolder(bool isAnyRankRunning) {
  if (!isAnyRankRunning)
    checkpoints.reset(); // after the one that is being written
  std::lock_guard<std::mutex> lock(leaseMutex);
  isReleased = true;
  if (lease)
    lease->release();
}

/// Whether a path is a folder, or lies in it, whatever links lead there.
static bool isWithin(const std::string &path, const std::string &folder) {
  std::error_code error;
  const auto inner = std::filesystem::weakly_canonical(path, error), outer = std::filesystem::canonical(folder, error);
  return !error && std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// What a run writes must not be read as data by it, or by the next one.
Status Run::checkNotAmongData() const {
  for (const std::string &data : {options.data, options.evalData}) {
    std::error_code error;
    if (options.trainsNothing() || !std::filesystem::is_directory(data, error))
      continue;
    for (auto [flag, path] : {std::pair("--out", options.out), std::pair("--export", options.exportPath),
                              std::pair("--export-hf", options.exportHf)})
      if (!path.empty() && isWithin(path, data))
        return TESSERA_ERROR(InvalidArgument,
                             fmt::format("{}: '{}' lies in the folder of the data, '{}', and what the run "
                                         "writes would be read as data",
                                         flag, path, data));
  }
  return Status::ok();
}

/// The weights are written after the last step: a path that cannot work must not cost the whole run.
Status Run::checkExport() const {
  if (options.exportPath.empty())
    return Status::ok();
  std::filesystem::path path(options.exportPath);
  const auto folderOfRun = std::filesystem::absolute(options.out).lexically_normal() / "";
  const auto asked = std::filesystem::absolute(path).lexically_normal();
  const auto inRun = asked.lexically_relative(folderOfRun);
  const bool isInRun = !options.out.empty() && !inRun.empty() && *inRun.begin() != "..";
  if (isInRun && (inRun.has_parent_path() || inRun.extension() != ".safetensors"))
    return TESSERA_ERROR(InvalidArgument, "--export: '" + options.exportPath + "' is among the run's own files; in '" +
                                              options.out + "', weights are <name>.safetensors");
  std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  std::error_code error; // a name that the system cannot take is no folder
  if (std::filesystem::is_directory(path, error))
    return TESSERA_ERROR(InvalidArgument, "--export: '" + options.exportPath + "' is a folder, expected a file");
  for (const std::string &file : filesOf(*artifact, options.exportPath)) {
    if (!hasRoot() || !std::filesystem::exists(std::filesystem::symlink_status(file, error)))
      continue;
    // A run that goes on may find what it wrote itself.
    if (options.resume.empty())
      return TESSERA_ERROR(InvalidArgument,
                           "--export: '" + file + "' exists and would be replaced; remove it or name another file");
    const auto weights = SafetensorsFile::open(file);
    if (!weights.isOk() || !weights->metadata().contains("step"))
      return TESSERA_ERROR(InvalidArgument,
                           "--export: '" + file + "' exists and holds no weights that a run wrote; name another file");
    log::warn("--export: '{}' exists and will be replaced at the end of the run", file);
  }
  // The run folder is made below.
  if (std::filesystem::path(options.out).lexically_normal() == std::filesystem::path(parent).lexically_normal())
    return Status::ok();
  if (!std::filesystem::is_directory(parent, error))
    return TESSERA_ERROR(InvalidArgument, "--export: there is no folder '" + parent + "'");
  if (access(parent.c_str(), W_OK) != 0)
    return TESSERA_ERROR(InvalidArgument, "--export: the folder '" + parent + "' is not writable");
  return Status::ok();
}

} // namespace tessera
