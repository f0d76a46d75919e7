#include "tools/tessera-compile/driver/ChooseAttention.h"

#include "passes/shard/SequenceStrategy.h"
#include "tools/tessera-compile/driver/Fit.h"

using namespace mlir;

namespace tessera {

static int64_t sequenceAxes(const CompileOptions &options) {
  return llvm::count_if(options.mesh,
                        [](const MeshAxis &axis) { return axis.size > 1 && dist::getInfo(axis.role).splitsPositions; });
}

bool choosesAttention(const CompileOptions &options) {
  return options.attention == "auto" && sequenceAxes(options) > 0;
}

/// What a rank may take: what was asked for, or what the target has.
static std::string limitText(const CompileOptions &options) {
  if (!options.memoryLimit.empty())
    return options.memoryLimit;
  return sequenceFit(options).value_or(options.fit.value_or("target"));
}

namespace {
struct Tried : TriedStep {
  std::string name;
  bool fits = false;

  /// Shorter steps come first among those that fit, smaller ones among those that do not.
  bool isBetterThan(const Tried &other) const {
    if (!report || !other.report || fits != other.fits)
      return fits > other.fits || (report && !other.report);
    return fits ? report->time.total < other.report->time.total
                : report->memory.onDevice() < other.report->memory.onDevice();
  }
  std::string text() const {
    if (!report)
      return name + " (" + error + ")";
    return name + " (" + formatSeconds(report->time.total) + " a step, " +
           formatBytes(static_cast<double>(report->memory.onDevice())) + " a rank" + (fits ? ")" : ", too large)");
  }
};
} // namespace

static std::unique_ptr<artifact::AttentionWayT> wayOf(const Tried &tried) {
  auto way = std::make_unique<artifact::AttentionWayT>();
  way->name = tried.name;
  if (!tried.report) {
    way->error = tried.error.empty() ? "it does not compile" : tried.error;
    return way;
  }
  way->step_seconds = tried.report->time.total;
  way->bytes = static_cast<uint64_t>(tried.report->memory.onDevice());
  way->host_bytes = static_cast<uint64_t>(tried.report->memory.host);
  way->fits = tried.fits;
  return way;
}

std::optional<artifact::SequenceChoiceT> chooseAttention(CompileOptions &options, const cost::Target &target,
                                                         MLIRContext &context, llvm::raw_ostream &out) {
  CompileOptions asked = options;
  const FitReport limits = limitsOf(limitText(options), target);
  std::vector<Tried> all;
  for (const shard::SequenceStrategyInfo &strategy : shard::sequenceStrategies()) {
    if (sequenceAxes(options) < strategy.leastAxes)
      continue;
    asked.attention = strategy.name.str();
    asked.isAttentionChosen = true;
    Tried tried{tryStep(asked, target, context), asked.attention};
    tried.fits = tried.report && limits.fitsDevice(*tried.report) && limits.fitsHost(*tried.report);
    all.push_back(std::move(tried));
  }
  const auto best = llvm::min_element(all, [](const Tried &a, const Tried &b) { return a.isBetterThan(b); });
  if (!best->report)
    return std::nullopt; // the compilation says what is wrong
  options.attention = best->name;
  options.isAttentionChosen = true;
  out << "attention: " << best->text() << "; not ";
  llvm::interleaveComma(llvm::make_filter_range(all, [&](const Tried &tried) { return &tried != &*best; }), out,
                        [&](const Tried &tried) { out << tried.text(); });
  out << "\n";
  artifact::SequenceChoiceT choice;
  choice.attention = best->name;
  choice.reason = best->fits ? artifact::AttentionReason::Fastest : artifact::AttentionReason::Smallest;
  choice.limit = static_cast<uint64_t>(limits.limit);
  for (const Tried &tried : all)
    choice.ways.push_back(wayOf(tried));
  return choice;
}

static artifact::OrderReason reasonOf(shard::OrderReason reason) {
  switch (reason) {
  case shard::OrderReason::Asked:
    return artifact::OrderReason::Asked;
  case shard::OrderReason::Balances:
    return artifact::OrderReason::Balances;
  case shard::OrderReason::NotCausal:
    return artifact::OrderReason::NotCausal;
  case shard::OrderReason::HeadsSplit:
    return artifact::OrderReason::HeadsSplit;
  case shard::OrderReason::NotDivided:
    return artifact::OrderReason::NotDivided;
  case shard::OrderReason::Documents:
    return artifact::OrderReason::Documents;
  case shard::OrderReason::NotDealt:
    return artifact::OrderReason::NotDealt;
  }
  llvm_unreachable("unknown reason");
}

FailureOr<std::optional<artifact::SequenceChoiceT>>
describeSequence(const CompileOptions &options, ModuleOp module,
                 const std::optional<artifact::SequenceChoiceT> &chosen) {
  if (sequenceAxes(options) == 0)
    return std::optional<artifact::SequenceChoiceT>();
  FailureOr<shard::SequencePlan> plan =
      shard::planSequence(module.lookupSymbol<func::FuncOp>("step"), module->getAttrOfType<dist::MeshAttr>(dist::kMesh),
                          options.attention, options.sequenceOrder);
  if (failed(plan))
    return failure();
  artifact::SequenceChoiceT choice = chosen.value_or(artifact::SequenceChoiceT());
  if (!chosen)
    choice.attention = options.attention;
  choice.order = plan->dealt      ? artifact::SplitOrder::Dealt
                 : plan->isZigzag ? artifact::SplitOrder::Zigzag
                                  : artifact::SplitOrder::Contiguous;
  choice.order_reason = reasonOf(plan->orderReason);
  return std::optional(std::move(choice));
}

} // namespace tessera
