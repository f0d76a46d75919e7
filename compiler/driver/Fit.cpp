//===- Fit.cpp - variants of a step that need less memory -----------------===//

#include "compiler/driver/Fit.h"

#include "compiler/driver/Compile.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

namespace {
class Search {
public:
  Search(const CompileOptions &options, const StepReport &report) : base(options), report(report) {
    base.output.clear();
    base.rematReport.clear();
    base.report.reset();
    base.fit.reset();
    base.timing = base.embedIr = base.remarks = false;
    base.dumpPhases.clear();
  }

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
    bool isAfter = false;
    for (const char *strategy : {"ddp", "zero1", "zero2", "zero3"}) {
      if (isAfter && shardSize(base) > 1) {
        CompileOptions options = base;
        options.strategy = strategy;
        add(std::move(options));
      }
      isAfter |= base.strategy == strategy;
    }
  }

  /// The same samples per step in more and smaller micro-batches.
  void addMicroBatches() {
    if (hasFixedShapes())
      return;
    CompileOptions options = last();
    options.batch = microBatch();
    while (options.batch % 2 == 0 && options.batch / 2 >= report.ranks) {
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
    if (llvm::is_contained(base.offload, "optimizer"))
      return;
    CompileOptions options = last();
    options.offload.push_back("optimizer");
    add(std::move(options));
  }

  /// Two, four and eight times the ranks on the shard axis; the same samples per step where they divide by them.
  void addRanks() {
    const CompileOptions from = last();
    for (int64_t factor = 2; factor <= 8; factor *= 2) {
      CompileOptions options = from;
      if (options.mesh.empty())
        options.mesh.emplace_back("shard", 1);
      auto axis = llvm::find_if(options.mesh, [](const auto &entry) { return entry.first == "shard"; });
      if (axis == options.mesh.end())
        return;
      axis->second *= factor;
      if (options.strategy == "ddp")
        options.strategy = "zero3";
      const auto samples = static_cast<int64_t>(report.size.samples);
      if (!hasFixedShapes()) {
        const int64_t micro = from.batch > 0 ? from.batch : microBatch();
        options.batch = llvm::alignTo(std::max(micro, numRanks(options)), numRanks(options));
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

  static std::string meshText(const CompileOptions &options) {
    std::string text;
    for (const auto &[axis, size] : options.mesh)
      text += (text.empty() ? "" : ",") + axis + "=" + std::to_string(size);
    return text;
  }

  static int64_t shardSize(const CompileOptions &options) {
    for (const auto &[axis, size] : options.mesh)
      if (axis == "shard")
        return size;
    return 1;
  }

  CompileOptions base;
  const StepReport &report;
  std::vector<CompileOptions> list;
};
} // namespace

FitReport checkFit(const CompileOptions &options, const StepReport &report, const cost::Target &target,
                   MLIRContext &context) {
  FitReport fit;
  fit.limit = *options.fit == "target" ? target.deviceMemory : *parseBytes(*options.fit);
  fit.fits = static_cast<double>(report.memory.reserved) <= fit.limit;
  if (fit.fits)
    return fit;
  Search search(options, report);
  for (const CompileOptions &changed : search.variants()) {
    FitVariant variant;
    variant.flags = search.flagsOf(changed);
    ScopedDiagnosticHandler capture(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && variant.error.empty())
        variant.error = diagnostic.str();
      return success();
    });
    if (auto lowered = compileToLower(changed, context); succeeded(lowered))
      variant.report = makeReport(changed, *lowered->module, lowered->size, target);
    fit.variants.push_back(std::move(variant));
    const std::optional<StepReport> &tried = fit.variants.back().report;
    if (tried && static_cast<double>(tried->memory.reserved) <= fit.limit)
      break;
  }
  return fit;
}

void printFit(const FitReport &fit, const StepReport &report, llvm::raw_ostream &out) {
  const auto reserved = static_cast<double>(report.memory.reserved);
  if (fit.fits) {
    out << "\nfits: " << formatBytes(reserved) << " of " << formatBytes(fit.limit)
        << llvm::format(" (%.1f %%)\n", 100 * reserved / fit.limit);
    return;
  }
  out << "\ndoes not fit: " << formatBytes(reserved) << " of " << formatBytes(fit.limit)
      << llvm::format(" (%.1f %%)\n", 100 * reserved / fit.limit);
  const FitVariant *found = nullptr;
  for (const FitVariant &variant : fit.variants) {
    out << "  " << variant.flags << ": ";
    if (!variant.report) {
      out << "does not compile: " << variant.error << "\n";
      continue;
    }
    const auto bytes = static_cast<double>(variant.report->memory.reserved);
    const bool fits = bytes <= fit.limit;
    out << formatBytes(bytes) << (fits ? ", fits" : ", too large") << "; " << formatSeconds(variant.report->time.total)
        << " per step";
    if (variant.report->size.samples != report.size.samples)
      out << " of " << static_cast<int64_t>(variant.report->size.samples) << " samples";
    out << "\n";
    if (fits)
      found = &variant;
  }
  if (found)
    out << "it fits with " << found->flags << "\n";
  else
    out << "nothing that was tried fits: use more ranks, a shorter sequence or a smaller model\n";
}

llvm::json::Object fitJson(const FitReport &fit) {
  llvm::json::Array variants;
  for (const FitVariant &variant : fit.variants) {
    llvm::json::Object row{{"flags", variant.flags}};
    if (variant.report) {
      row["reserved_per_rank"] = variant.report->memory.reserved;
      row["step_seconds"] = variant.report->time.total;
      row["fits"] = static_cast<double>(variant.report->memory.reserved) <= fit.limit;
    } else {
      row["error"] = variant.error;
    }
    variants.push_back(std::move(row));
  }
  return llvm::json::Object{{"limit", fit.limit}, {"fits", fit.fits}, {"variants", std::move(variants)}};
}

} // namespace tessera
