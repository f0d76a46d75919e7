//===- Phases.cpp - the passes of each phase ------------------------------===//

#include "compiler/dialect/exec/Exec.h"
#include "compiler/dialect/train/Float8.h"
#include "passes/differentiate/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/optimize/Passes.h"
#include "passes/precision/Passes.h"
#include "passes/schedule/Passes.h"
#include "passes/shard/Passes.h"
#include "passes/shard/SequenceStrategy.h"
#include "passes/simplify/Passes.h"
#include "tools/tessera-compile/driver/Compile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace tessera {

namespace {
/// Elements that a flat unit is padded to: every shard of it starts on a 64-byte boundary.
constexpr int64_t kShardAlignmentElements = 16;
static_assert(kShardAlignmentElements % train::kLeastFloat8Chunk == 0, "shards of 8 bits are whole chunks");

/// Units that may be gathered as one where the scheduler finds the distance itself.
constexpr int64_t kCombinedAhead = 2;

bool isGpu(const CompileOptions &o) { return !o.architecture.empty(); }

void addSimplification(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

SmallVector<OptionText> textsOf(const std::vector<std::string> &texts) {
  return SmallVector<OptionText>(texts.begin(), texts.end());
}

void addImport(OpPassManager &module, const CompileOptions &o) {
  OpPassManager &steps = module.nest<func::FuncOp>();
  addSimplification(steps);
  steps.addPass(createRecognizeFunctions());
  steps.addPass(createRecognizeGelu({.byValues = o.recognizeByValues == "on"}));
  steps.addPass(createRecognizeNorm());
  steps.addPass(createRecognizeSoftmax());
  steps.addPass(createRecognizeAttention({.documentIds = o.documentIds}));
  addSimplification(steps);
  steps.addPass(createAssignInitializers({.rules = textsOf(o.init)}));
  if (!o.lora.empty()) {
    const Lora lora = parseLora(o.lora).value_or(Lora{});
    module.addPass(
        createAddAdapters({.rank = lora.rank, .alpha = lora.alpha, .targets = lora.targets, .train = lora.train}));
  }
  if (!o.keepF32.empty())
    module.addNestedPass<func::FuncOp>(createSetComputeTypes({.f32 = o.keepF32}));
  if (!o.place.empty())
    module.addNestedPass<func::FuncOp>(createPlaceParameters({.rules = textsOf(o.place)}));
}

/// What a budget buys is always shown.
void addRematerialisation(OpPassManager &steps, const CompileOptions &o) {
  if (o.remat == "none" && o.rematReport.empty())
    return;
  RematerialiseOptions options{.policy = o.remat,
                               .parts = numTokenRanks(o),
                               .precision = o.precision == "fp32" ? "fp32" : "bf16",
                               .report = o.rematReport,
                               .twice = shard::parseAttention(o.attention).headsAtATime != 0};
  if (o.remat.starts_with("budget=")) {
    options.policy = "budget";
    options.budget = static_cast<int64_t>(*parseBytes(o.remat.substr(7)));
    if (o.rematReport.empty())
      options.report = "-";
  }
  steps.addPass(createRematerialise(options));
}

void addDifferentiation(OpPassManager &module, const CompileOptions &o) {
  module.addNestedPass<func::FuncOp>(createAddLoss({.kind = o.loss,
                                                    .ignoreIndex = o.ignoreIndex,
                                                    .labelSmoothing = o.labelSmoothing,
                                                    .metrics = textsOf(o.metrics)}));
  module.addNestedPass<func::FuncOp>(createFreezeUnused());
  module.addNestedPass<func::FuncOp>(createAnnotateIndexBounds({.check = o.indexCheck}));
  if (o.precision == "fp8")
    module.addPass(createChooseFp8({.recipe = o.fp8Recipe,
                                    .filter = o.fp8Filter,
                                    .keepBf16 = o.fp8KeepBf16,
                                    .select = fp8SelectOf(o),
                                    .target = o.target,
                                    .parts = numTokenRanks(o) * o.accumulate}));
  OpPassManager &steps = module.nest<func::FuncOp>();
  const int64_t headsAtATime = shard::parseAttention(o.attention).headsAtATime;
  if (headsAtATime != 0)
    steps.addPass(createChunkHeads({.heads = headsAtATime}));
  steps.addPass(createJoinProducts({.noDecay = o.noDecay}));
  steps.addPass(createJoinHeads());
  steps.addPass(createCSEPass());
  if (lossTileBytes(o) != 0)
    steps.addPass(createFuseLoss({.bytes = lossTileBytes(o), .parts = numTokenRanks(o) * o.accumulate}));
  steps.addPass(createCheckDifferentiable());
  steps.addPass(createDifferentiate());
  if (headsAtATime != 0)
    steps.addPass(createJoinChunks());
  if (lossTileBytes(o) != 0)
    steps.addPass(createJoinLoss());
  addSimplification(steps);
  addRematerialisation(steps, o);
  steps.addPass(createVerifyPhases());
}

void addOptimizer(OpPassManager &steps, const CompileOptions &o) {
  InsertOptimizerOptions options{.kind = o.optimizer,
                                 .weightDecay = weightDecayOf(o),
                                 .clipValue = o.clipValue,
                                 .numbers = {},
                                 .moments = o.moments};
  for (const auto &[name, value] : completeOptimizerSettings(o))
    options.numbers.push_back(name + "=" + formatNumber(value));
  steps.addPass(createInsertOptimizer(options));
  if (o.ema > 0)
    steps.addPass(createAverageParameters({.decay = o.ema}));
  if (o.guardUpdates == "on")
    steps.addPass(createGuardUpdates());
}

void addOptimization(OpPassManager &module, const CompileOptions &o) {
  if (o.frozenDtype == "bf16")
    module.addNestedPass<func::FuncOp>(createNarrowFrozen());
  module.addNestedPass<func::FuncOp>(createFlattenParameters(
      {.wrap = wrapPolicy(o), .padMultiple = numStateRanks(o) * kShardAlignmentElements, .noDecay = o.noDecay}));
  if (o.evaluate)
    module.addPass(createAddEvaluation());
  OpPassManager &steps = module.nest<func::FuncOp>();
  steps.addPass(createAccumulateGradients({.count = o.accumulate}));
  steps.addPass(createClipGradients({.maxNorm = o.clipNorm}));
  addOptimizer(steps, o);
  addSimplification(steps);
  steps.addPass(createVerifyPhases());
}

void addPrecision(OpPassManager &module, const CompileOptions &o) {
  if (o.precision == "fp32")
    return;
  OpPassManager &steps = module.nest<func::FuncOp>();
  steps.addPass(createCastPrecision());
  if (o.precision == "fp8")
    steps.addPass(createCastFp8({.groups = fp8Groups(o).value_or(1), .nonfinite = o.fp8Nonfinite}));
  addSimplification(steps);
  steps.addPass(createVerifyPhases());
}

void addSharding(OpPassManager &module, const CompileOptions &o) {
  OpPassManager &steps = module.nest<func::FuncOp>();
  steps.addPass(createAnnotateShardingPass({.strategy = o.strategy,
                                            .reduceDtype = o.reduceDtype,
                                            .keepGathered = o.keepGathered,
                                            .attention = o.attention,
                                            .sequenceOrder = o.sequenceOrder}));
  steps.addPass(createSplitAttentionPass({.attention = o.attention,
                                          .sequenceOrder = o.sequenceOrder,
                                          .gatherBytes = attentionMemoryBytes(o),
                                          .gatherType = o.attentionGather,
                                          .isChosen = o.isAttentionChosen}));
  steps.addPass(createPropagateShardingPass());
  steps.addPass(createInsertReshardsPass());
  steps.addPass(createVerifyShardingPass());
  steps.addPass(createLocalizePass());
  addSimplification(steps);
  if (o.precision != "fp32")
    steps.addPass(createKeepCopies());
  steps.addPass(createVerifyShardingPass());
  steps.addPass(createVerifyPhases());
}

void addSchedule(OpPassManager &module, const CompileOptions &o) {
  OpPassManager &steps = module.nest<func::FuncOp>();
  const Prefetch prefetch = parsePrefetch(o.prefetch).value_or(Prefetch{});
  steps.addPass(createCombineCollectivesPass(
      {.bytes = o.combineBytes, .ahead = prefetch.isAuto ? kCombinedAhead : prefetch.forward}));
  steps.addPass(createSplitAsyncPass());
  if (prefetch.isAuto)
    steps.addPass(createPrefetchAutoPass({.target = o.target, .memory = o.aheadBytes}));
  else
    steps.addPass(createPrefetchPass({.forward = prefetch.forward, .backward = prefetch.backward}));
  auto isOffloaded = [&](StringRef what) { return llvm::is_contained(o.offload, what); };
  if (!o.offload.empty())
    steps.addPass(createOffloadPass({.optimizer = isOffloaded("optimizer"),
                                     .parameters = isOffloaded("parameters"),
                                     .activations = isOffloaded("activations")}));
  steps.addPass(createVerifySchedulePass());
  steps.addPass(createVerifyCollectiveOrderPass());
}

void addLowering(OpPassManager &module, const CompileOptions &o) {
  OpPassManager &steps = module.nest<func::FuncOp>();
  if (mlpTileBytes(o) != 0)
    steps.addPass(createTileProducts({.bytes = mlpTileBytes(o)}));
  if (lossTileBytes(o) != 0)
    steps.addPass(createTileLoss({.bytes = lossTileBytes(o)}));
  if (isGpu(o))
    steps.addPass(createPadRows());
  if (isGpu(o) && o.precision == "fp8")
    steps.addPass(createScaledProducts({.architecture = o.architecture}));
  steps.addPass(createDecompose({.gpu = isGpu(o)}));
  addSimplification(steps);
  steps.addPass(createJoinWaits());
  steps.addPass(createLowerAccumulate());
  if (isGpu(o))
    steps.addPass(createSplitProducts());
  steps.addPass(createAccumulateProducts());
  if (epiloguesOf(o) != "none")
    steps.addPass(createFuseEpilogues({.kinds = epiloguesOf(o)}));
  steps.addPass(createFuse({.gpu = isGpu(o), .keepGradients = o.keepGradients}));
  module.addPass(createOutlineKernels());
  module.addPass(createToExec({.keepStep = true}));
  module.addNestedPass<exec::ProgramOp>(createPlanMemory());
  if (o.evaluate)
    module.addPass(createShareState());
  OpPassManager &programs = module.nest<exec::ProgramOp>();
  programs.addPass(createVerifyExec({.values = true}));
  programs.addPass(createDropStep());
  programs.addPass(createVerifyCollectiveOrderPass());
}
} // namespace

void addPasses(OpPassManager &module, Phase phase, const CompileOptions &o) {
  switch (phase) {
  case Phase::Import:
    return addImport(module, o);
  case Phase::Differentiate:
    return addDifferentiation(module, o);
  case Phase::Optimize:
    return addOptimization(module, o);
  case Phase::Precision:
    return addPrecision(module, o);
  case Phase::Shard:
    return addSharding(module, o);
  case Phase::Schedule:
    return addSchedule(module, o);
  case Phase::Lower:
    return addLowering(module, o);
  case Phase::Artifact:
    return;
  }
  llvm_unreachable("unknown phase");
}

std::string phasePipeline(Phase phase, const CompileOptions &options) {
  OpPassManager module(ModuleOp::getOperationName());
  addPasses(module, phase, options);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.printAsTextualPipeline(stream);
  return text;
}

} // namespace tessera
