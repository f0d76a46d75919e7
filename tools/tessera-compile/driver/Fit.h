//===- Fit.h - does a step fit a device, and what would make it -*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_FIT_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_FIT_H

#include "tools/tessera-compile/driver/Report.h"

#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <optional>

namespace tessera {

/// A step that is compiled to see what it would take.
struct TriedStep {
  std::optional<StepReport> report; ///< none if it does not compile
  std::string error;                ///< why
};
/// Compiles as `options` say, but for what they print and write.
TriedStep tryStep(CompileOptions options, const cost::Target &target, mlir::MLIRContext &context);

/// The same step compiled with other flags.
struct FitVariant : TriedStep {
  std::string flags; ///< what changes on the command line
};

struct FitReport {
  double limit = 0;          ///< bytes of a rank
  double hostLimit = 0;      ///< bytes of a node's host, for what is offloaded
  int64_t ranksPerNode = 1;  ///< at most
  bool sharesMemory = false; ///< a CPU: what is offloaded counts against `limit`
  bool fits = false;
  std::vector<FitVariant> variants; ///< tried, in order; the last one fits, if any does. Empty if the step fits.

  bool fitsDevice(const StepReport &report) const {
    return static_cast<double>(report.memory.onDevice() + (sharesMemory ? report.memory.host : 0)) <= limit;
  }
  /// Bytes on the host of one node.
  double hostBytes(const StepReport &report) const {
    return static_cast<double>(report.memory.host) * static_cast<double>(std::min(report.ranks, ranksPerNode));
  }
  bool fitsHost(const StepReport &report) const { return sharesMemory || hostBytes(report) <= hostLimit; }
};

/// What `--fit=<fit>` compares with: the target's memory, or so many bytes of a rank.
FitReport limitsOf(llvm::StringRef fit, const cost::Target &target);
/// Why a step is too large; empty if it fits.
std::string misfit(const FitReport &fit, const StepReport &report);

/// Compares `report` with the limit of `options.fit`. If the step does not fit, compiles variants of it, from the least
/// change to the largest, until one does.
FitReport checkFit(const CompileOptions &options, const StepReport &report, const cost::Target &target,
                   mlir::MLIRContext &context);

void printFit(const FitReport &fit, const StepReport &report, llvm::raw_ostream &out);
llvm::json::Object fitJson(const FitReport &fit);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_FIT_H
