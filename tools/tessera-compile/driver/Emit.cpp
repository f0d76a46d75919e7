//===- Emit.cpp - from lowered IR to the artifact file --------------------===//

#include "tools/tessera-compile/driver/Emit.h"

#include "tools/tessera-compile/driver/ModelFile.h"

#include "compiler/cost/Target.h"

#include "compiler/artifact/Writer.h"
#include "compiler/cost/Flops.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/Optimizer.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/lower/codegen/CpuCodegen.h"
#include "passes/lower/codegen/GpuCodegen.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace tessera {

namespace {
ArtifactMetadata::Entries optimizerEntries(const CompileOptions &o) {
  ArtifactMetadata::Entries entries = {{"kind", o.optimizer},
                                       {"lr", formatNumber(o.learningRate)},
                                       {"schedule", o.schedule},
                                       {"warmup", std::to_string(o.warmup)},
                                       {"min_lr", formatNumber(o.minLearningRate)},
                                       {"weight_decay", formatNumber(weightDecayOf(o))},
                                       {"clip_norm", formatNumber(o.clipNorm)}};
  if (o.clipValue > 0)
    entries.emplace_back("clip_value", formatNumber(o.clipValue));
  if (o.ema > 0)
    entries.emplace_back("ema", formatNumber(o.ema));
  if (o.moments != "fp32")
    entries.emplace_back("moments", o.moments);
  const train::Optimizer *optimizer = train::findOptimizer(o.optimizer);
  const std::map<std::string, double> settings = completeOptimizerSettings(o);
  for (const train::OptimizerSetting &setting : optimizer->settings) {
    const double value = settings.at(setting.name);
    entries.emplace_back(setting.name, setting.kind != train::SettingKind::Switch ? formatNumber(value)
                                       : value != 0                               ? "true"
                                                                                  : "false");
  }
  return entries;
}

ArtifactMetadata::Entries modelEntries(const CompileOptions &o, const StepSize &size) {
  ArtifactMetadata::Entries entries = {{"source", llvm::sys::path::filename(o.input).str()},
                                       {"loss", o.loss},
                                       {"precision", o.precision},
                                       {"strategy", o.strategy},
                                       {"wrap", o.wrap},
                                       {"accumulate", std::to_string(o.accumulate)},
                                       {"samples_per_step", formatNumber(size.samples)},
                                       {"tokens_per_step", formatNumber(size.tokens)},
                                       {"positions_per_sample", formatNumber(size.positions)},
                                       {"flops_per_step", formatNumber(size.flops)}};
  if (o.precision == "fp8") {
    entries.emplace_back("fp8_recipe", o.fp8Recipe);
    entries.emplace_back("fp8_amax", o.fp8Amax);
    entries.emplace_back("fp8_select", fp8SelectOf(o));
    entries.emplace_back("fp8_nonfinite", o.fp8Nonfinite);
    if (!o.fp8Filter.empty())
      entries.emplace_back("fp8_filter", o.fp8Filter);
    if (!o.fp8KeepBf16.empty())
      entries.emplace_back("fp8_keep_bf16", o.fp8KeepBf16);
  }
  if (!o.keepF32.empty())
    entries.emplace_back("keep_f32", o.keepF32);
  if (o.frozenDtype != "fp32")
    entries.emplace_back("frozen_dtype", o.frozenDtype);
  if (o.labelSmoothing != 0)
    entries.emplace_back("label_smoothing", formatNumber(o.labelSmoothing));
  if (o.ignoreIndex != CompileOptions{}.ignoreIndex)
    entries.emplace_back("ignore_index", std::to_string(o.ignoreIndex));
  if (!o.noDecay.empty())
    entries.emplace_back("no_decay", o.noDecay);
  if (!o.paddingIdx.empty())
    entries.emplace_back("padding_idx", llvm::join(o.paddingIdx, ","));
  if (!o.lora.empty())
    entries.emplace_back("lora", o.lora);
  if (o.guardUpdates != "on")
    entries.emplace_back("guard_updates", o.guardUpdates);
  return entries;
}
} // namespace

StepSize measureStep(ModuleOp module) {
  StepSize size;
  auto func = module.lookupSymbol<func::FuncOp>("step");
  size.flops = stepFlops(func);
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    if (!train::isBatchArgument(func, i))
      continue;
    auto type = cast<RankedTensorType>(func.getArgument(i).getType());
    const train::DimsAttr dims = train::getDims(func, i);
    double samples = 1, positions = 1;
    for (auto [role, length] : llvm::zip_equal(dims.getRoles(), type.getShape())) {
      if (role == train::DimRole::Sample || role == train::DimRole::MicroBatch)
        samples *= static_cast<double>(length);
      if (role == train::DimRole::Position)
        positions *= static_cast<double>(length);
    }
    if (llvm::is_contained(dims.getRoles(), train::DimRole::Position))
      size.positions = std::max(size.positions, positions);
    if (dims.getSampleDim() >= 0)
      size.samples = std::max(size.samples, samples);
    if (train::getArgRole(func, i) ==
        train::ArgRole::Target) // where no dimension counts positions, each element is one
      size.tokens = llvm::is_contained(dims.getRoles(), train::DimRole::Position)
                        ? samples * positions
                        : static_cast<double>(type.getNumElements());
  }
  if (size.tokens == 0) // the loss is in the model: there is nothing to count but samples
    size.tokens = size.samples;
  return size;
}

static LogicalResult emitForCpu(const CompileOptions &options, ModuleOp module, ArtifactMetadata &metadata) {
  auto target = CpuTarget::parse(options.targetCpu, module.getLoc());
  if (failed(target))
    return failure();
  std::string code;
  if (auto kernels = module.lookupSymbol<ModuleOp>("kernels")) {
    auto generated = generateCpuCode(kernels, *target);
    if (failed(generated))
      return failure();
    code = std::move(generated->sharedObject);
  }
  metadata.target = "cpu:" + target->cpu + ":" + target->features;
  return writeArtifact(module, code, metadata, options.output);
}

static LogicalResult emitForGpu(const CompileOptions &options, ModuleOp module, ArtifactMetadata &metadata) {
  auto target = GpuTarget::parse(options.architecture, module.getLoc());
  if (failed(target))
    return failure();
  auto machine = cost::Target::load(options.target, module.getLoc());
  if (failed(machine))
    return failure();
  const double peak = machine->peakFlops.find(options.precision)->second * static_cast<double>(numRanks(options));
  metadata.model.emplace_back("peak_flops_per_second", formatNumber(peak));
  ArtifactGpuCode code;
  if (auto kernels = module.lookupSymbol<ModuleOp>("kernels")) {
    auto alignments = kernelAlignments(module);
    if (failed(alignments))
      return failure();
    auto generated = generateGpuCode(kernels, *target, [&](StringRef symbol) { return alignments->lookup(symbol); });
    if (failed(generated))
      return failure();
    if (generated->cubin.empty())
      emitRemark(module.getLoc())
          << "ptxas was not found: the artifact holds PTX only, which the driver compiles at the "
             "start of each run";
    code.ptx = std::move(generated->ptx);
    code.cubin = std::move(generated->cubin);
    for (const GpuCode::Kernel &kernel : generated->kernels)
      code.launches[kernel.symbol] = {static_cast<uint32_t>(kernel.launch.blocks),
                                      static_cast<uint32_t>(kernel.launch.threadsX),
                                      static_cast<uint32_t>(kernel.launch.threadsY)};
  }
  metadata.target = target->chip;
  return writeArtifact(module, /*sharedObject=*/"", metadata, options.output, &code);
}

LogicalResult emitArtifact(const CompileOptions &options, ModuleOp module, const StepSize &size,
                           const std::optional<artifact::SequenceChoiceT> &sequence, const PhaseSnapshots &snapshots) {
  ArtifactMetadata metadata;
  metadata.producer = "tessera " TESSERA_VERSION;
  metadata.optimizer = optimizerEntries(options);
  // Where the loss is the entropy of what the model predicts.
  metadata.hasPerplexity = options.loss == "cross-entropy" && options.labelSmoothing == 0.0;
  makeLearningRate(scheduleRequest(options), metadata.learningRate); // checked with the options
  metadata.model = modelEntries(options, size);
  if (auto computation = module->getAttrOfType<StringAttr>(train::kComputation))
    metadata.model.emplace_back("computation", computation.str());
  if (auto mode = module->getAttrOfType<StringAttr>(train::kMode); mode && mode == train::kEvaluationMode)
    metadata.model.emplace_back("mode", mode.str());
  metadata.sequence = sequence;
  auto modelFile = describeModelFile(options, module);
  if (failed(modelFile))
    return failure();
  metadata.modelFile = std::move(*modelFile);
  metadata.ir = snapshots;
  return options.architecture.empty() ? emitForCpu(options, module, metadata) : emitForGpu(options, module, metadata);
}

} // namespace tessera
