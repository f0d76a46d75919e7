//===- Fit.cpp - variants of a step that need less memory -----------------===//

#include "compiler/driver/Fit.h"

#include "compiler/driver/Compile.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace tessera {

namespace {
/// A change of options and how it reads on the command line.
struct Change {
  std::string flags;
  CompileOptions options;
};

class Search {
public:
  Search(const CompileOptions &options, const StepReport &report) : base(options), report(report) {
    base.output.clear();
    base.report.reset();
    base.fit.reset();
    base.timing = base.embedIr = base.remarks = false;
    base.dumpPhases.clear();
  }

  /// In the order in which they are tried: what costs least first. Each step of a chain keeps what came before it.
  std::vector<Change> changes() {
    addStrategies(base, "");
    Change best = last({"", base});
    addMicroBatches(best);
    addRanks(last(best));
    return std::move(list);
  }

private:
  Change last(Change otherwise) const { return list.empty() ? otherwise : list.back(); }

  void add(const Change &from, const std::string &flags, CompileOptions options) {
    if (checkOptions(asReport(options)).empty())
      list.push_back({from.flags.empty() ? flags : from.flags + " " + flags, std::move(options)});
  }
  static CompileOptions asReport(CompileOptions options) {
    options.report = "";
    return options;
  }

  /// More of the state is split with each strategy, at the price of more communication.
  void addStrategies(const CompileOptions &from, const std::string &flags) {
    const char *order[] = {"ddp", "zero1", "zero2", "zero3"};
    bool isAfter = false;
    for (const char *strategy : order) {
      if (isAfter && shardSize(from) > 1) {
        CompileOptions options = from;
        options.strategy = strategy;
        add({flags, from}, std::string("--strategy ") + strategy, std::move(options));
      }
      isAfter |= from.strategy == strategy;
    }
  }

  /// The same samples per step in more and smaller micro-batches.
  void addMicroBatches(const Change &from) {
    if (StringRef(base.input).ends_with(".mlir"))
      return; // shapes are part of the file
    auto batch = static_cast<int64_t>(report.size.samples) / base.accumulate;
    int64_t accumulate = base.accumulate;
    while (batch % 2 == 0 && batch / 2 >= report.ranks) {
      batch /= 2;
      accumulate *= 2;
      CompileOptions options = from.options;
      options.batch = batch;
      options.accumulate = accumulate;
      add(from, "--batch " + std::to_string(batch) + " --accumulate " + std::to_string(accumulate), std::move(options));
    }
  }

  /// Twice and four times the ranks on the shard axis, each with a micro-batch as small as before.
  void addRanks(const Change &from) {
    for (int64_t factor = 2; factor <= 8; factor *= 2) {
      CompileOptions options = from.options;
      bool found = false;
      std::string mesh;
      if (options.mesh.empty())
        options.mesh.emplace_back("shard", 1);
      for (auto &[axis, size] : options.mesh) {
        if (axis == "shard") {
          size *= factor;
          found = true;
        }
        mesh += (mesh.empty() ? "" : ",") + axis + "=" + std::to_string(size);
      }
      std::string flags = "--mesh " + mesh;
      if (options.strategy == "ddp") {
        options.strategy = "zero3";
        flags += " --strategy zero3";
      }
      const auto samples = static_cast<int64_t>(report.size.samples) / options.accumulate;
      if (!StringRef(base.input).ends_with(".mlir") && samples % numRanks(options) != 0) {
        options.batch = numRanks(options);
        flags += " --batch " + std::to_string(options.batch);
      }
      if (found)
        add(from, flags, std::move(options));
    }
  }

  static int64_t shardSize(const CompileOptions &options) {
    for (const auto &[axis, size] : options.mesh)
      if (axis == "shard")
        return size;
    return 1;
  }

  CompileOptions base;
  const StepReport &report;
  std::vector<Change> list;
};
} // namespace

FitReport checkFit(const CompileOptions &options, const StepReport &report, const cost::Target &target,
                   MLIRContext &context) {
  FitReport fit;
  fit.limit = *options.fit == "target" ? target.deviceMemory : *parseBytes(*options.fit);
  fit.fits = static_cast<double>(report.memory.reserved) <= fit.limit;
  if (fit.fits)
    return fit;
  for (Change &change : Search(options, report).changes()) {
    FitVariant variant;
    variant.flags = change.flags;
    ScopedDiagnosticHandler capture(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && variant.error.empty())
        variant.error = diagnostic.str();
      return success();
    });
    if (auto lowered = compileToLower(change.options, context); succeeded(lowered))
      variant.report = makeReport(change.options, *lowered->module, lowered->size, target);
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
        << " per step\n";
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
