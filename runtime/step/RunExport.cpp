//===- RunExport.cpp - the weights that a run leaves -----------------------===//
//
// In one file, which rank 0 writes, or as a folder of Hugging Face's, to which
// every process writes its part.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Log.h"
#include "runtime/state/FiniteState.h"
#include "runtime/state/ModelFolder.h"
#include "runtime/step/Run.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <unistd.h>

namespace fs = std::filesystem;

namespace tessera {

/// The step that the state is of.
int64_t Run::exportedStep() const {
  return options.exportOnly ? static_cast<int64_t>(resumed[0].step) : exportsBest ? bestStep.load() : reachedStep;
}

/// Without what no export has: the optimizer's.
static std::vector<RankState> withoutOptimizer(std::vector<RankState> ranks) {
  for (RankState &rank : ranks)
    std::erase_if(rank, [](const StateView &view) { return view.kind == StateRole::Optimizer; });
  return ranks;
}

bool Run::exportsMerged() const { return options.exportLora == "merged" || options.exportLora == "both"; }

/// Of the leaders.
Status Run::exportWeights(int index) {
  TESSERA_ASSIGN_OR_RETURN(std::vector<StagedState> staged, stageStates());
  const std::vector<RankState> views = withoutOptimizer(viewsOf(staged));
  if (!options.exportOnly)
    TESSERA_RETURN_IF_ERROR(checkReplicas(reachedStep, viewsOf(staged))); // as before a checkpoint
  if (const auto skipped = static_cast<int64_t>(nonFinite[index].skippedInARow());
      skipped > 0 && !exportsBest && isRoot(index))
    log::warn("the final weights are those of step {}: no later one changed them", exportedStep() - skipped);
  if (!options.exportHf.empty())
    TESSERA_RETURN_IF_ERROR(exportFolders(index, views));
  if (options.exportHf.empty() || !options.exportPath.empty())
    TESSERA_RETURN_IF_ERROR(exportFiles(index, views));
  return Status::ok();
}

/// Rank 0 writes.
Status Run::exportFiles(int index, const std::vector<RankState> &views) {
  std::vector<std::string> storage;
  TESSERA_ASSIGN_OR_RETURN(std::vector<RankState> all, collectStates(index, views, storage));
  if (!isRoot(index))
    return Status::ok();
  TESSERA_RETURN_IF_ERROR(nonFinite[index].checkExport(describeNonFinite(all, /*states=*/false)));
  if (lease) // else this could replace the weights of the run that has the folder now
    TESSERA_RETURN_IF_ERROR(lease->check());
  const std::string path = options.exportPath.empty() ? folder->modelPath() : options.exportPath;
  const std::map<std::string, std::string> metadata = {{"step", std::to_string(exportedStep())}};
  const std::vector<Adapter> adapters = adaptersOf(*artifact);
  const bool hasBuffers = std::any_of(all.front().begin(), all.front().end(),
                                      [](const StateView &view) { return view.kind == StateRole::Buffer; });
  if (hasBuffers && !adapters.empty() && !exportsMerged())
    log::warn(
        "files of adapters have no buffers, which the model has changed: '--export-lora both' writes them with the "
        "merged weights");
  const std::string like = likeFolder();
  const AdapterFolder asFolder{WeightMap::of(*artifact), like.empty() ? "" : absolutePath(like).string(), metadata};
  for (StateRole role : exportedRoles()) {
    const bool isAverage = role == StateRole::Average;
    const std::string file = isAverage ? averagePath(path) : path;
    if (adapters.empty())
      TESSERA_RETURN_IF_ERROR(exportParameters(file, all, metadata, role));
    else if (exportsMerged())
      TESSERA_RETURN_IF_ERROR(exportMerged(file, all, adapters, metadata, role));
    if (!adapters.empty() && options.exportLora != "merged" && options.exportHf.empty())
      TESSERA_RETURN_IF_ERROR(exportAdapters(folder->adapterFolder(isAverage), all, adapters, asFolder, role));
  }
  if (exportsBest)
    std::printf("weights of step %lld, the best one: %s\n", static_cast<long long>(exportedStep()),
                adapters.empty() || exportsMerged() ? path.c_str() : folder->adapterFolder(false).c_str());
  return Status::ok();
}

std::vector<StateRole> Run::exportedRoles() const {
  return hasAverages(*artifact) ? std::vector{StateRole::Parameter, StateRole::Average}
                                : std::vector{StateRole::Parameter};
}

/// The folder whose files an export has: what was asked for, what the run begins with, or what the run that it
/// continues began with. Empty: none.
std::string Run::likeFolder() const {
  std::error_code error;
  if (!options.exportLike.empty())
    return options.exportLike;
  std::string weights = options.weights;
  if (weights.empty() && !options.resume.empty()) {
    const fs::path resumed = absolutePath(options.resumesAuto() ? options.out : options.resume);
    for (const fs::path &run : {resumed, resumed.parent_path().parent_path()})
      if (weights.empty())
        weights = RunFolder(run.string()).setting("weights");
  }
  if (fs::path(weights).extension() == ".safetensors" &&
      fs::exists(fs::path(weights).parent_path() / "config.json", error))
    weights = fs::path(weights).has_parent_path() ? fs::path(weights).parent_path().string() : ".";
  return fs::is_directory(weights, error) ? weights : "";
}

ModelFolderOptions Run::folderOptions(const std::string &path) const {
  ModelFolderOptions made{.folder = path, .like = likeFolder(), .dtype = dataTypeOfFlag(options.exportDtype)};
  if (!world.empty() && isRemote()) { // while the run opens, there may be no world yet
    Communicator &self = *world.front();
    made.peers = {self.rank(),
                  [&self](const std::string &text) { return self.gatherBlobs(text, "writing of the weights"); }};
  }
  if (lease)
    made.mayPublish = [this] { return lease->check(); };
  return made;
}

/// All processes write. What is written may fail at the last moment: then the state is in a checkpoint.
Status Run::exportFolders(int index, const std::vector<RankState> &views) {
  const Status finite = nonFinite[index].checkExport(describeNonFinite(views, /*states=*/false));
  TESSERA_RETURN_IF_ERROR(agree(folderOptions(options.exportHf).peers, finite, "").status());
  for (const auto &[path, role, isOfAdapters] : exportedFolders()) {
    if (isAlreadyExported(path)) {
      if (isRoot(index))
        std::printf("weights of step %lld: %s, as the run before left it\n", static_cast<long long>(exportedStep()),
                    path.c_str());
      continue;
    }
    Status written = isOfAdapters ? exportAdapterFolder(index, views, path, role) : exportFolder(views, path, role);
    if (!written.isOk() && !options.exportOnly && !exportsBest && lastCheckpoint != reachedStep) {
      TESSERA_RETURN_IF_ERROR(saveCheckpoint(reachedStep));
      TESSERA_RETURN_IF_ERROR(checkpoints->finish());
    }
    if (!written.isOk() && exportsBest)
      return TESSERA_ERROR(IoError, written.message() +
                                        "; the state is in the run's best checkpoint, of which --resume " +
                                        folder->checkpointFolder() + "/best --export-only writes the weights");
    if (!written.isOk() && !options.exportOnly)
      return TESSERA_ERROR(IoError, written.message() +
                                        "; the state is in the run's last checkpoint, of which --resume " +
                                        options.out + " --export-only writes the weights");
    TESSERA_RETURN_IF_ERROR(written);
    if (isRoot(index))
      std::printf("weights of step %lld%s: %s\n", static_cast<long long>(exportedStep()),
                  exportsBest ? ", the best one" : "", path.c_str());
  }
  return Status::ok();
}

Status Run::exportFolder(const std::vector<RankState> &views, const std::string &path, StateRole role) const {
  const std::vector<Adapter> adapters = adaptersOf(*artifact);
  const ModelFolderOptions made = folderOptions(path);
  std::vector<AdapterProduct> products;
  if (!adapters.empty()) {
    TESSERA_ASSIGN_OR_RETURN(products, gatherProducts(made.peers, views, adapters, role));
  }
  const Result<ModelFolderPlan> plan = planFolder(path);
  TESSERA_RETURN_IF_ERROR(agree(made.peers, plan.status(), "").status());
  return writeModelFolder(made, *plan, views, role, products);
}

/// For PEFT; rank 0 writes, and all fail or none.
Status Run::exportAdapterFolder(int index, const std::vector<RankState> &views, const std::string &path,
                                StateRole role) const {
  std::vector<std::string> storage;
  TESSERA_ASSIGN_OR_RETURN(std::vector<RankState> all, collectStates(index, views, storage));
  const AdapterFolder asFolder{
      WeightMap::of(*artifact), absolutePath(likeFolder()).string(), {{"step", std::to_string(exportedStep())}}};
  Status written;
  if (isRoot(index)) {
    const std::string temporary = temporaryName(absolutePath(path).string());
    written = exportAdapters(temporary, all, adaptersOf(*artifact), asFolder, role);
    std::error_code error;
    if (written.isOk() && lease)
      written = lease->check();
    if (written.isOk())
      written = publishFolder(temporary, path);
    if (!written.isOk())
      fs::remove_all(temporary, error);
  }
  return agree(folderOptions(path).peers, written, "").status();
}

/// What --export-hf makes: the model, or adapters for PEFT, or both; averages beside them.
std::vector<Run::ExportedFolder> Run::exportedFolders() const {
  std::vector<ExportedFolder> folders;
  const bool hasAdapters = !adaptersOf(*artifact).empty();
  for (StateRole role : exportedRoles()) {
    const std::string path = role == StateRole::Average ? averagePath(options.exportHf) : options.exportHf;
    folders.push_back({path, role, hasAdapters && !exportsMerged()});
    if (hasAdapters && options.exportLora == "both")
      folders.push_back({path + "-adapter", role, true});
  }
  return folders;
}

Result<ModelFolderPlan> Run::planFolder(const std::string &path) const {
  ModelTensors parameters = modelTensorsOf(*artifact);
  for (const std::string &name : namesOf(adaptersOf(*artifact)))
    parameters.erase(name);
  return ModelFolderPlan::make(folderOptions(path), WeightMap::of(*artifact), parameters);
}

/// Whether a run that ended as it should have has left the folder, and a script has started it again.
bool Run::isAlreadyExported(const std::string &path) const {
  std::error_code error;
  return isStartedAgain && fs::is_directory(path, error);
}

/// A place for a folder that nothing else of the run has.
Status Run::checkExportedFolder(const std::string &path) const {
  std::error_code error;
  const fs::path made = absolutePath(path), parent = made.parent_path();
  const std::string what = "--export-hf: '" + path + "'";
  if (isAlreadyExported(path)) {
    const RunFolder before(options.out);
    const int64_t finished = before.finishedStep().value_or(0), exported = before.exportedStep().value_or(finished);
    const int64_t wanted = options.keepsBest && !options.exportsLastStep
                               ? EvaluationHistory::of(before.evaluations(), finished).bestStep.value_or(finished)
                               : finished;
    return exported == wanted ? Status::ok()
                              : TESSERA_ERROR(InvalidArgument,
                                              fmt::format("{} has the weights of step {}, and those of step {} were to "
                                                          "be written: remove it, or name another folder",
                                                          what, exported, wanted));
  }
  if (fs::exists(fs::symlink_status(made, error)))
    return TESSERA_ERROR(InvalidArgument, what + " exists; remove it or name another folder");
  if (fs::exists(parent / "latest", error) ||
      (!options.out.empty() && parent == absolutePath(options.out) / "checkpoints"))
    return TESSERA_ERROR(InvalidArgument, what + " is among checkpoints; name another folder");
  const fs::path out = options.out.empty() ? fs::path() : absolutePath(options.out);
  if (made == out || (!options.exportPath.empty() && made == absolutePath(options.exportPath)) ||
      (parent == out && RunFolder::isOwnName(made.filename().string())))
    return TESSERA_ERROR(InvalidArgument, what + " is what the run makes itself; name another folder");
  if (parent != out && !fs::is_directory(parent, error))
    return TESSERA_ERROR(InvalidArgument, "--export-hf: there is no folder '" + parent.string() + "'");
  if (parent != out && access(parent.c_str(), W_OK) != 0)
    return TESSERA_ERROR(InvalidArgument, "--export-hf: the folder '" + parent.string() + "' is not writable");
  return Status::ok();
}

/// What can be known of it is known before the first step.
Status Run::checkFolderExport() {
  if (options.exportHf.empty()) {
    if (!options.exportDtype.empty() || !options.exportLike.empty())
      return TESSERA_ERROR(InvalidArgument, "--export-dtype and --export-like are of --export-hf");
    return Status::ok();
  }
  const std::string like = likeFolder();
  std::error_code error;
  if (like.empty())
    return TESSERA_ERROR(
        InvalidArgument,
        "--export-hf writes the files of a folder of Hugging Face's, and --weights names none: name one of "
        "this model by --export-like");
  if (!fs::is_directory(like, error))
    return TESSERA_ERROR(NotFound, "--export-like: there is no folder '" + like + "'");
  if (!adaptersOf(*artifact).empty() && !exportsMerged() && isWithoutWeights(like))
    return TESSERA_ERROR(InvalidArgument,
                         "the adapters of --export-hf would be without the model that they are for, since '" + like +
                             "' has no weights: --export-lora merged writes it with them");
  if (!options.exportDtype.empty() && !adaptersOf(*artifact).empty() && options.exportLora != "merged")
    return TESSERA_ERROR(InvalidArgument, "--export-dtype is of whole models; adapters are f32 (--export-lora merged)");
  const RunFolder before(options.out);
  if (const auto finished = options.resumesAuto() ? before.finishedStep() : std::nullopt)
    isStartedAgain = *finished == totalSteps || isPatienceOver(*finished);
  for (const ExportedFolder &exported : exportedFolders())
    TESSERA_RETURN_IF_ERROR(checkExportedFolder(exported.path));
  TESSERA_ASSIGN_OR_RETURN(const ModelFolderPlan plan, planFolder(options.exportHf));
  std::string names;
  for (const std::string &name : plan.unknownCopies())
    names += (names.empty() ? "'" : ", '") + name + "'";
  if (!names.empty() && hasRoot())
    log::warn("--export-hf: no parameter of the program is {}: copied as in '{}'", names, like);
  return Status::ok();
}

/// The state is there; nothing is trained.
Status Run::exportOnly(int index) {
  begun = true;
  if (index == 0) {
    BusyScope busy(*world[index]);
    TESSERA_RETURN_IF_ERROR(exportWeights(index));
  }
  return endTogether(index);
}

} // namespace tessera
