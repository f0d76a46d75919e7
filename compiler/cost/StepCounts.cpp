//===- StepCounts.cpp - what a lowered step issues, by class --------------===//

#include "compiler/cost/StepCounts.h"

#include "compiler/cost/KernelWork.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tessera::cost {

namespace {
/// The kind in a kernel's name, which is k<number>_<kind>_<what it is about>.
StringRef kindOf(StringRef kernel) {
  if (kernel.consume_front("k")) {
    kernel = kernel.drop_while([](char letter) { return llvm::isDigit(letter); });
    for (StringRef kind : {"elementwise", "row", "column", "reduce_all", "scatter", "rows_columns", "blocks"})
      if (StringRef rest = kernel; rest.consume_front("_") && rest.consume_front(kind) && rest.starts_with("_"))
        return kind;
  }
  return "other";
}

void countBlock(Block &block, int64_t times, const LatencyModel &latency, StepCounts &counts) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<exec::LoopOp>(op)) {
      countBlock(loop.getBody().front(), times * static_cast<int64_t>(loop.getCount()), latency, counts);
      continue;
    }
    if (!exec::isInstruction(&op))
      continue;
    counts.instructions[op.getName().stripDialect().str()] += times;
    auto launch = dyn_cast<exec::LaunchOp>(op);
    if (!launch)
      continue;
    const KernelWork work = kernelWork(launch);
    const auto repeated = static_cast<double>(times);
    KernelCount &count = counts.kernels[kindOf(launch.getKernel()).str()];
    count.launches += times;
    count.read += repeated * (work.bytes - work.written);
    count.written += repeated * work.written;
    count.seconds += repeated * latency.seconds(&op);
  }
}
} // namespace

StepCounts countStep(exec::ProgramOp program, const LatencyModel &latency) {
  StepCounts counts;
  countBlock(program.getBody().front(), 1, latency, counts);
  return counts;
}

} // namespace tessera::cost
