//===- InitialValues.cpp - what the parameters of a new run begin with -------===//

#include "runtime/state/InitialValues.h"

#include "runtime/state/Adapters.h"
#include "runtime/state/Init.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

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

Status InitialValues::openModelFile(const Artifact &artifact, const artifact::ModelFile &file) {
  const std::string begins =
      "artifact '" + artifact.path() + "' begins with the values of '" + file.path()->str() + "'";
  const std::string content = file.content()->str();
  if (content.empty())
    return TESSERA_ERROR(InvalidArgument, begins + ", which cannot be read again; " + waysOut);
  std::string changed, looked;
  for (const std::string &place : placesOf(artifact, file)) {
    std::error_code error;
    looked += (looked.empty() ? "'" : ", '") + place + "'";
    if (!fs::exists(place, error))
      continue;
    TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> found, WeightSource::open(place));
    TESSERA_ASSIGN_OR_RETURN(std::string now, found->fingerprint());
    if (now == content) {
      source = std::move(found);
      return Status::ok();
    }
    changed = changed.empty() ? place : changed;
  }
  if (changed.empty())
    return TESSERA_ERROR(NotFound, begins + ", which is gone (looked for " + looked + "); " + waysOut);
  return TESSERA_ERROR(InvalidArgument, begins + ", but the values in '" + changed +
                                            "' have changed since it was compiled: compile it again, or begin with the "
                                            "new ones by --weights " +
                                            changed);
}

Result<InitialValues> InitialValues::open(const Artifact &artifact, const std::string &weights) {
  InitialValues values;
  const std::vector<Adapter> adapters = adaptersOf(artifact);
  values.options.isZeroed = true;
  if (weights == freshWeights)
    return values;
  if (!weights.empty()) {
    TESSERA_ASSIGN_OR_RETURN(values.source, WeightSource::open(weights));
    values.options.optional = namesOf(adapters);
    if (const artifact::ModelFile *file = artifact.package().model_file()) {
      TESSERA_ASSIGN_OR_RETURN(std::string content, values.source->fingerprint());
      values.options.isModelFile = content == file->content()->string_view();
    }
    return values;
  }
  if (const artifact::ModelFile *file = artifact.package().model_file()) {
    values.options.isModelFile = true;
    TESSERA_RETURN_IF_ERROR(values.openModelFile(artifact, *file));
  } else if (!adapters.empty()) {
    return TESSERA_ERROR(InvalidArgument, "artifact '" + artifact.path() +
                                              "' trains adapters beside a model without values; " + waysOut);
  }
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

Result<std::string> InitialValues::content() const {
  return source ? source->fingerprint() : std::string(freshWeights);
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
  return text;
}

} // namespace tessera
