//===- Report.h - what a step will need and take ----------------*- C++ -*-===//
//
// Memory, communication and time of a lowered step on a target, known before anything is launched.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_REPORT_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_REPORT_H

#include "compiler/cost/Simulate.h"
#include "compiler/cost/StepCounts.h"
#include "tools/tessera-compile/driver/Emit.h"
#include "tools/tessera-compile/driver/Options.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <string>
#include <vector>

namespace tessera {

/// Bytes of one rank.
struct MemoryReport {
  static constexpr size_t kNumClasses = 7;
  std::array<int64_t, kNumClasses> atPeak{}; ///< by class (exec::MemoryClass), live at the moment of the highest demand
  int64_t peak = 0;                          ///< their sum
  int64_t reserved = 0;                      ///< of all arenas on the device, which is what a rank allocates there
  int64_t host = 0;                          ///< of the arena on the host (--offload)
  int64_t libraries = 0; ///< workspaces of a GPU's libraries, estimated; not in the plan and not in `reserved`
  /// Instruction and bytes by class over the step: the highest demand within each of at most 256 parts of it.
  std::vector<std::pair<int64_t, std::array<int64_t, kNumClasses>>> overStep;

  /// What a rank takes of its device.
  int64_t onDevice() const { return reserved + libraries; }
};

/// The collectives of one kind over the same axes, in one step of one rank.
struct CollectiveReport {
  std::string axes; ///< their names, as "replicate,shard"
  cost::Collective kind = cost::Collective::AllGather;
  cost::GroupPlacement placement;
  int64_t count = 0;
  double wireBytes = 0;    ///< that each rank sends
  double minimumBytes = 0; ///< that the strategy cannot do without; 0 for scalars and other extras
  double seconds = 0;      ///< if nothing overlapped
};

struct StepReport {
  int64_t ranks = 1;
  double parameters = 0; ///< of the model, without padding
  StepSize size;
  MemoryReport memory;
  std::vector<CollectiveReport> collectives; ///< sorted by axes and kind
  cost::StepTime time;
  cost::StepCounts counts;
  double peakFlops = 0; ///< of all ranks, in the dtype that most products are in
  std::string dtype;

  double tokensPerSecond() const { return time.total > 0 ? size.tokens / time.total : 0; }
  double mfu() const { return time.total > 0 ? size.flops / (time.total * peakFlops) : 0; }
};

/// Of a module after the phase lower.
StepReport makeReport(const CompileOptions &options, mlir::ModuleOp module, const StepSize &size,
                      const cost::Target &target);

void printReport(const StepReport &report, const CompileOptions &options, const cost::Target &target,
                 llvm::raw_ostream &out);
llvm::json::Object reportJson(const StepReport &report, const CompileOptions &options, const cost::Target &target);

/// "1.5 GiB".
std::string formatBytes(double bytes);
/// "12.3 ms".
std::string formatSeconds(double seconds);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_REPORT_H
