//===- Flags.cpp - the flags of tessera-compile ----------------------------===//

#include "tools/tessera-compile/Flags.h"

#include "compiler/dialect/train/Fp8Policy.h"
#include "compiler/dialect/train/Optimizer.h"
#include "passes/differentiate/remat/Policy.h"
#include "passes/shard/SequenceStrategy.h"
#include "passes/shard/Strategy.h"
#include "tools/common/CommandLine.h"
#include "tools/tessera-compile/driver/GlobalBatch.h"

#include <algorithm>

namespace {

void addModelOptions(CLI::App &app, tessera::CompileOptions &o, std::vector<std::string> &dims) {
  app.add_option("model", o.input, "the model: .onnx, .onnxtxt, .pt2 or .mlir with a function @step")->required();
  app.add_option("-o,--output", o.output, "artifact to write");
  app.add_option("--batch", o.batch, "samples of one micro-batch, over all ranks (binds a symbolic first dimension)");
  app.add_option("--seq", o.sequence, "tokens of one sample (binds a symbolic second dimension)");
  tessera::groupOptions(app, "Usually needed");
  app.add_option("--dim", dims, "bind a symbolic dimension: <name>=<value>; may be repeated");
  app.add_option(
      "--dim-role", o.dimRoles,
      "what the dimensions of an input count, where --batch binds another than dimension 0 or --seq another "
      "than dimension 1: <input>:<dimension>=<batch|sequence|none>[,…]; those not named keep what is known of "
      "them; may be repeated");
  app.add_option("--parameters", o.parameters,
                 "regular expression of tensors that are trained, whatever the file says of them (. is all)");
  app.add_option("--constants", o.constants,
                 "regular expression of tensors that are constants; wins over the other two");
  app.add_option("--frozen", o.frozen,
                 "regular expression of parameters that take no gradient; wins over --parameters");
  app.add_option("--tied", o.tied,
                 "regular expression of parameters that several modules share, where the file does not say so itself");
  app.add_option("--padding-idx", o.paddingIdx,
                 "row of an embedding whose lookups take no gradient: <regex>=<row>; may be repeated");
  app.add_option("--batch-norm", o.batchNorm,
                 "what BatchNormalization normalises by, whatever the file says: train (the batch) or inference (the "
                 "running mean and variance)");
  app.add_option(
         "--recognize-by-values", o.recognizeByValues,
         "on: GELU that the file writes in no known form is recognised by its values, with a remark; off: it is "
         "computed as it is written")
      ->capture_default_str();
  app.add_option("--lora", o.lora,
                 "train low-rank adapters beside frozen matrices: rank=<r>,alpha=<a>,targets=<regex of parameters>"
                 "[,train=<regex of parameters that are trained themselves>]");
  app.add_option("--init", o.init,
                 "initial value of parameters: <regex>=<zeros|constant:a|normal:std|uniform:a:b>; first match wins");
  app.add_option(
      "--place", o.place,
      "the model axes of the mesh, or those named, split dimension <d> of these parameters: <regex>=<d>[:<axis>+…]; "
      "first match wins");
  tessera::groupOptions(app, "Model");
}

/// The flags of the numbers that optimizers are told. Those that are given are kept by name.
void addOptimizerSettings(CLI::App &app, tessera::CompileOptions &o) {
  using tessera::train::OptimizerSetting;
  struct Flag {
    std::vector<std::string> names;
    std::string defaults;
    bool isSwitch = false;
  };
  std::vector<std::pair<std::string, Flag>> flags;
  for (const tessera::train::Optimizer *optimizer : tessera::train::allOptimizers()) {
    std::string last;
    for (const OptimizerSetting &setting : optimizer->settings) {
      auto found =
          std::find_if(flags.begin(), flags.end(), [&](const auto &flag) { return flag.first == setting.flag; });
      if (found == flags.end())
        found = flags.insert(flags.end(), {setting.flag, {}});
      Flag &flag = found->second;
      if (std::find(flag.names.begin(), flag.names.end(), setting.name) == flag.names.end())
        flag.names.emplace_back(setting.name);
      flag.isSwitch = setting.kind == tessera::train::SettingKind::Switch;
      const std::string of = std::string(flag.defaults.empty() ? "" : ", ") + optimizer->name + ":";
      flag.defaults += (last == setting.flag ? "" : of) + " " + tessera::formatNumber(setting.fallback);
      last = setting.flag;
    }
  }
  for (const auto &[flag, made] : flags) {
    const std::vector<std::string> names = made.names;
    if (made.isSwitch) {
      app.add_flag_callback(
          "--" + flag, [&o, names] { o.optimizerSettings[names.front()] = 1; },
          "of the optimizer (" + made.defaults.substr(0, made.defaults.find(':')) + ")");
      continue;
    }
    std::string help;
    for (const std::string &name : names)
      help += (help.empty() ? "" : " and ") + name;
    app.add_option_function<std::vector<double>>(
           "--" + flag,
           [&o, names](const std::vector<double> &values) {
             for (size_t i = 0; i < values.size(); ++i)
               o.optimizerSettings[names[i]] = values[i];
           },
           help + " of the optimizer (default: " + made.defaults + ")")
        ->expected(static_cast<int>(names.size()));
  }
}

std::string rematHelp() {
  std::string text = "what the backward pass computes again instead of keeping it: ";
  for (const tessera::remat::PolicyInfo &policy : tessera::remat::policies()) {
    text += policy.name.str();
    text += policy.description.empty() ? ", " : " (" + policy.description.str() + "), ";
  }
  return text + "budget=<bytes> (kept per rank and micro-batch; e.g. 512MiB)";
}

void addTrainingOptions(CLI::App &app, tessera::CompileOptions &o) {
  app.add_option("--loss", o.loss, "cross-entropy, mse, or output:<name> for a loss already in the model")
      ->capture_default_str();
  app.add_option("--ignore-index", o.ignoreIndex, "target that does not count (cross-entropy)")->capture_default_str();
  app.add_option("--label-smoothing", o.labelSmoothing, "in [0, 1) (cross-entropy)")->capture_default_str();
  app.add_flag("--evaluate", o.evaluate,
               "add a program that computes the loss of a batch without training, for tessera-run --eval-data");
  app.add_option(
      "--metric", o.metrics,
      "what evaluations say besides the loss: accuracy (of cross-entropy), or output:<name>, one number that "
      "the model computes; repeatable");
  tessera::groupOptions(app, "Loss and evaluation");
  app.add_option("--optimizer", o.optimizer, tessera::train::optimizerNames())->capture_default_str();
  addOptimizerSettings(app, o);
  app.add_option("--moments", o.moments,
                 "what the optimizer's moments are stored in: fp32, or bf16 (rounded at random; " +
                     tessera::train::optimizerNames([](const auto &row) { return row.hasNarrowStates; }) + ")")
      ->capture_default_str();
  app.add_option(
      "--weight-decay", o.weightDecay,
      "weight decay, as the optimizer defines it: docs/optimize.md (default: 0.01; of sgd 0, as in PyTorch)");
  app.add_option(
      "--no-decay", o.noDecay,
      "regular expression of parameters without decay, or none: all decay (default: those of one dimension or none)");
  app.add_option("--clip-norm", o.clipNorm, "clip gradients to this global norm; 0: do not clip")
      ->capture_default_str();
  app.add_option("--clip-value", o.clipValue,
                 "clip each element of the gradients to [-value, value], after --clip-norm; 0: do not clip")
      ->capture_default_str();
  app.add_option(
         "--ema", o.ema,
         "keep exponential moving averages of the parameters: average = ema * average + (1 - ema) * parameter; 0: "
         "none")
      ->capture_default_str();
  app.add_option("--guard-updates", o.guardUpdates,
                 "on: a step whose loss or gradient norm is not finite changes nothing; off: updates do not wait for "
                 "the norm")
      ->capture_default_str();
  tessera::groupOptions(app, "Optimizer");
  app.add_option(
         "--schedule,--lr-schedule", o.schedule,
         "learning rate after warm-up: constant; linear or cosine (to --min-lr at the last step); inverse-sqrt; wsd "
         "(constant, and a decay in the last --decay-steps)")
      ->capture_default_str();
  app.add_option("--warmup", o.warmup, "steps of linear warm-up")->capture_default_str();
  app.add_option("--min-lr", o.minLearningRate, "where the schedule ends")->capture_default_str();
  app.add_option("--decay-steps", o.decaySteps, "steps of the run's end in which wsd decays");
  app.add_option("--decay-curve", o.decayCurve, "how wsd decays: linear, cosine or 1-sqrt")->capture_default_str();
  app.add_option("--lr", o.learningRate, "peak learning rate; tessera-run can override it")->capture_default_str();
  tessera::groupOptions(app, "Learning rate");
  CLI::Option *accumulate =
      app.add_option("--accumulate", o.accumulate, "micro-batches per step")->capture_default_str();
  app.add_option(
         "--global-batch", o.globalBatch,
         "samples of one step over all ranks and micro-batches, instead of --accumulate; without --batch they are "
         "one micro-batch, or with --fit as few as fit the device")
      ->excludes(accumulate);
  app.add_option(
      "--index-check", o.indexCheck,
      "an index outside of its table that the model computes from data: error (the step fails), or clamp (the "
      "nearest one inside counts)");
  app.add_option(
         "--document-ids", o.documentIds,
         "ids of documents that are an input: contiguous (equal ones lie side by side, or the batch is refused; "
         "attention then has a range of keys for each query), or any (a mask of all pairs)")
      ->capture_default_str();
  app.add_option("--remat", o.remat, rematHelp())->capture_default_str();
  app.add_option("--remat-report", o.rematReport,
                 "what --remat keeps and recomputes: a JSON file, or - for a table (the default of budget)");
  app.add_option(
         "--loss-tile", o.lossTile,
         "bytes of f32 logits that a rank computes at a time, with their loss and gradient, where all would be more "
         "(a cross-entropy of a linear layer): such as 256MiB; none: all at once; auto: 256MiB where sequence axes "
         "split positions, else all")
      ->capture_default_str();
  app.add_option(
         "--mlp-tile", o.mlpTile,
         "bytes of a value between a widening and a narrowing product (hidden values of a feed-forward network) that a "
         "rank computes at a time, where all would be more: such as 1GiB; none: all at once; auto: 1GiB where sequence "
         "axes split positions, else all")
      ->capture_default_str();
  tessera::groupOptions(app, "Batches and recomputation");
  app.add_option("--precision", o.precision,
                 "fp32, bf16, or fp8 (bf16 with products in 8 bits); parameters, gradients and state stay fp32")
      ->capture_default_str();
  app.add_option("--fp8-recipe", o.fp8Recipe, "how values are scaled to 8 bits: " + tessera::train::recipeNames())
      ->capture_default_str();
  app.add_option("--fp8-filter", o.fp8Filter,
                 "with --precision fp8, cast only products of parameters that match this regular expression");
  app.add_option("--fp8-keep-bf16", o.fp8KeepBf16,
                 "first:<n>,last:<n>: the first and the last n blocks of the model stay in bf16");
  app.add_option(
         "--fp8-select", o.fp8Select,
         "which layers are cast: all, those that the recipe's authors found to gain (rules), or those whose products, "
         "with the casts of activations and gradients, are faster by the target's cost model (auto); on GPUs rules, on "
         "CPUs all, where 8 bits are for trying")
      ->default_str("rules or all");
  app.add_option(
         "--fp8-amax", o.fp8Amax,
         "which tokens share a scale: global (those of all ranks), local (each rank's, without communication), or "
         "local:<groups> (as that number of ranks would)")
      ->capture_default_str();
  app.add_option(
         "--fp8-nonfinite", o.fp8Nonfinite,
         "what is not finite: propagate (all that shares its scale becomes NaN or 0), or scale1 (its scale is 1)")
      ->capture_default_str();
  app.add_option("--frozen-dtype", o.frozenDtype,
                 "what frozen parameters are held in and gathered in: fp32 or bf16 (half the bytes)")
      ->capture_default_str();
  app.add_option(
      "--keep-f32", o.keepF32,
      "with --precision bf16 or fp8, compute in f32 with the parameters whose name matches this regular expression");
  app.add_option("--reduce-dtype", o.reduceDtype,
                 "what gradients are added up in over ranks: fp32, or bf16 (half the bytes)")
      ->capture_default_str();
  tessera::groupOptions(app, "Precision");
}

std::string strategyHelp() {
  std::string text = "how memory is divided between ranks";
  for (const tessera::shard::Strategy &strategy : tessera::shard::strategies())
    text += "; " + strategy.name.str() + ": " + strategy.description.str();
  return text;
}

std::string attentionHelp() {
  std::string text = "how attention is computed over sequence axes (seq=4), or auto";
  for (const tessera::shard::SequenceStrategyInfo &row : tessera::shard::sequenceStrategies())
    text += "; " + row.name.str() + ": " + row.description.str();
  return text + "; ulysses:chunk=<heads> exchanges and computes that number of query heads at a time, in less memory";
}

void addMachineOptions(CLI::App &app, tessera::CompileOptions &o, std::string &mesh) {
  app.add_option(
      "--mesh", mesh,
      "ranks by axis, e.g. fsdp=4, dp=2,fsdp=4 or nodes:replica=2,gpus:data=4 (default: one rank). Names that have "
      "a role: " +
          tessera::dist::defaultAxisNames() + "; others are <name>:<role>");
  app.add_option("--strategy", o.strategy, strategyHelp())->capture_default_str();
  app.add_option("--attention", o.attention, attentionHelp())->capture_default_str();
  app.add_option("--attention-memory", o.attentionMemory,
                 "where ranks gather keys and values of attention: bytes that they may take on a rank, with their "
                 "gradients in the backward pass (512MiB); as many heads are gathered at a time as fit. all: all heads")
      ->capture_default_str();
  app.add_option("--attention-gather", o.attentionGather,
                 "what gathered keys and values cross ranks in, and their gradients are added up in over ranks: "
                 "compute (the type that attention is computed in), or fp32")
      ->capture_default_str();
  app.add_option(
         "--sequence-order", o.sequenceOrder,
         "how positions are dealt to the ranks of sequence axes: contiguous, zigzag (each rank has an early and a "
         "late range, the same work of causal attention), dealt (blocks by the pairs that their queries see in each "
         "batch, for packed documents; dealt:blocks=<of a rank>), or auto")
      ->capture_default_str();
  app.add_option(
      "--keep-gathered", o.keepGathered,
      "units that zero3 gathers once per step and keeps: a regular expression of their names, or auto (those with "
      "most gather time per byte that fit in --memory-limit)");
  app.add_option("--memory-limit", o.memoryLimit,
                 "bytes of a rank (80e9, 40GiB): an error if the step needs more; bounds --prefetch auto and "
                 "--keep-gathered auto");
  app.add_option("--wrap", o.wrap, "how parameters form units: module, size:<bytes> (100MB) or none")
      ->capture_default_str();
  app.add_option("--prefetch", o.prefetch,
                 "when gathers of units start: none, forward=<units ahead>,backward=<pre|post|none>, or auto "
                 "(by the target's latencies)")
      ->capture_default_str();
  app.add_option("--combine-bytes", o.combineBytes,
                 "join collectives that follow each other, up to this number of bytes; 0: none")
      ->capture_default_str();
  app.add_option(
         "--target", o.target,
         "machine to generate code for and to take costs from: cpu, one that ships with the compiler (h100x8, h200x8, "
         "…), an architecture (sm_80, sm_90, sm_100: a100x8, h100x8, b200x8), or a target file (.json)")
      ->capture_default_str();
  app.add_option("--offload", o.offload,
                 "what lives on the host and is copied to the device for use: optimizer, parameters, activations")
      ->delimiter(',');
  app.add_option("--epilogues", o.epilogues,
                 "what products do besides multiplying: none, bias (biases and their gradients), all (GELU and its "
                 "gradient too), or auto (sm_80: bias, later GPUs: all, CPU: none)")
      ->capture_default_str();
  app.add_option("--target-cpu", o.targetCpu, "host, x86-64-v4, x86-64-v3 or x86-64")->capture_default_str();
  for (const char *name : {"--mesh", "--strategy", "--target"})
    app.get_option(name)->group("Usually needed");
  tessera::groupOptions(app, "Ranks, memory and machine");
}

/// Flags with a value that may be left away: `--report` and `--report=FILE`.
void addReportOptions(CLI::App &app, std::string &report, std::string &fit) {
  app.add_flag(
      "--report{-}", report,
      "print memory, communication and predicted time of a step, for any number of ranks; --report=FILE writes "
      "them as JSON too. Needs no -o");
  app.add_flag(
      "--fit{target}", fit,
      "say whether a rank's memory fits the target's device, or --fit=BYTES (80e9, 40GiB), and what would make "
      "it fit; exit status 3 if it does not. --fit=sequence, or sequence:BYTES, finds the longest sequence that fits, "
      "from "
      "--seq on, and goes on with it");
}

void addAssumptions(CLI::App &app, tessera::CompileOptions &o) {
  app.add_option("--attention-gradient", o.attentionGradient,
                 "what predictions for a GPU assume of tessera-run's flag of this name: deterministic, or fast; the "
                 "artifact is the same")
      ->capture_default_str();
  tessera::groupOptions(app, "Reports");
}

void addDebugOptions(CLI::App &app, tessera::CompileOptions &o, bool &printPipeline) {
  static constexpr const char *names = "import, differentiate, optimize, precision, shard, schedule, lower or artifact";
  auto setPhase = [&o](const std::string &name) {
    const auto *found = llvm::find(tessera::kPhaseNames, name);
    if (found == std::end(tessera::kPhaseNames))
      throw CLI::ValidationError("--compile-to", "unknown phase '" + name + "', expected " + names);
    o.compileTo = static_cast<tessera::Phase>(found - std::begin(tessera::kPhaseNames));
  };
  app.add_option_function<std::string>(
      "--compile-to", setPhase, std::string("stop after this phase, and print the IR or write it to -o: ") + names);
  app.add_option("--dump-phases", o.dumpPhases, "write the IR after each phase into this directory");
  app.add_flag("--embed-ir", o.embedIr, "keep the IR of each phase in the artifact (tessera-dump --ir=<phase>)");
  app.add_flag("--keep-gradients", o.keepGradients,
               "keep every gradient in memory until the update, so that tessera-run --dump=gradients has all of them");
  app.add_flag("--timing", o.timing, "print the time of each phase");
  app.add_flag("--remarks", o.remarks, "print what was not applied, and why");
  app.add_flag("--verbose", o.verbose, "list the model's tensors: what each is in the step, and who decided so");
  app.add_flag("--print-pipelines", printPipeline, "print each phase's passes, as tessera-opt takes them, and exit");
  tessera::groupOptions(app, "Inspection");
}

/// Adds <name>=<value> of --dim to the sizes by name. Returns an error text, empty on success.
std::string bindDimension(const std::string &dim, std::map<std::string, int64_t> &dims) {
  const size_t equals = dim.find('=');
  const std::string value = equals == std::string::npos ? "" : dim.substr(equals + 1);
  if (equals == 0 || value.empty() || value.size() > 15 || value.find_first_not_of("0123456789") != std::string::npos)
    return "--dim: expected <name>=<value>, got '" + dim + "'";
  const std::string name = dim.substr(0, equals);
  const int64_t size = std::stoll(value);
  if (const auto [known, isNew] = dims.emplace(name, size); !isNew && known->second != size)
    return "--dim: '" + name + "' is bound to " + std::to_string(known->second) + " and to " + value;
  return "";
}

} // namespace

void tessera::addFlags(CLI::App &app, Flags &flags) {
  addModelOptions(app, flags.options, flags.dims);
  addTrainingOptions(app, flags.options);
  addMachineOptions(app, flags.options, flags.mesh);
  addReportOptions(app, flags.report, flags.fit);
  addAssumptions(app, flags.options);
  addDebugOptions(app, flags.options, flags.printPipelines);
}

std::string tessera::finishFlags(const CLI::App &app, Flags &flags) {
  CompileOptions &o = flags.options;
  for (const CLI::Option *option : app.get_options())
    if (option->count() > 0 && option->get_name().rfind("--fp8-", 0) == 0)
      o.fp8Flags.push_back(option->get_name());
  if (!flags.report.empty())
    o.report = flags.report == "-" ? "" : flags.report;
  if (!flags.fit.empty())
    o.fit = flags.fit;
  if (flags.printPipelines)
    o.output = "-";
  for (const char *flag : {"--batch", "--seq", "--global-batch"})
    if (app.count(flag) > 0 && app.get_option(flag)->as<int64_t>() < 1)
      return std::string(flag) + " must be at least 1, got " + app.get_option(flag)->as<std::string>();
  for (const std::string &dim : flags.dims)
    if (std::string error = bindDimension(dim, o.dims); !error.empty())
      return error;
  if (!flags.mesh.empty())
    if (std::string error = parseMesh(flags.mesh, o.mesh); !error.empty())
      return error;
  if (std::string error = divideGlobalBatch(o); !error.empty())
    return error;
  return checkOptions(o);
}
