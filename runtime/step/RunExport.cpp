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

namespace fs = std::filesystem;

namespace tessera {

/// The step that the state is of.
int64_t Run::exportedStep() const { return options.exportOnly ? static_cast<int64_t>(resumed[0].step) : options.steps; }

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
    TESSERA_RETURN_IF_ERROR(checkReplicas(options.steps, viewsOf(staged))); // as before a checkpoint
  if (const auto skipped = static_cast<int64_t>(nonFinite[index].skippedInARow()); skipped > 0 && isRoot(index))
    log::warn("the final weights are those of step {}: no later one changed them", exportedStep() - skipped);
  if (!options.exportHf.empty())
    TESSERA_RETURN_IF_ERROR(exportFolders(index, views));
  if (options.exportHf.empty() || !options.exportPath.empty() || (options.exportLora == "both" && !options.exportOnly))
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
  const AdapterFolder asFolder{WeightMap::of(*artifact), likeFolder(), metadata};
  for (StateRole role : exportedRoles()) {
    const bool isAverage = role == StateRole::Average;
    const std::string file = isAverage ? averagePath(path) : path;
    const bool isMergedElsewhere = !options.exportHf.empty() && options.exportPath.empty();
    if (adapters.empty())
      TESSERA_RETURN_IF_ERROR(exportParameters(file, all, metadata, role));
    else if (exportsMerged() && !isMergedElsewhere)
      TESSERA_RETURN_IF_ERROR(exportMerged(file, all, adapters, metadata, role));
    if (!adapters.empty() && options.exportLora != "merged" && folder)
      TESSERA_RETURN_IF_ERROR(exportAdapters(folder->adapterFolder(isAverage), all, adapters, asFolder, role));
  }
  return Status::ok();
}

std::vector<StateRole> Run::exportedRoles() const {
  return hasAverages(*artifact) ? std::vector{StateRole::Parameter, StateRole::Average}
                                : std::vector{StateRole::Parameter};
}

/// The folder whose files an export has: what was asked for, or what the run began with.
std::string Run::likeFolder() const {
  std::error_code error;
  if (!options.exportLike.empty())
    return options.exportLike;
  return fs::is_directory(options.weights, error) ? options.weights : "";
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

/// All processes write.
Status Run::exportFolders(int index, const std::vector<RankState> &views) {
  const std::vector<Adapter> adapters = adaptersOf(*artifact);
  TESSERA_RETURN_IF_ERROR(nonFinite[index].checkExport(describeNonFinite(views, /*states=*/false)));
  for (StateRole role : exportedRoles()) {
    const std::string path = role == StateRole::Average ? averagePath(options.exportHf) : options.exportHf;
    const ModelFolderOptions made = folderOptions(path);
    if (!adapters.empty() && !exportsMerged()) {
      std::vector<std::string> storage;
      TESSERA_ASSIGN_OR_RETURN(std::vector<RankState> all, collectStates(index, views, storage));
      const AdapterFolder asFolder{WeightMap::of(*artifact), likeFolder(), {{"step", std::to_string(exportedStep())}}};
      if (isRoot(index))
        TESSERA_RETURN_IF_ERROR(exportAdapters(path, all, adapters, asFolder, role));
    } else {
      std::vector<AdapterProduct> products;
      if (!adapters.empty()) {
        TESSERA_ASSIGN_OR_RETURN(products, gatherProducts(made.peers, views, adapters, role));
      }
      TESSERA_ASSIGN_OR_RETURN(const ModelFolderPlan plan, planFolder(path));
      TESSERA_RETURN_IF_ERROR(writeModelFolder(made, plan, views, role, products));
    }
    if (isRoot(index))
      std::printf("weights of step %lld: %s\n", static_cast<long long>(exportedStep()), path.c_str());
  }
  return Status::ok();
}

Result<ModelFolderPlan> Run::planFolder(const std::string &path) const {
  std::map<std::string, std::vector<int64_t>> parameters = modelTensorsOf(*artifact);
  for (const std::string &name : namesOf(adaptersOf(*artifact)))
    parameters.erase(name);
  return ModelFolderPlan::make(folderOptions(path), WeightMap::of(*artifact), parameters);
}

/// What can be known of it is known before the first step.
Status Run::checkFolderExport() const {
  if (options.exportHf.empty()) {
    if (!options.exportDtype.empty() || !options.exportLike.empty())
      return TESSERA_ERROR(InvalidArgument, "--export-dtype and --export-like are of --export-hf");
    return Status::ok();
  }
  const std::string like = likeFolder();
  std::error_code error;
  if (like.empty())
    return TESSERA_ERROR(InvalidArgument,
                         "--export-hf writes the files of a folder of Hugging Face's: --weights is none, so name one "
                         "of this model by --export-like");
  if (!fs::is_directory(like, error))
    return TESSERA_ERROR(NotFound, "--export-like: there is no folder '" + like + "'");
  for (StateRole role : exportedRoles()) {
    const std::string path = role == StateRole::Average ? averagePath(options.exportHf) : options.exportHf;
    if (fs::exists(fs::symlink_status(path, error)))
      return TESSERA_ERROR(InvalidArgument, "--export-hf: '" + path + "' exists; remove it or name another folder");
    const fs::path parent = absolutePath(path).parent_path();
    if (!fs::is_directory(parent, error))
      return TESSERA_ERROR(InvalidArgument, "--export-hf: there is no folder '" + parent.string() + "'");
  }
  if (!adaptersOf(*artifact).empty() && !exportsMerged())
    return Status::ok();
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
