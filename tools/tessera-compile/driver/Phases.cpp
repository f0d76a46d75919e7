//===- Phases.cpp - the pass pipeline of each phase -----------------------===//

#include "tools/tessera-compile/driver/Compile.h"

#include "llvm/Support/FormatVariadic.h"

namespace tessera {

using llvm::formatv;

namespace {
/// Elements that a flat unit is padded to: every shard of it starts on a 64-byte boundary.
constexpr int64_t kShardAlignmentElements = 16;

/// Units that may be gathered as one where the scheduler finds the distance itself.
constexpr int64_t kCombinedAhead = 2;

/// Braces protect option values that hold commas or spaces (regular expressions).
std::string quoted(const std::string &value) { return "{" + value + "}"; }

std::string onSteps(const std::string &passes) { return "func.func(" + passes + ")"; }
std::string onStep(const std::string &passes) { return "builtin.module(" + onSteps(passes) + ")"; }

bool isGpu(const CompileOptions &o) { return !o.architecture.empty(); }

std::string initializers(const CompileOptions &o) {
  if (o.init.empty())
    return "assign-initializers";
  std::string rules;
  for (const std::string &rule : o.init)
    rules += (rules.empty() ? "" : ",") + quoted(rule);
  return "assign-initializers{rules=" + rules + "}";
}

std::string adapters(const CompileOptions &o) {
  if (o.lora.empty())
    return "";
  const Lora lora = parseLora(o.lora).value_or(Lora{});
  std::string options =
      formatv("rank={0} alpha={1} targets={2}", lora.rank, formatNumber(lora.alpha), quoted(lora.targets));
  if (!lora.train.empty())
    options += " train=" + quoted(lora.train);
  return ",add-adapters{" + options + "}";
}

std::string rematerialise(const CompileOptions &o) {
  if (o.remat == "none" && o.rematReport.empty())
    return "";
  const bool budget = o.remat.rfind("budget=", 0) == 0;
  std::string options = "policy=" + (budget ? "budget" : o.remat);
  if (budget)
    options += formatv(" budget={0}", static_cast<int64_t>(*parseBytes(o.remat.substr(7))));
  options += formatv(" parts={0} precision={1}", numSampleRanks(o), o.precision);
  // What a budget buys is always shown.
  if (budget || !o.rematReport.empty())
    options += " report=" + quoted(o.rematReport.empty() ? "-" : o.rematReport);
  return ",rematerialise{" + options + "}";
}

std::string offload(const CompileOptions &o) {
  std::string classes;
  for (const std::string &name : o.offload)
    classes += (classes.empty() ? "" : " ") + name + "=true";
  return classes.empty() ? "" : ",offload{" + classes + "}";
}

std::string differentiatePipeline(const CompileOptions &o) {
  std::string loss = formatv("add-loss{{kind={0}", quoted(o.loss));
  if (o.loss == "cross-entropy")
    loss += formatv(" ignore-index={0} label-smoothing={1}", o.ignoreIndex, formatNumber(o.labelSmoothing));
  const std::string join = o.noDecay.empty() ? "join-products" : "join-products{no-decay=" + quoted(o.noDecay) + "}";
  return onStep(loss + "},annotate-index-bounds{check=" + o.indexCheck + "}," + join +
                ",join-heads,cse,check-differentiable,differentiate,canonicalize,cse" + rematerialise(o) +
                ",verify-phases");
}

std::string optimizePipeline(const CompileOptions &o) {
  std::string update = formatv("insert-optimizer{{kind={0} weight-decay={1}", o.optimizer, formatNumber(o.weightDecay));
  for (const auto &[name, value] : completeOptimizerSettings(o))
    update += " " + name + "=" + formatNumber(value);
  if (o.clipValue > 0)
    update += " clip-value=" + formatNumber(o.clipValue);
  if (o.moments != "fp32")
    update += " moments=" + o.moments;
  update += o.ema > 0 ? "},average-parameters{decay=" + formatNumber(o.ema) + "}" : "}";
  update += o.guardUpdates == "on" ? ",guard-updates" : "";
  const std::string noDecay = o.noDecay.empty() ? "" : " no-decay=" + quoted(o.noDecay);
  std::string flatten = formatv("flatten-parameters{{wrap={0} pad-multiple={1}{2}}", quoted(o.wrap),
                                numStateRanks(o) * kShardAlignmentElements, noDecay);
  const std::string train =
      formatv("accumulate-gradients{{count={0}},clip-gradients{{max-norm={1}},", o.accumulate, formatNumber(o.clipNorm))
          .str() +
      update + ",canonicalize,cse,verify-phases";
  if (!o.evaluate)
    return onStep(flatten + "," + train);
  return "builtin.module(" + onSteps(flatten) + ",add-evaluation," + onSteps(train) + ")";
}

std::string schedulePipeline(const CompileOptions &o) {
  const Prefetch prefetch = parsePrefetch(o.prefetch).value_or(Prefetch{});
  const int64_t ahead = prefetch.isAuto ? kCombinedAhead : prefetch.forward;
  std::string place = prefetch.isAuto
                          ? formatv("prefetch-auto{{target={0} memory={1}}", quoted(o.target), o.aheadBytes).str()
                          : formatv("prefetch{{forward={0} backward={1}}", prefetch.forward, prefetch.backward).str();
  return onStep(formatv("combine-collectives{{bytes={0} ahead={1}},split-async,", o.combineBytes, ahead).str() + place +
                offload(o) + ",verify-schedule,verify-collective-order");
}
} // namespace

std::string phasePipeline(Phase phase, const CompileOptions &o) {
  switch (phase) {
  case Phase::Import:
    return formatv("builtin.module(func.func(canonicalize,cse,recognize-functions,recognize-gelu{{by-values={0}},"
                   "recognize-norm,recognize-softmax,recognize-attention,canonicalize,cse,{1}){2})",
                   o.recognizeByValues == "on" ? "true" : "false", initializers(o), adapters(o));
  case Phase::Differentiate:
    return differentiatePipeline(o);
  case Phase::Optimize:
    return optimizePipeline(o);
  case Phase::Precision:
    return o.precision == "bf16" ? onStep("cast-precision,canonicalize,cse,verify-phases") : "builtin.module()";
  case Phase::Shard:
    return onStep(formatv(
        "annotate-sharding{{strategy={0}{1}{2}},propagate-sharding,insert-reshards,verify-sharding,localize,"
        "canonicalize,cse{3},verify-sharding,verify-phases",
        o.strategy, o.keepGathered.empty() ? "" : " keep-gathered=" + quoted(o.keepGathered),
        o.reduceDtype == "fp32" ? "" : " reduce-dtype=" + o.reduceDtype, o.precision == "bf16" ? ",keep-copies" : ""));
  case Phase::Schedule:
    return schedulePipeline(o);
  case Phase::Lower:
    return "builtin.module(func.func(" + std::string(isGpu(o) ? "pad-rows,decompose{gpu=true}" : "decompose") +
           ",canonicalize,cse,lower-accumulate,accumulate-products," +
           (epiloguesOf(o) == "none" ? "" : "fuse-epilogues{kinds=" + epiloguesOf(o) + "},") +
           (isGpu(o) ? "fuse{gpu=true}" : "fuse") +
           "),outline-kernels,to-exec{keep-step=true},"
           "exec.program(plan-memory)," +
           (o.evaluate ? "share-state," : "") +
           "exec.program(verify-exec{values=true},drop-step,verify-collective-order))";
  case Phase::Artifact:
    return "builtin.module()";
  }
  llvm_unreachable("unknown phase");
}

} // namespace tessera
