//===- Fit.cpp - variants of a step that need less memory -----------------===//

#include "tools/tessera-compile/driver/Fit.h"

#include "passes/shard/Strategy.h"
#include "tools/tessera-compile/driver/Compile.h"
#include "tools/tessera-compile/driver/MemoryLimit.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

namespace {
class FitSearch {
public:
  FitSearch(const CompileOptions &options, const StepReport &report, bool offloads)
      : base(options), report(report), offloads(offloads) {}

  /// In the order in which they are tried: what costs least first. Each keeps what came before it.
  std::vector<CompileOptions> variants() {
    addStrategies();
    addRecomputation("selective");
    addMicroBatches();
    addRecomputation("full");
    addOffload();
    addRanks();
    return std::move(list);
  }

  /// What differs from the given options, as on the command line.
  std::string flagsOf(const CompileOptions &options) const {
    std::string flags;
    auto add = [&](bool differs, const std::string &flag) {
      if (differs)
        flags += (flags.empty() ? "" : " ") + flag;
    };
    add(options.mesh != base.mesh, "--mesh " + meshText(options));
    add(options.strategy != base.strategy, "--strategy " + options.strategy);
    add(options.batch != base.batch, "--batch " + std::to_string(options.batch));
    add(options.accumulate != base.accumulate, "--accumulate " + std::to_string(options.accumulate));
    add(options.remat != base.remat, "--remat " + options.remat);
    add(options.offload != base.offload, "--offload " + llvm::join(options.offload, ","));
    return flags;
  }

private:
  CompileOptions last() const { return list.empty() ? base : list.back(); }

  void add(CompileOptions options) {
    CompileOptions reported = options;
    reported.report = ""; // needs no artifact
    if (checkOptions(reported).empty())
      list.push_back(std::move(options));
  }

  /// More of the state is split with each strategy, at the price of more communication.
  void addStrategies() {
    if (numStateRanks(base) == 1)
      return;
    const shard::Strategy *previous = shard::findStrategy(base.strategy);
    for (const shard::Strategy *next = previous + 1; next != shard::strategies().end(); ++next) {
      if (next->needsReplicas || !next->differsFrom(*previous, base.accumulate))
        continue;
      CompileOptions options = base;
      options.strategy = next->name.str();
      add(std::move(options));
      previous = next;
    }
  }

  /// The one that splits most on any mesh.
  static StringRef mostSplit() {
    StringRef name;
    for (const shard::Strategy &strategy : shard::strategies())
      if (!strategy.needsReplicas)
        name = strategy.name;
    return name;
  }

  /// The same samples per step in more and smaller micro-batches.
  void addMicroBatches() {
    if (hasFixedShapes())
      return;
    CompileOptions options = last();
    options.batch = microBatch();
    while (options.batch % 2 == 0 && options.batch / 2 >= numSampleRanks(options)) {
      options.batch /= 2;
      options.accumulate *= 2;
      add(options);
    }
  }

  /// Selective recomputation costs little time, full recomputation nearly a forward pass.
  void addRecomputation(StringRef remat) {
    CompileOptions options = last();
    if (options.remat != "none" && !(options.remat == "selective" && remat == "full"))
      return;
    options.remat = remat.str();
    add(std::move(options));
  }

  void addOffload() {
    if (!offloads || llvm::is_contained(base.offload, "optimizer"))
      return;
    CompileOptions options = last();
    options.offload.push_back("optimizer");
    add(std::move(options));
  }

  /// Two, four and eight times the ranks on the first axis that splits state; the same samples per step where they
  /// divide by them.
  void addRanks() {
    const CompileOptions from = last();
    for (int64_t factor = 2; factor <= 8; factor *= 2) {
      CompileOptions options = from;
      if (options.mesh.empty())
        options.mesh.push_back(
            {dist::getInfo(dist::AxisRole::Data).defaultNames.front().str(), 1, dist::AxisRole::Data});
      auto axis = llvm::find_if(options.mesh, [](const MeshAxis &entry) { return entry.role == dist::AxisRole::Data; });
      if (axis == options.mesh.end())
        return;
      axis->size *= factor;
      if (!shard::findStrategy(options.strategy)->splitsState)
        options.strategy = mostSplit().str();
      const auto samples = static_cast<int64_t>(report.size.samples);
      if (!hasFixedShapes()) {
        const int64_t micro = from.batch > 0 ? from.batch : microBatch();
        options.batch = llvm::alignTo(std::max(micro, numSampleRanks(options)), numSampleRanks(options));
        if (options.batch == micro && from.batch == base.batch)
          options.batch = base.batch;
        else
          options.accumulate = samples % options.batch == 0 ? samples / options.batch : 1;
      }
      add(std::move(options));
    }
  }

  int64_t microBatch() const { return static_cast<int64_t>(report.size.samples) / base.accumulate; }
  bool hasFixedShapes() const { return StringRef(base.input).ends_with(".mlir"); }

  CompileOptions base;
  const StepReport &report;
  bool offloads;
  std::vector<CompileOptions> list;
};
} // namespace

TriedStep tryStep(CompileOptions options, const cost::Target &target, MLIRContext &context) {
  options.output.clear();
  options.rematReport.clear();
  options.report.reset();
  options.fit.reset();
  options.timing = options.embedIr = options.remarks = false;
  options.dumpPhases.clear();
  TriedStep tried;
  ScopedDiagnosticHandler capture(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && tried.error.empty()) {
      tried.error = diagnostic.str();
      for (Diagnostic &note : diagnostic.getNotes())
        tried.error += "; " + note.str();
    }
    return success();
  });
  if (needsMemoryPlan(options)) {
    auto planned = planUnderLimit(options, target, context);
    if (failed(planned))
      return tried;
    options = std::move(*planned);
  }
  if (auto lowered = compileToLower(options, context); succeeded(lowered))
    tried.report = makeReport(options, *lowered->module, lowered->size, target);
  return tried;
}

FitReport limitsOf(StringRef limit, const cost::Target &target) {
  FitReport fit;
  fit.limit = parseBytes(limit.str()).value_or(target.deviceMemory);
  fit.hostLimit = target.hostMemory;
  fit.ranksPerNode = target.devicesPerNode;
  fit.sharesMemory = target.kind == "cpu";
  return fit;
}

FitReport checkFit(const CompileOptions &options, const StepReport &report, const cost::Target &target,
                   MLIRContext &context) {
  FitReport fit = limitsOf(*options.fit, target);
  fit.fits = fit.fitsDevice(report) && fit.fitsHost(report);
  if (fit.fits)
    return fit;
  FitSearch search(options, report, /*offloads=*/!fit.sharesMemory);
  for (const CompileOptions &changed : search.variants()) {
    fit.variants.push_back({tryStep(changed, target, context), search.flagsOf(changed)});
    const std::optional<StepReport> &tried = fit.variants.back().report;
    if (tried && fit.fitsDevice(*tried) && fit.fitsHost(*tried))
      break;
  }
  return fit;
}

/// "1.00 GiB", or "1.00 GiB and 2.00 GiB on the host".
static std::string usedText(const StepReport &report) {
  std::string text = formatBytes(static_cast<double>(report.memory.onDevice()));
  if (report.memory.host > 0)
    text += " and " + formatBytes(static_cast<double>(report.memory.host)) + " on the host";
  return text;
}

std::string misfit(const FitReport &fit, const StepReport &report) {
  if (!fit.fitsDevice(report))
    return "too large";
  if (fit.fitsHost(report))
    return "";
  return "too large for the host: " + formatBytes(fit.hostBytes(report)) + " of " + formatBytes(fit.hostLimit) +
         " on a node";
}

void printFit(const FitReport &fit, const StepReport &report, llvm::raw_ostream &out) {
  const auto reserved = static_cast<double>(report.memory.onDevice() + (fit.sharesMemory ? report.memory.host : 0));
  out << (fit.fits ? "\nfits: " : "\ndoes not fit: ") << formatBytes(reserved) << " of " << formatBytes(fit.limit)
      << llvm::format(" (%.1f %%)", 100 * reserved / fit.limit);
  if (!fit.sharesMemory && report.memory.host > 0)
    out << ", " << formatBytes(fit.hostBytes(report)) << " of " << formatBytes(fit.hostLimit)
        << " on the host of a node";
  out << "\n";
  if (fit.fits)
    return;
  const FitVariant *found = nullptr;
  for (const FitVariant &variant : fit.variants) {
    out << "  " << variant.flags << ": ";
    if (!variant.report) {
      out << "does not compile: " << variant.error << "\n";
      continue;
    }
    const std::string why = misfit(fit, *variant.report);
    out << usedText(*variant.report) << ", " << (why.empty() ? "fits" : why) << "; "
        << formatSeconds(variant.report->time.total) << " per step";
    if (variant.report->size.samples != report.size.samples)
      out << " of " << static_cast<int64_t>(variant.report->size.samples) << " samples";
    out << "\n";
    if (why.empty())
      found = &variant;
  }
  if (found) {
    out << "it fits with " << found->flags << "\n";
    return;
  }
  if (fit.sharesMemory)
    out << "  --offload was not tried: on a CPU the host's memory is the device's\n";
  out << "nothing that was tried fits: use more ranks, a shorter sequence or a smaller model\n";
}

llvm::json::Object fitJson(const FitReport &fit) {
  llvm::json::Array variants;
  for (const FitVariant &variant : fit.variants) {
    llvm::json::Object row{{"flags", variant.flags}};
    if (variant.report) {
      row["reserved_per_rank"] = variant.report->memory.reserved;
      row["libraries_per_rank"] = variant.report->memory.libraries;
      row["host_per_rank"] = variant.report->memory.host;
      row["step_seconds"] = variant.report->time.total;
      row["fits"] = misfit(fit, *variant.report).empty();
    } else {
      row["error"] = variant.error;
    }
    variants.push_back(std::move(row));
  }
  return llvm::json::Object{{"limit", fit.limit},
                            {"host_limit_per_node", fit.hostLimit},
                            {"fits", fit.fits},
                            {"variants", std::move(variants)}};
}

} // namespace tessera
