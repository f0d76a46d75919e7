#include "tools/tessera-compile/driver/Options.h"

#include "compiler/dialect/train/Fp8Policy.h"
#include "compiler/dialect/train/Optimizer.h"
#include "passes/differentiate/remat/Policy.h"
#include "passes/shard/SequenceStrategy.h"
#include "passes/shard/Strategy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

namespace tessera {

static int64_t countRanks(const CompileOptions &options, llvm::function_ref<bool(const dist::AxisRoleInfo &)> counts) {
  int64_t ranks = 1;
  for (const MeshAxis &axis : options.mesh)
    if (counts(dist::getInfo(axis.role)))
      ranks *= axis.size;
  return ranks;
}

std::map<std::string, double> completeOptimizerSettings(const CompileOptions &options) {
  std::map<std::string, double> settings = options.optimizerSettings;
  train::completeSettings(*train::findOptimizer(options.optimizer), settings);
  return settings;
}

double weightDecayOf(const CompileOptions &options) {
  return options.weightDecay.value_or(train::findOptimizer(options.optimizer)->weightDecay);
}

ScheduleRequest scheduleRequest(const CompileOptions &options) {
  return {options.schedule, options.learningRate, options.minLearningRate,
          options.warmup,   options.decaySteps,   options.decayCurve};
}

int64_t numRanks(const CompileOptions &options) {
  return countRanks(options, [](const dist::AxisRoleInfo &) { return true; });
}
int64_t numSampleRanks(const CompileOptions &options) {
  return countRanks(options, [](const dist::AxisRoleInfo &info) { return info.splitsSamples; });
}
int64_t numStateRanks(const CompileOptions &options) {
  return countRanks(options, [](const dist::AxisRoleInfo &info) { return info.splitsState; });
}

int64_t numTokenRanks(const CompileOptions &options) {
  return countRanks(options, [](const dist::AxisRoleInfo &info) { return info.splitsSamples || info.splitsPositions; });
}

std::optional<std::string> sequenceFit(const CompileOptions &options) {
  llvm::StringRef fit = options.fit ? llvm::StringRef(*options.fit) : llvm::StringRef();
  if (!fit.consume_front("sequence") || (!fit.empty() && !fit.consume_front(":")))
    return std::nullopt;
  return fit.empty() && options.fit->back() != ':' ? "target" : fit.str();
}

/// Bytes of a tile; where it is auto `bytes` if sequence axes split positions. 0: no tiles.
static int64_t tileBytes(const CompileOptions &options, const std::string &tile, int64_t bytes) {
  if (tile == "auto") {
    const bool isSplit = countRanks(options, [](const dist::AxisRoleInfo &info) { return info.splitsPositions; }) > 1;
    return isSplit ? bytes : 0;
  }
  const std::optional<double> given = parseBytes(tile);
  return given ? static_cast<int64_t>(std::min(std::max(*given, 1.0), 0x1p62)) : 0;
}
int64_t attentionMemoryBytes(const CompileOptions &options) {
  const std::optional<double> given = parseBytes(options.attentionMemory);
  return given ? static_cast<int64_t>(std::min(std::max(*given, 1.0), 0x1p62)) : 0;
}
std::string wrapPolicy(const CompileOptions &options) {
  const std::optional<double> bytes =
      options.wrap.rfind("size:", 0) == 0 ? parseBytes(options.wrap.substr(5)) : std::nullopt;
  return bytes ? "size:" + std::to_string(static_cast<int64_t>(std::max(*bytes, 1.0))) : options.wrap;
}
int64_t lossTileBytes(const CompileOptions &options) { return tileBytes(options, options.lossTile, int64_t{1} << 28); }
int64_t mlpTileBytes(const CompileOptions &options) { return tileBytes(options, options.mlpTile, int64_t{1} << 30); }

int64_t numModelRanks(const CompileOptions &options) {
  return countRanks(options, [](const dist::AxisRoleInfo &info) { return info.splitsParameters; });
}

std::string fp8SelectOf(const CompileOptions &options) {
  if (!options.fp8Select.empty())
    return options.fp8Select;
  return options.architecture.empty() ? "all" : "rules"; // of a CPU
}

std::optional<int64_t> fp8Groups(const CompileOptions &options) {
  const std::string &text = options.fp8Amax;
  if (text == "global")
    return 1;
  if (text == "local")
    return numSampleRanks(options);
  int64_t groups = 0;
  const auto [end, error] =
      std::from_chars(text.data() + std::min<size_t>(6, text.size()), text.data() + text.size(), groups);
  const bool isCount = text.rfind("local:", 0) == 0 && error == std::errc() && end == text.data() + text.size();
  return isCount && groups >= 1 ? std::optional(groups) : std::nullopt;
}

std::string epiloguesOf(const CompileOptions &options) {
  if (options.epilogues != "auto")
    return options.epilogues;
  // GELU in products gains from the faster tensor cores of sm_90 on; before, it slows the forward product down.
  if (options.architecture.empty())
    return "none";
  return options.architecture == "sm_80" ? "bias" : "all";
}

std::string formatNumber(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return {text, end};
}

/// Parses "<axis>[:<role>]=<size>".
static std::string parseAxis(const std::string &text, MeshAxis &axis) {
  const size_t equals = text.find('=');
  const std::string left = text.substr(0, equals);
  const size_t colon = left.find(':');
  axis.name = left.substr(0, colon);
  if (equals == std::string::npos || axis.name.empty())
    return "--mesh: expected <axis>=<size> or <axis>:<role>=<size>, got '" + text + "'";
  auto isName = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.'; };
  if (!std::all_of(axis.name.begin(), axis.name.end(), isName))
    return "--mesh: '" + axis.name + "' is no name of an axis, expected letters, digits, '_', '-' and '.'";
  std::optional<dist::AxisRole> role;
  if (colon == std::string::npos) {
    role = dist::findDefaultRole(axis.name);
    if (!role)
      return "--mesh: unknown axis '" + axis.name + "' needs a role, " + axis.name + ":<role>=<size> with " +
             dist::axisRoleNames() + "; names that have one: " + dist::defaultAxisNames();
  } else {
    role = dist::findAxisRole(left.substr(colon + 1));
    if (!role)
      return "--mesh: unknown role '" + left.substr(colon + 1) + "' of axis '" + axis.name + "', expected " +
             dist::axisRoleNames();
  }
  axis.role = *role;
  const std::string number = text.substr(equals + 1);
  const bool isNumber = !number.empty() && std::all_of(number.begin(), number.end(), ::isdigit);
  if (isNumber && number.size() > 6)
    return "--mesh: axis '" + axis.name + "' has " + number + " ranks, and a mesh has 65536 at most";
  if (!isNumber || std::stoll(number) < 1)
    return ("--mesh: axis '" + axis.name).append("' needs a size of at least 1, got '").append(number).append("'");
  axis.size = std::stoll(number);
  const llvm::StringRef missing = dist::getInfo(axis.role).missing;
  if (axis.size > 1 && !missing.empty())
    return "--mesh: axis '" + axis.name + "' has the role " + dist::getInfo(axis.role).name.str() +
           " and cannot be larger than 1: " + missing.str();
  return "";
}

std::string parseMesh(const std::string &text, std::vector<MeshAxis> &mesh) {
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    MeshAxis axis{};
    if (std::string error = parseAxis(part, axis); !error.empty())
      return error;
    if (std::any_of(mesh.begin(), mesh.end(), [&](const MeshAxis &known) { return known.name == axis.name; }))
      return "--mesh: axis '" + axis.name + "' is given twice";
    mesh.push_back(std::move(axis));
  }
  return mesh.empty() ? "--mesh: expected <axis>=<size>[,…]" : "";
}

std::string meshText(const CompileOptions &options) {
  std::string text;
  for (const MeshAxis &axis : options.mesh)
    text += (text.empty() ? "" : ",") + dist::axisText(axis.name, axis.role) + "=" + std::to_string(axis.size);
  return text;
}

std::optional<double> parseBytes(const std::string &text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' '));
  static const std::map<std::string, double> units = {{"", 1},         {"B", 1},       {"KB", 1e3},     {"MB", 1e6},
                                                      {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10}, {"MiB", 0x1p20},
                                                      {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  const auto factor = units.find(unit);
  if (error != std::errc() || factor == units.end())
    return std::nullopt;
  const double bytes = number * factor->second;
  return bytes > 0 && bytes < 0x1p63 ? std::optional(bytes) : std::nullopt;
}

namespace {
std::string oneOf(const char *flag, const std::string &value, std::initializer_list<const char *> allowed) {
  std::string list;
  for (const char *name : allowed) {
    if (value == name)
      return "";
    list += list.empty() ? name : std::string(", ") + name;
  }
  return std::string(flag) + ": unknown value '" + value + "', expected one of " + list;
}

std::string firstError(std::initializer_list<std::string> errors) {
  for (const std::string &error : errors)
    if (!error.empty())
      return error;
  return "";
}

std::string eachOneOf(const char *flag, const std::vector<std::string> &values,
                      std::initializer_list<const char *> allowed) {
  for (const std::string &value : values)
    if (std::string error = oneOf(flag, value, allowed); !error.empty())
      return error;
  return "";
}

/// Texts reach the passes between braces, where braces of their own must match.
std::string balanced(const char *flag, const std::string &text) {
  int depth = 0;
  for (char c : text)
    if (depth += c == '{' ? 1 : c == '}' ? -1 : 0; depth < 0)
      break;
  return depth == 0 ? "" : std::string(flag) + ": braces must be balanced, got '" + text + "'";
}

std::string eachBalanced(const char *flag, const std::vector<std::string> &texts) {
  for (const std::string &text : texts)
    if (std::string error = balanced(flag, text); !error.empty())
      return error;
  return "";
}

bool isAmount(double value) { return value >= 0 && std::isfinite(value); }

std::string require(bool condition, std::string message) { return condition ? "" : std::move(message); }

std::string checkOptimizer(const CompileOptions &o) {
  const train::Optimizer *optimizer = train::findOptimizer(o.optimizer);
  if (!optimizer)
    return "--optimizer: unknown value '" + o.optimizer + "', expected " + train::optimizerNames();
  std::map<std::string, double> settings = o.optimizerSettings;
  if (std::string problem = train::completeSettings(*optimizer, settings); !problem.empty())
    return "--optimizer " + o.optimizer + ": " + problem;
  return require(o.moments != "bf16" || optimizer->hasNarrowStates,
                 "--moments bf16 is not for " + o.optimizer + ": its states have no random rounding");
}

std::string checkSchedule(const CompileOptions &o) {
  artifact::LearningRateT rate;
  return makeLearningRate(scheduleRequest(o), rate);
}

std::string checkMetrics(const CompileOptions &o) {
  for (const std::string &metric : o.metrics)
    if (metric.rfind("output:", 0) != 0)
      if (std::string error = oneOf("--metric", metric, {"accuracy", "output:<name>"}); !error.empty())
        return error;
  return "";
}

std::string checkSequence(const CompileOptions &o) {
  if (const std::string error = shard::parseAttention(o.attention).error; !error.empty())
    return "--attention: " + error;
  if (const std::string error = shard::parseOrder(o.sequenceOrder).error; !error.empty())
    return "--sequence-order: " + error;
  const bool hasAxis =
      llvm::any_of(o.mesh, [](const MeshAxis &axis) { return dist::getInfo(axis.role).splitsPositions; });
  return firstError({
      require(hasAxis || o.attention == "auto", "--attention: the mesh has no sequence axis, such as seq=2"),
      require(o.attentionMemory == "all" || parseBytes(o.attentionMemory),
              "--attention-memory: expected bytes (512MiB) or all, got '" + o.attentionMemory + "'"),
      oneOf("--attention-gather", o.attentionGather, {"compute", "fp32"}),
      require(hasAxis || o.attentionMemory == "all",
              "--attention-memory: the mesh has no sequence axis, such as seq=2"),
      require(hasAxis || o.attentionGather == "compute",
              "--attention-gather: the mesh has no sequence axis, such as seq=2"),
      require(hasAxis || o.sequenceOrder == "auto", "--sequence-order: the mesh has no sequence axis, such as seq=2"),
  });
}

std::string checkStrategy(const CompileOptions &o) {
  const shard::Strategy *strategy = shard::findStrategy(o.strategy);
  if (!strategy)
    return "--strategy: unknown value '" + o.strategy + "', expected " + shard::strategyNames();
  auto gathersTwice = [](const shard::Strategy &row) { return row.gather == shard::Gather::ForEachPhase; };
  return require(o.keepGathered.empty() || gathersTwice(*strategy), "--keep-gathered needs --strategy " +
                                                                        shard::strategyNames(gathersTwice) + ": " +
                                                                        o.strategy + " gathers no unit twice");
}
} // namespace

std::optional<Prefetch> parsePrefetch(const std::string &text) {
  Prefetch prefetch;
  prefetch.isAuto = text == "auto";
  if (prefetch.isAuto)
    return prefetch;
  if (text == "none")
    return Prefetch{false, 0, "none"};
  std::stringstream list(text);
  int parts = 0;
  for (std::string part; std::getline(list, part, ','); ++parts) {
    const std::string value = part.substr(std::min(part.size(), part.find('=') + 1));
    if (part == "forward=" + value && !value.empty() && value.size() < 5 &&
        value.find_first_not_of("0123456789") == std::string::npos)
      prefetch.forward = std::stoll(value);
    else if (part == "backward=" + value && (value == "pre" || value == "post" || value == "none"))
      prefetch.backward = value;
    else
      return std::nullopt;
  }
  return parts > 0 && text.back() != ',' ? std::optional(prefetch) : std::nullopt;
}

std::optional<Lora> parseLora(const std::string &text) {
  static const std::set<std::string> keys = {"rank", "alpha", "targets", "train"};
  std::map<std::string, std::string> values;
  std::stringstream stream(text);
  std::string *last = nullptr;
  for (std::string part; std::getline(stream, part, ',');) {
    const std::string key = part.substr(0, part.find('='));
    if (key.size() < part.size() && keys.count(key)) {
      const auto [entry, isNew] = values.emplace(key, part.substr(key.size() + 1));
      if (!isNew)
        return std::nullopt;
      last = &entry->second;
    } else if (last) {
      last->append(",").append(part); // of an expression
    } else {
      return std::nullopt;
    }
  }
  auto read = [](const std::string &from, auto &number) {
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), number);
    return error == std::errc() && end == from.data() + from.size();
  };
  Lora lora{0, 0, values["targets"], values["train"]};
  const bool isRead = read(values["rank"], lora.rank) && read(values["alpha"], lora.alpha);
  return isRead && lora.rank >= 1 && lora.alpha > 0 && std::isfinite(lora.alpha) && !lora.targets.empty()
             ? std::optional(lora)
             : std::nullopt;
}

static std::string checkFp8(const CompileOptions &o) {
  if (o.precision != "fp8") {
    std::string given;
    for (const std::string &flag : o.fp8Flags)
      given += (given.empty() ? "" : ", ") + flag;
    return require(given.empty(), given + (o.fp8Flags.size() == 1 ? " needs" : " need") + " --precision fp8");
  }
  if (!train::symbolizeFp8Recipe(o.fp8Recipe))
    return "--fp8-recipe: unknown value '" + o.fp8Recipe + "', expected one of " + train::recipeNames();
  return require(fp8Groups(o).has_value(),
                 "--fp8-amax: expected global, local or local:<groups>, got '" + o.fp8Amax + "'");
}

/// Ranks along model axes without anything that they split would all do the same.
static std::string checkPlace(const CompileOptions &o) {
  const int64_t ranks = numModelRanks(o);
  if (o.place.empty() && ranks > 1)
    return "--mesh: " + std::to_string(ranks) +
           " ranks along model axes need --place <regex>=<dimension>, the parameters that they split";
  if (!o.place.empty() && ranks == 1)
    return "--place: the mesh has no model axis larger than 1, such as tp=2";
  return "";
}

std::string checkOptions(const CompileOptions &o) {
  const bool budget = o.remat.rfind("budget=", 0) == 0;
  const bool sized = o.wrap.rfind("size:", 0) == 0;
  return firstError({
      balanced("--loss", o.loss),
      balanced("--wrap", o.wrap),
      balanced("--no-decay", o.noDecay),
      balanced("--keep-gathered", o.keepGathered),
      balanced("--keep-f32", o.keepF32),
      oneOf("--frozen-dtype", o.frozenDtype, {"fp32", "bf16"}),
      require(o.keepF32.empty() || o.precision != "fp32", "--keep-f32 needs --precision bf16 or fp8"),
      balanced("--fp8-filter", o.fp8Filter),
      balanced("--fp8-keep-bf16", o.fp8KeepBf16),
      oneOf("--fp8-select", o.fp8Select, {"", "all", "rules", "auto"}),
      oneOf("--fp8-nonfinite", o.fp8Nonfinite, {"propagate", "scale1"}),
      checkFp8(o),
      balanced("--target", o.target),
      balanced("--remat-report", o.rematReport),
      eachBalanced("--init", o.init),
      eachBalanced("--place", o.place),
      checkPlace(o),
      o.loss.rfind("output:", 0) == 0 ? "" : oneOf("--loss", o.loss, {"cross-entropy", "mse", "output:<name>"}),
      balanced("--lora", o.lora),
      require(o.lora.empty() || parseLora(o.lora),
              "--lora: expected rank=<number>,alpha=<number>,targets=<regex>[,train=<regex>], got '" + o.lora + "'"),
      oneOf("--recognize-by-values", o.recognizeByValues, {"on", "off"}),
      oneOf("--moments", o.moments, {"fp32", "bf16"}),
      checkOptimizer(o),
      oneOf("--guard-updates", o.guardUpdates, {"on", "off"}),
      checkStrategy(o),
      oneOf("--index-check", o.indexCheck, {"error", "clamp"}),
      oneOf("--document-ids", o.documentIds, {"contiguous", "any"}),
      require(budget || llvm::any_of(remat::policies(), [&](const auto &policy) { return policy.name == o.remat; }),
              "--remat: unknown value '" + o.remat + "', expected " + remat::policyNames() + "=<bytes>"),
      require(!budget || parseBytes(o.remat.substr(7)),
              "--remat: expected budget=<bytes>, e.g. 2e9 or 512MiB, got '" + o.remat + "'"),
      eachOneOf("--offload", o.offload, {"optimizer", "parameters", "activations"}),
      oneOf("--epilogues", o.epilogues, {"auto", "none", "bias", "all"}),
      oneOf("--reduce-dtype", o.reduceDtype, {"fp32", "bf16"}),
      require(o.reduceDtype == "fp32" || o.precision != "fp32", "--reduce-dtype bf16 needs --precision bf16 or fp8"),
      oneOf("--precision", o.precision, {"fp32", "bf16", "fp8"}),
      sized ? "" : oneOf("--wrap", o.wrap, {"module", "none", "size:<bytes>"}),
      require(!sized || parseBytes(o.wrap.substr(5)), "--wrap: expected size:<bytes> (100MB), got '" + o.wrap + "'"),
      o.batchNorm.empty() ? "" : oneOf("--batch-norm", o.batchNorm, {"train", "inference"}),
      require(o.accumulate >= 1, "--accumulate must be at least 1, got " + std::to_string(o.accumulate)),
      require(o.labelSmoothing >= 0 && o.labelSmoothing < 1, "--label-smoothing must be in [0, 1)"),
      require(o.loss == "cross-entropy" || (o.labelSmoothing == 0 && o.ignoreIndex == CompileOptions{}.ignoreIndex),
              "--label-smoothing and --ignore-index are of --loss cross-entropy, got --loss " + o.loss),
      require(isAmount(o.learningRate) && isAmount(o.minLearningRate),
              "--lr and --min-lr must be finite and not negative"),
      require(isAmount(o.weightDecay.value_or(0)), "--weight-decay must be finite and not negative"),
      require(isAmount(o.clipNorm), "--clip-norm must be finite and not negative"),
      require(isAmount(o.clipValue), "--clip-value must be finite and not negative"),
      require(o.ema >= 0 && o.ema < 1, "--ema must be in [0, 1)"),
      require(o.metrics.empty() || o.evaluate, "--metric is of evaluations: add --evaluate"),
      eachBalanced("--metric", o.metrics),
      checkMetrics(o),
      checkSchedule(o),
      require(parsePrefetch(o.prefetch).has_value(),
              "--prefetch: expected none, auto, or forward=<units>,backward=<pre|post|none>, got '" + o.prefetch + "'"),
      require(o.memoryLimit.empty() || parseBytes(o.memoryLimit),
              "--memory-limit: expected bytes (80e9, 40GiB), got '" + o.memoryLimit + "'"),
      checkSequence(o),
      require(o.lossTile == "none" || o.lossTile == "auto" || parseBytes(o.lossTile),
              "--loss-tile: expected bytes (256MiB), none or auto, got '" + o.lossTile + "'"),
      require(o.mlpTile == "none" || o.mlpTile == "auto" || parseBytes(o.mlpTile),
              "--mlp-tile: expected bytes (1GiB), none or auto, got '" + o.mlpTile + "'"),
      require(o.keepGathered != "auto" || !o.memoryLimit.empty(), "--keep-gathered=auto needs --memory-limit"),
      require(o.combineBytes >= 0, "--combine-bytes must not be negative"),
      require(numRanks(o) <= 65536, "--mesh has more than 65536 ranks"),
      require(!o.fit || *o.fit == "target" || parseBytes(sequenceFit(o).value_or(*o.fit)) || sequenceFit(o) == "target",
              "--fit: expected bytes (80e9, 40GiB), 'target', 'sequence' or 'sequence:<bytes>', got '" +
                  o.fit.value_or("") + "'"),
      oneOf("--attention-gradient", o.attentionGradient, {"deterministic", "fast"}),
      require(!(o.report || o.fit) || o.compileTo == Phase::Artifact, "--compile-to: a report needs all phases"),
      require(o.compileTo != Phase::Artifact || !o.output.empty() || o.isReportOnly(),
              "-o: the artifact needs a file name"),
  });
}

} // namespace tessera
