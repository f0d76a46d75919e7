//===- InitialValues.cpp - what the parameters of a new run begin with -------===//

#include "runtime/state/InitialValues.h"

#include "runtime/state/Adapters.h"
#include "runtime/state/Init.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

namespace fs = std::filesystem;

namespace tessera {

static constexpr const char *waysOut = "--weights FILE names a file of values, --weights fresh begins by rule";

/// Where the model file may be: from the artifact's folder as it was then, by the name it had on the command line, and
/// beside the artifact.
static std::vector<std::string> placesOf(const Artifact &artifact, const artifact::ModelFile &file) {
  const fs::path folder = fs::path(artifact.path()).parent_path(), path = file.path()->str();
  std::vector<std::string> places;
  for (const fs::path &place : {folder / file.from_artifact()->str(), path, folder / path.filename()})
    if (std::find(places.begin(), places.end(), place.string()) == places.end())
      places.push_back(place.string());
  return places;
}

/// The values in a file, and their fingerprint.
static Result<std::pair<std::unique_ptr<WeightSource>, std::string>> openValues(const std::string &path) {
  TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> source, WeightSource::open(path));
  TESSERA_ASSIGN_OR_RETURN(std::string content, source->fingerprint());
  return std::pair(std::move(source), std::move(content));
}

Status InitialValues::openModelFile(const Artifact &artifact, const artifact::ModelFile &file,
                                    const std::string &place) {
  const std::string begins =
      "artifact '" + artifact.path() + "' begins with the values of '" + file.path()->str() + "'";
  if (file.content()->size() == 0)
    return TESSERA_ERROR(InvalidArgument, begins + ", which could not be read again when it was compiled; " + waysOut);
  std::string other, looked;
  for (const std::string &path : place.empty() ? placesOf(artifact, file) : std::vector<std::string>{place}) {
    std::error_code error;
    looked += (looked.empty() ? "'" : ", '") + path + "'";
    if (!fs::is_regular_file(path, error)) {
      if (error && error != std::errc::no_such_file_or_directory && other.empty())
        other = "'" + path + "' cannot be read: " + error.message();
      continue;
    }
    auto found = openValues(path);
    if (found.isOk() && found->second == file.content()->string_view()) {
      std::tie(source, contentText) = *std::move(found);
      return Status::ok();
    }
    if (other.empty())
      other = found.isOk() ? fmt::format("the values in '{}' have changed since it was compiled: compile it again, or "
                                         "begin with the new ones by --weights {}",
                                         path, path)
                           : found.status().message();
  }
  if (other.empty())
    return TESSERA_ERROR(NotFound, begins + ", which is gone (looked for " + looked +
                                       "); --model-file says where it is now, " + waysOut);
  return TESSERA_ERROR(InvalidArgument, begins + ", but " + other + "; " + waysOut);
}

/// Beside random matrices adapters are trained only if somebody asked for that.
Status InitialValues::checkAdapters(const Artifact &artifact) const {
  for (const Adapter &adapter : adaptersOf(artifact)) {
    const auto *entries = source ? &source->entries() : nullptr;
    const auto entry = entries ? entries->find(adapter.parameter) : decltype(entries->end())();
    if (!entries || entry == entries->end() || entry->second.problem == WeightProblem::Valueless)
      return TESSERA_ERROR(InvalidArgument, "artifact '" + artifact.path() + "' trains adapters beside '" +
                                                adapter.parameter + "', of which the model file has no values; " +
                                                waysOut);
  }
  return Status::ok();
}

Result<InitialValues> InitialValues::open(const Artifact &artifact, const std::string &weights,
                                          const std::string &modelFile, const NameFilter &isPartial) {
  InitialValues values;
  const artifact::ModelFile *file = artifact.package().model_file();
  values.options.isZeroed = true;
  if (!modelFile.empty() && (!weights.empty() || !file))
    return TESSERA_ERROR(InvalidArgument, "--model-file says where the model file is, " +
                                              (file ? "and --weights names other values: give one of them"
                                                    : "but that of artifact '" + artifact.path() + "' has no values"));
  if (isPartial && (weights.empty() || weights == freshWeights))
    return TESSERA_ERROR(InvalidArgument, "--weights-partial is of a file or folder that --weights names");
  if (weights == freshWeights)
    return values;
  if (const auto *tensors = artifact.package().tensors())
    for (const artifact::ModelTensor *tensor : *tensors) {
      if (tensor->role() == artifact::TensorRole::Unused)
        values.options.unread.insert(tensor->name()->str());
      if (tensor->role() == artifact::TensorRole::Constant)
        values.options.constants.insert(tensor->name()->str());
    }
  if (weights.empty()) {
    values.options.isModelFile = true;
    if (file)
      TESSERA_RETURN_IF_ERROR(values.openModelFile(artifact, *file, modelFile));
    TESSERA_RETURN_IF_ERROR(values.checkAdapters(artifact));
    return values;
  }
  auto opened = openValues(weights);
  TESSERA_RETURN_IF_ERROR(opened.status());
  std::tie(values.source, values.contentText) = *std::move(opened);
  const WeightMap map = WeightMap::of(artifact);
  values.options.unread.insert(map.unread().begin(), map.unread().end());
  values.options.unmapped = map.refused();
  const auto parameters = modelTensorsOf(artifact);
  TESSERA_RETURN_IF_ERROR(values.source->assemble(map, parameters));
  auto isNamed = [&](const auto &each) { return isPartial(each.first); };
  if (isPartial && std::none_of(parameters.begin(), parameters.end(), isNamed) &&
      std::none_of(values.source->entries().begin(), values.source->entries().end(), isNamed))
    return TESSERA_ERROR(InvalidArgument, "--weights-partial matches no parameter, and no tensor of '" + weights + "'");
  values.options.isPartial = isPartial;
  values.options.optional = namesOf(adaptersOf(artifact));
  values.options.isModelFile = file && values.contentText == file->content()->string_view();
  return values;
}

Status InitialValues::set(const RankState &views, uint64_t seed) const {
  if (!source)
    return initialiseState(views, seed, /*isZeroed=*/true);
  Status loaded = loadWeights(views, *source, seed, options);
  if (loaded.code() == StatusCode::InvalidArgument && options.isModelFile)
    return TESSERA_ERROR(InvalidArgument, loaded.message() + "; " + waysOut);
  return loaded;
}

/// "normal(0, 0.02)"; bounds of uniform values differ from parameter to parameter and are left out.
static std::string ruleText(const InitSpec &init) {
  switch (init.kind) {
  case artifact::InitKind::Constant:
    return fmt::format("{}", init.a);
  case artifact::InitKind::Normal:
    return fmt::format("normal({}, {})", init.a, init.b);
  case artifact::InitKind::Uniform:
    return "uniform";
  }
  return "?";
}

std::string InitialValues::describe(const Artifact &artifact, uint64_t seed) const {
  struct Rule {
    std::string text, example;
    size_t count = 0;
  };
  std::vector<Rule> rules;
  size_t given = 0;
  const Result<RankState> views = makeRankState(artifact, 0, [](size_t) { return nullptr; });
  for (const StateView &view : views.isOk() ? *views : RankState()) {
    if (!view.kind.isOfModel())
      continue;
    for (const ParameterSegment *parameter : parametersOf(view)) {
      if (source && entryOf(*source, *parameter, options)) {
        ++given;
      } else if (parameter->init) {
        std::string text = ruleText(*parameter->init);
        auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule &each) { return each.text == text; });
        if (rule == rules.end())
          rule = rules.insert(rules.end(), {std::move(text), parameter->name});
        ++rule->count;
      }
    }
  }
  std::string text;
  if (given > 0)
    text = fmt::format("{} tensor{} of '{}'", given, given == 1 ? "" : "s", source->path());
  if (!rules.empty())
    text += fmt::format("{}by rule (seed {}): ", given > 0 ? "; " : "", seed);
  for (const Rule &rule : rules)
    text += fmt::format("{}{} for {} ({}{})", &rule == rules.data() ? "" : ", ", rule.text, rule.count, rule.example,
                        rule.count > 1 ? ", …" : "");
  return text + leftOver(modelTensorsOf(artifact));
}

/// "; 3 tensors left over ('a', 'b', …)": tensors that --weights-partial lets the files have beyond the model's.
std::string InitialValues::leftOver(const ModelTensors &parameters) const {
  if (!source || !options.isPartial)
    return "";
  std::string names;
  size_t count = 0;
  for (const auto &[name, entry] : source->entries())
    if (parameters.count(name) == 0 && !options.unread.count(name) && options.isPartial(name) && ++count <= 2)
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", name);
  return count == 0 ? ""
                    : fmt::format("; {} tensor{} left over ({}{})", count, count == 1 ? "" : "s", names,
                                  count > 2 ? ", …" : "");
}

} // namespace tessera
