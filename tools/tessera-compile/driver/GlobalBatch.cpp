//===- GlobalBatch.cpp - micro-batches that make up a global batch --------===//

#include "tools/tessera-compile/driver/GlobalBatch.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

/// "24 or 32": the multiples of `unit` next to `value`; one where it is the smallest.
static std::string nearestMultiples(int64_t value, int64_t unit) {
  const int64_t below = value / unit * unit;
  return (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + unit);
}

std::string divideGlobalBatch(CompileOptions &options) {
  if (options.globalBatch == 0)
    return "";
  const int64_t ranks = numSampleRanks(options), samples = options.globalBatch;
  if (samples % ranks != 0)
    return "--global-batch " + std::to_string(samples) + " does not divide among the " + std::to_string(ranks) +
           " ranks that split samples; the nearest that does: " + nearestMultiples(samples, ranks);
  options.isMicroBatchOpen = options.batch == 0;
  if (options.isMicroBatchOpen)
    options.batch = samples;
  if (samples % options.batch != 0)
    return "--global-batch " + std::to_string(samples) + " is not filled by micro-batches of --batch " +
           std::to_string(options.batch) + "; the nearest that is: " + nearestMultiples(samples, options.batch);
  options.accumulate = samples / options.batch;
  return "";
}

LogicalResult fitGlobalBatch(CompileOptions &options, const cost::Target &target, MLIRContext &context,
                             llvm::raw_ostream &out) {
  const FitReport limits = limitsOf(*options.fit, target);
  const int64_t perRank = options.globalBatch / numSampleRanks(options);
  out << options.globalBatch << " samples a step, in " << formatBytes(limits.limit) << " a rank\n"
      << "     --batch  --accumulate   memory a rank       step\n";
  for (int64_t accumulate = 1; accumulate <= perRank; ++accumulate) {
    if (perRank % accumulate != 0)
      continue;
    CompileOptions tried = options;
    tried.batch = options.globalBatch / accumulate;
    tried.accumulate = accumulate;
    const TriedStep step = tryStep(tried, target, context);
    if (!step.report && accumulate == 1)
      return emitError(UnknownLoc::get(&context)) << step.error, failure();
    if (!step.report) { // such as a batch of one sample, for which the program was not exported
      out << llvm::format("%12lld  %12lld", static_cast<long long>(tried.batch), static_cast<long long>(accumulate))
          << "  does not compile: " << step.error << "\n";
      break;
    }
    const std::string why = misfit(limits, *step.report);
    out << llvm::format("%12lld  %12lld %15s %10s", static_cast<long long>(tried.batch),
                        static_cast<long long>(accumulate),
                        formatBytes(static_cast<double>(step.report->memory.onDevice())).c_str(),
                        formatSeconds(step.report->time.total).c_str())
        << "  " << (why.empty() ? "fits" : why) << "\n";
    out.flush();
    options.batch = tried.batch;
    options.accumulate = accumulate;
    if (why.empty())
      break;
  }
  return success();
}

} // namespace tessera
