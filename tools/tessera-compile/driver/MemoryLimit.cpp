//===- MemoryLimit.cpp - what a memory limit leaves room for --------------===//
//
// See MemoryLimit.h.
//
//===----------------------------------------------------------------------===//

#include "tools/tessera-compile/driver/MemoryLimit.h"

#include "compiler/cost/Latency.h"
#include "compiler/dialect/exec/Exec.h"
#include "compiler/dialect/train/NamePattern.h"
#include "tools/tessera-compile/driver/Compile.h"
#include "tools/tessera-compile/driver/Report.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace tessera {

namespace {

/// What keeping a unit costs and saves.
struct Candidate {
  std::string name;
  double bytes = 0;   ///< of the gathered unit
  double seconds = 0; ///< of the gathers per step that keeping it saves
  int64_t gathers = 0;
  double secondsPerByte() const { return seconds / bytes; }
};

/// What counts against the limit: a GPU has memory of its own, on a CPU the host's arena lies in the same.
double reservedBytes(ModuleOp module, bool isGpu) {
  llvm::StringMap<int64_t> arenas; // as large as the largest program needs
  module.walk([&](exec::ArenaOp arena) {
    int64_t &bytes = arenas[arena.getSymName()];
    if (!isGpu || arena.getKind() != exec::ArenaKind::Host)
      bytes = std::max<int64_t>(bytes, arena.getBytes());
  });
  double bytes = 0;
  for (const auto &arena : arenas)
    bytes += static_cast<double>(arena.getValue());
  return bytes;
}

/// Units that are gathered more than once per step, those with most time per byte first.
std::vector<Candidate> findCandidates(ModuleOp module, const cost::Target &target) {
  const cost::LatencyModel model(target, module->getAttrOfType<dist::MeshAttr>(dist::kMesh));
  llvm::MapVector<StringRef, Candidate> units;
  exec::ProgramOp training = *module.getOps<exec::ProgramOp>().begin();
  training.walk([&](exec::CollectiveOp op) {
    dist::OriginAttr origin = op.getOriginAttr();
    if (!origin || op.getKind() != exec::CollectiveKind::AllGather || origin.getUnits().size() != 1 ||
        (origin.getPhase() != dist::OriginPhase::Forward && origin.getPhase() != dist::OriginPhase::Backward))
      return; // collectives are not joined in this plan
    StringRef unit = origin.getUnits().front().getValue();
    auto loop = op->getParentOfType<exec::LoopOp>();
    const int64_t runs = loop ? loop.getCount() : 1;
    auto type = cast<MemRefType>(op.getOutput().getType());
    Candidate &candidate = units[unit];
    candidate.name = unit.str();
    candidate.bytes = static_cast<double>(type.getNumElements() * type.getElementTypeBitWidth() / 8);
    candidate.seconds += static_cast<double>(runs) * model.seconds(op);
    candidate.gathers += runs;
  });
  std::vector<Candidate> candidates;
  for (auto &[name, unit] : units)
    if (unit.gathers > 1) {
      unit.seconds *= static_cast<double>(unit.gathers - 1) / static_cast<double>(unit.gathers);
      candidates.push_back(unit);
    }
  llvm::stable_sort(candidates,
                    [](const Candidate &a, const Candidate &b) { return a.secondsPerByte() > b.secondsPerByte(); });
  return candidates;
}

std::string regexOf(llvm::ArrayRef<Candidate> kept) {
  std::string names;
  for (const Candidate &unit : kept)
    names += (names.empty() ? "" : "|") + train::NamePattern::escape(unit.name);
  return names.empty() ? "" : "^(" + names + ")$";
}

/// Bytes that a rank reserves under `options`. Errors pass through, remarks do not: the real compilation has them too.
FailureOr<double> reservedUnder(const CompileOptions &options, bool isGpu, MLIRContext &context) {
  ScopedDiagnosticHandler quiet(
      &context, [](Diagnostic &diagnostic) { return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark); });
  auto lowered = compileToLower(options, context);
  if (failed(lowered))
    return failure();
  return reservedBytes(*lowered->module, isGpu);
}

} // namespace

bool needsMemoryPlan(const CompileOptions &o) {
  return o.keepGathered == "auto" || (!o.memoryLimit.empty() && o.prefetch == "auto");
}

FailureOr<CompileOptions> planUnderLimit(const CompileOptions &options, const cost::Target &target,
                                         MLIRContext &context) {
  const Location loc = UnknownLoc::get(&context);
  const double limit = parseBytes(options.memoryLimit).value_or(0);
  const bool isGpu = target.kind == "cuda";
  CompileOptions plain = options;
  plain.dumpPhases.clear();
  plain.embedIr = false;
  plain.prefetch = "none";
  plain.combineBytes = 0;
  if (options.keepGathered == "auto")
    plain.keepGathered.clear();
  std::vector<Candidate> candidates;
  double reserved = 0;
  {
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark);
    });
    auto lowered = compileToLower(plain, context);
    if (failed(lowered))
      return failure();
    reserved = reservedBytes(*lowered->module, isGpu);
    candidates = findCandidates(*lowered->module, target);
  }
  if (reserved > limit)
    return emitError(loc) << "--memory-limit: a rank needs " << formatBytes(reserved)
                          << " even if units are neither kept nor gathered ahead, the limit is " << formatBytes(limit);

  CompileOptions planned = options;
  double spare = limit - reserved;
  if (options.keepGathered == "auto") {
    std::vector<Candidate> kept;
    for (const Candidate &unit : candidates) {
      const bool fits = unit.bytes <= spare;
      InFlightDiagnostic remark = emitRemark(loc);
      remark << "unit '" << unit.name << "' is "
             << (fits ? "kept gathered: saves " : "gathered for each use: keeping it would save ") << unit.gathers - 1
             << (unit.gathers == 2 ? " gather, " : " gathers, ") << formatSeconds(unit.seconds) << " per step for "
             << formatBytes(unit.bytes) << "; " << formatBytes(spare) << " of the limit are free";
      if (!fits)
        continue;
      kept.push_back(unit);
      spare -= unit.bytes;
    }
    // What a kept unit costs is estimated; the plan decides.
    plain.keepGathered = planned.keepGathered = regexOf(kept);
    while (!kept.empty()) {
      FailureOr<double> needed = reservedUnder(plain, isGpu, context);
      if (failed(needed))
        return failure();
      spare = limit - *needed;
      if (spare >= 0)
        break;
      emitRemark(loc) << "unit '" << kept.back().name << "' is gathered for each use after all: with it a rank needs "
                      << formatBytes(*needed);
      kept.pop_back();
      plain.keepGathered = planned.keepGathered = regexOf(kept);
      spare = limit - reserved;
    }
  }
  planned.aheadBytes = std::max<int64_t>(1, static_cast<int64_t>(spare));
  return planned;
}

LogicalResult checkMemoryLimit(const CompileOptions &options, bool isGpu, ModuleOp module) {
  const std::optional<double> limit = parseBytes(options.memoryLimit);
  const double reserved = reservedBytes(module, isGpu);
  if (!limit || reserved <= *limit)
    return success();
  return emitError(module.getLoc()) << "--memory-limit: a rank needs " << formatBytes(reserved) << ", the limit is "
                                    << formatBytes(*limit)
                                    << "; --fit=<bytes> in its place says what would make it fit";
}

} // namespace tessera
