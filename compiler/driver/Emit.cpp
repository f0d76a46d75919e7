//===- Emit.cpp - from lowered IR to the artifact file --------------------===//

#include "compiler/driver/Emit.h"

#include "compiler/cost/Target.h"

#include "compiler/artifact/Writer.h"
#include "compiler/cost/Flops.h"
#include "compiler/dialect/train/Builders.h"
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
                                       {"weight_decay", formatNumber(o.weightDecay)},
                                       {"clip_norm", formatNumber(o.clipNorm)}};
  if (o.optimizer == "adamw") {
    entries.emplace_back("beta1", formatNumber(o.beta1));
    entries.emplace_back("beta2", formatNumber(o.beta2));
    entries.emplace_back("epsilon", formatNumber(o.epsilon));
  } else {
    entries.emplace_back("momentum", formatNumber(o.momentum));
    entries.emplace_back("nesterov", o.nesterov ? "true" : "false");
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
                                       {"flops_per_step", formatNumber(size.flops)}};
  // The exponential of the loss: where that is the entropy of what the model predicts.
  if (o.evaluate)
    entries.emplace_back("perplexity", o.loss == "cross-entropy" && o.labelSmoothing == 0.0 ? "true" : "false");
  return entries;
}
} // namespace

StepSize measureStep(ModuleOp module) {
  StepSize size;
  auto func = module.lookupSymbol<func::FuncOp>("step");
  size.flops = stepFlops(func);
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    auto role = func.getArgAttrOfType<StringAttr>(i, train::kRole);
    if (!role || (role != "target" && role != "input"))
      continue;
    auto type = cast<RankedTensorType>(func.getArgument(i).getType());
    const bool accumulated = llvm::any_of(func.getArgument(i).getUsers(), llvm::IsaPred<train::AccumulateOp>);
    double samples = 1;
    for (int64_t dim = 0; dim < std::min<int64_t>(type.getRank(), accumulated ? 2 : 1); ++dim)
      samples *= static_cast<double>(type.getDimSize(dim));
    size.samples = std::max(size.samples, samples);
    if (role == "target")
      size.tokens = static_cast<double>(type.getNumElements());
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
      emitRemark(module.getLoc()) << "no ptxas was found: the artifact has PTX alone, which the driver compiles when a "
                                     "run begins";
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
                           const PhaseSnapshots &snapshots) {
  ArtifactMetadata metadata;
  metadata.producer = "tessera " TESSERA_VERSION;
  metadata.optimizer = optimizerEntries(options);
  metadata.model = modelEntries(options, size);
  metadata.ir = snapshots;
  return options.architecture.empty() ? emitForCpu(options, module, metadata) : emitForGpu(options, module, metadata);
}

} // namespace tessera
