//===- Report.cpp - memory, collectives and time of a lowered step --------===//

#include "tools/tessera-compile/driver/Report.h"

#include "compiler/cost/GpuAttentions.h"
#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/exec/Exec.h"
#include "passes/shard/Strategy.h"

#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace tessera {

namespace {
/// Positions in the flattened instruction list, as memory planning numbers them: a loop has one itself, then its body.
int64_t countInstructions(Block &block) {
  int64_t count = 0;
  for (Operation &op : block) {
    count += exec::isInstruction(&op);
    if (auto loop = dyn_cast<exec::LoopOp>(op))
      count += countInstructions(loop.getBody().front());
  }
  return count;
}

/// What the runtime gives cuBLASLt and cuDNN besides the arenas (docs/cuda.md): one workspace serves all attention.
int64_t libraryWorkspaces(exec::ProgramOp program, bool isDeterministic) {
  constexpr int64_t kProducts = int64_t{32} << 20;
  int64_t attention = 0;
  program.walk([&](exec::AttentionGradOp op) {
    const GpuAttention gradient = *cost::gpuAttention(op);
    if (attentionUnits(gradient, isDeterministic) == AttentionUnits::Cudnn)
      attention =
          std::max(attention, isDeterministic ? cudnnGradientBytes(gradient) : cudnnFastGradientBytes(gradient));
  });
  return kProducts + attention;
}

MemoryReport measureMemory(exec::ProgramOp program) {
  MemoryReport memory;
  const int64_t end = std::max<int64_t>(countInstructions(program.getBody().front()), 1);
  using Change = std::array<int64_t, MemoryReport::kNumClasses>;
  std::vector<Change> changes(end + 1, Change{});
  llvm::StringSet<> onHost;
  for (Operation &op : program.getBody().front()) {
    if (auto arena = dyn_cast<exec::ArenaOp>(op)) {
      const bool isHost = arena.getKind() == exec::ArenaKind::Host;
      (isHost ? memory.host : memory.reserved) += static_cast<int64_t>(arena.getBytes());
      if (isHost)
        onHost.insert(arena.getSymName());
    }
    auto slot = dyn_cast<exec::SlotOp>(op);
    if (!slot || !slot.getLive() || onHost.contains(slot.getArena()))
      continue;
    const auto memoryClass = static_cast<size_t>(slot.getMemoryClass());
    changes[std::clamp<int64_t>((*slot.getLive())[0], 0, end)][memoryClass] += slot.getBytes();
    changes[std::clamp<int64_t>((*slot.getLive())[1] + 1, 0, end)][memoryClass] -= slot.getBytes();
  }
  Change live{};
  constexpr int64_t kParts = 256;
  int64_t part = -1, highest = 0;
  for (int64_t position = 0; position < end; ++position) {
    int64_t sum = 0;
    for (size_t index = 0; index < live.size(); ++index)
      sum += live[index] += changes[position][index];
    if (sum > memory.peak) {
      memory.peak = sum;
      memory.atPeak = live;
    }
    if (const int64_t current = position * kParts / end; current != part) {
      part = current;
      highest = -1;
      memory.overStep.emplace_back();
    }
    if (sum > highest) {
      highest = sum;
      memory.overStep.back() = {position, live};
    }
  }
  return memory;
}

std::string axesText(ArrayAttr axes) {
  std::string text;
  for (auto axis : axes.getAsRange<StringAttr>())
    text += (text.empty() ? "" : ",") + axis.getValue().str();
  return text;
}

using CollectiveKey = std::pair<std::string, cost::Collective>;
using Collectives = std::map<CollectiveKey, CollectiveReport>;

/// What is sent, in kind. Bytes of one element are those of the largest collective that holds parameters or gradients.
struct Traffic {
  double gathered = 4, reduced = 4;
  double widestGather = 0, widestReduction = 0;
  llvm::StringSet<> backwardUnits; ///< gathered again for the backward pass
};

void addCollectives(Block &block, int64_t times, const cost::LatencyModel &latency, Collectives &collectives,
                    Traffic &traffic) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<exec::LoopOp>(op))
      addCollectives(loop.getBody().front(), times * static_cast<int64_t>(loop.getCount()), latency, collectives,
                     traffic);
    auto collective = dyn_cast<exec::CollectiveOp>(op);
    if (!collective)
      continue;
    const cost::CollectiveUse use = cost::collectiveUse(collective, latency.getMesh());
    CollectiveReport &row = collectives[{axesText(use.axes), use.kind}];
    row.axes = axesText(use.axes);
    row.kind = use.kind;
    row.placement = latency.placement(use.axes);
    row.count += times;
    row.wireBytes += static_cast<double>(times) * cost::wireBytes(use.kind, use.wholeBytes, row.placement.ranks);
    row.seconds += static_cast<double>(times) * latency.seconds(collective);
    const auto origin = collective.getOriginAttr();
    if (!origin || origin.getPhase() == dist::OriginPhase::Result)
      continue; // not of a unit
    if (origin.getPhase() == dist::OriginPhase::Backward)
      for (StringAttr unit : origin.getUnits())
        traffic.backwardUnits.insert(unit.getValue());
    const bool gathers = use.kind == cost::Collective::AllGather;
    double &widest = gathers ? traffic.widestGather : traffic.widestReduction;
    if (use.wholeBytes > widest) {
      widest = use.wholeBytes;
      (gathers ? traffic.gathered : traffic.reduced) =
          static_cast<double>(exec::elementBytes(collective.getInput().getType().getElementType()));
    }
  }
}

/// Elements of the model, without padding. The others are those of one rank along the model axes.
struct ParameterCount {
  double model = 0;
  double all = 0;
  double trained = 0;  ///< those that take a gradient
  double backward = 0; ///< those that the backward pass computes with
};

ParameterCount countParameters(exec::ProgramOp program, const llvm::StringSet<> &backwardUnits) {
  ParameterCount count;
  for (auto argument : program.getOps<exec::ArgumentOp>()) {
    const std::optional<train::ArgRole> role = train::getArgRole(argument);
    if (!train::isParameter(role))
      continue;
    double elements = 0;
    if (argument->hasAttr(train::kSegments)) {
      for (train::SegmentAttr segment : train::getSegments(argument)) {
        elements += static_cast<double>(segment.getNumElements());
        count.model += static_cast<double>(llvm::product_of(segment.getShape()));
      }
    } else {
      auto global = argument->getAttrOfType<TypeAttr>(dist::kGlobal);
      auto type = cast<ShapedType>(global ? global.getValue() : argument.getBuffer().getType());
      elements = static_cast<double>(type.getNumElements());
      count.model += elements;
    }
    count.all += elements;
    count.trained += role == train::ArgRole::Param ? elements : 0;
    auto name = argument->getAttrOfType<StringAttr>(train::kName);
    count.backward += name && backwardUnits.contains(name.getValue()) ? elements : 0;
  }
  return count;
}

/// What the strategy has to move in one step (docs/cost-model.md has the table).
void addMinimum(const CompileOptions &options, dist::MeshAttr mesh, const ParameterCount &parameters,
                const Traffic &traffic, Collectives &collectives) {
  using cost::Collective;
  const shard::Strategy &strategy = *shard::findStrategy(options.strategy);
  const dist::Axes summed = dist::gradientAxes(mesh), state = dist::stateAxes(mesh);
  dist::Axes replicas = summed;
  llvm::erase_if(replicas, [&](unsigned axis) { return llvm::is_contained(state, axis); });
  auto minimum = [&](const dist::Axes &axes, Collective kind, double bytes, double times) {
    auto row = collectives.find({axesText(dist::axisNames(mesh, axes)), kind});
    if (row != collectives.end())
      row->second.minimumBytes += times * cost::wireBytes(kind, bytes, dist::groupSize(mesh, axes));
  };
  const double gradients = parameters.trained * traffic.reduced;
  const auto microBatches = static_cast<double>(options.accumulate);
  if (strategy.reduce == shard::Reduce::ToWhole) {
    minimum(summed, Collective::AllReduce, gradients, 1);
  } else {
    const bool reducesEach = strategy.reduce == shard::Reduce::ToPartsEachMicro;
    minimum(state, Collective::ReduceScatter, gradients, reducesEach ? microBatches : 1);
    minimum(replicas, Collective::AllReduce, gradients / static_cast<double>(dist::groupSize(mesh, state)), 1);
  }
  // In 8 bits, units are gathered in several widths, and what of them is follows from more than the strategy.
  if (strategy.gather != shard::Gather::Never && options.precision != "fp8") {
    const bool gathersEach = strategy.gather == shard::Gather::ForEachPhase;
    const double gathered = gathersEach ? microBatches * (parameters.all + parameters.backward) : parameters.all;
    minimum(state, Collective::AllGather, gathered * traffic.gathered, 1);
  }
}

/// The element type in which most of the step's products are.
Type mainType(exec::ProgramOp program) {
  llvm::MapVector<Type, double> work;
  program.walk([&](exec::GemmOp gemm) {
    auto a = gemm.getA().getType();
    work[a.getElementType()] +=
        static_cast<double>(a.getNumElements()) * static_cast<double>(gemm.getB().getType().getShape().back());
  });
  Type main;
  double most = 0;
  for (const auto &[type, flops] : work)
    if (flops > most) {
      most = flops;
      main = type;
    }
  return main ? main : Float32Type::get(program.getContext());
}
} // namespace

StepReport makeReport(const CompileOptions &options, ModuleOp module, const StepSize &size,
                      const cost::Target &target) {
  StepReport report;
  report.ranks = numRanks(options);
  report.size = size;
  auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMesh);
  cost::LatencyModel latency(target, mesh);
  exec::ProgramOp program = *module.getOps<exec::ProgramOp>().begin(); // the training
  report.memory = measureMemory(program);
  if (target.kind == "cuda")
    report.memory.libraries = libraryWorkspaces(program, target.deterministicAttention);
  Collectives collectives;
  Traffic traffic;
  addCollectives(program.getBody().front(), 1, latency, collectives, traffic);
  const ParameterCount parameters = countParameters(program, traffic.backwardUnits);
  report.parameters = parameters.model;
  addMinimum(options, mesh, parameters, traffic, collectives);
  for (const auto &[key, row] : collectives)
    report.collectives.push_back(row);
  report.time = cost::simulate(program, latency);
  report.counts = cost::countStep(program, latency);
  const Type type = mainType(program);
  report.dtype = cost::dtypeName(type).str();
  report.peakFlops = target.peak(type) * static_cast<double>(report.ranks);
  return report;
}

} // namespace tessera
