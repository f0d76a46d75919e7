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

void chooseAttention(CompileOptions &options, const cost::Target &target, MLIRContext &context,
                     llvm::raw_ostream &out) {
  CompileOptions asked = options;
  const FitReport limits = limitsOf(limitText(options), target);
  std::vector<Tried> all;
  for (const shard::SequenceStrategyInfo &strategy : shard::sequenceStrategies()) {
    if (sequenceAxes(options) < strategy.leastAxes)
      continue;
    asked.attention = strategy.name.str();
    Tried tried{tryStep(asked, target, context), asked.attention};
    tried.fits = tried.report && limits.fitsDevice(*tried.report) && limits.fitsHost(*tried.report);
    all.push_back(std::move(tried));
  }
  const auto best = llvm::min_element(all, [](const Tried &a, const Tried &b) { return a.isBetterThan(b); });
  if (!best->report)
    return; // the compilation says what is wrong
  options.attention = best->name;
  out << "attention: " << best->text() << "; not ";
  llvm::interleaveComma(llvm::make_filter_range(all, [&](const Tried &tried) { return &tried != &*best; }), out,
                        [&](const Tried &tried) { out << tried.text(); });
  out << "\n";
}

} // namespace tessera
