#include "tools/tessera-compile/driver/LongestSequence.h"

#include "passes/shard/SequenceStrategy.h"
#include "tools/tessera-compile/driver/ChooseAttention.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Format.h"

#include <numeric>

using namespace mlir;

namespace tessera {

static void printHeader(const LongestSequence &found, llvm::raw_ostream &out) {
  out << "longest sequence, in " << formatBytes(found.limits.limit) << " a rank\n"
      << "   positions    per rank    memory a rank    on its host       step   tokens/s a rank\n";
}

static void printTried(const LongestSequence &found, const TriedLength &tried, llvm::raw_ostream &out) {
  out << llvm::format("%12lld", static_cast<long long>(tried.length));
  if (!tried.report) {
    out << "  does not compile: " << tried.error << "\n";
    return;
  }
  const StepReport &report = *tried.report;
  const auto ranks = static_cast<double>(report.ranks);
  out << llvm::format("%12lld %16s %14s %10s %17.0f", static_cast<long long>(tried.length / found.ranks),
                      formatBytes(static_cast<double>(report.memory.onDevice())).c_str(),
                      formatBytes(static_cast<double>(report.memory.host)).c_str(),
                      formatSeconds(report.time.total).c_str(), report.tokensPerSecond() / ranks);
  const std::string why = misfit(found.limits, report);
  out << "  " << (why.empty() ? "fits" : why) << "\n";
  out.flush();
}

namespace {
/// Ranks that are a multiple of GPUs' tiles have tensors that are, too.
constexpr int64_t kGrain = 1024;
constexpr int64_t kLongest = int64_t{1} << 26; ///< more than any machine holds is not worth minutes

class LengthSearch {
public:
  LengthSearch(const CompileOptions &options, const cost::Target &target, MLIRContext &context, llvm::raw_ostream &out)
      : base(options), target(target), context(context), out(out) {
    found.limits = limitsOf(*sequenceFit(options), target);
    found.ranks = 1;
    for (const MeshAxis &axis : options.mesh)
      if (dist::getInfo(axis.role).splitsPositions)
        found.ranks *= axis.size;
    // A zigzag has two ranges for each rank, what is dealt as many as are asked for.
    const int64_t blocks = std::max<int64_t>(2, shard::parseOrder(options.sequenceOrder).blocksPerRank);
    found.unit = std::lcm(kGrain, blocks * found.ranks);
  }

  FailureOr<LongestSequence> run() {
    int64_t fitting = 0, failing = 0;
    for (int64_t next = llvm::alignTo(std::max<int64_t>(base.sequence, 1), found.unit); failing == 0 && next < kLongest;
         next *= 2) {
      const TriedLength &tried = tryLength(next);
      if (found.tried.size() == 1 && !tried.report) {
        emitError(UnknownLoc::get(&context)) << "--fit=sequence: " << next << " positions: " << tried.error;
        return failure();
      }
      (tried.fits ? fitting : failing) = next;
    }
    // Of what does not even fit at first, shorter ones may.
    while (failing - fitting > std::max(found.unit, fitting / 32)) {
      const int64_t middle = llvm::alignDown((fitting + failing) / 2, found.unit);
      if (middle <= fitting)
        break;
      (tryLength(middle).fits ? fitting : failing) = middle;
    }
    return std::move(found);
  }

private:
  const TriedLength &tryLength(int64_t length) {
    CompileOptions options = base;
    options.sequence = length;
    std::optional<artifact::SequenceChoiceT> chosen;
    if (choosesAttention(options))
      chosen = chooseAttention(options, target, context, llvm::nulls());
    TriedLength tried{tryStep(options, target, context), length, options.attention, std::move(chosen)};
    tried.fits = tried.report && found.limits.fitsDevice(*tried.report) && found.limits.fitsHost(*tried.report);
    found.tried.push_back(std::move(tried));
    if (found.tried.size() == 1 && found.tried[0].report)
      printHeader(found, out);
    if (found.tried[0].report)
      printTried(found, found.tried.back(), out);
    if (found.tried.back().fits && (!found.longest || found.tried[*found.longest].length < length))
      found.longest = found.tried.size() - 1;
    return found.tried.back();
  }

  CompileOptions base;
  const cost::Target &target;
  MLIRContext &context;
  llvm::raw_ostream &out;
  LongestSequence found;
};
} // namespace

FailureOr<LongestSequence> findLongestSequence(const CompileOptions &options, const cost::Target &target,
                                               MLIRContext &context, llvm::raw_ostream &out) {
  FailureOr<LongestSequence> found = LengthSearch(options, target, context, out).run();
  if (failed(found))
    return failure();
  if (found->longest)
    out << "the longest that fits has " << found->tried[*found->longest].length << " positions"
        << (choosesAttention(options) ? ", with --attention " + found->tried[*found->longest].attention : "") << "\n";
  else
    out << "not even " << found->tried.back().length << " positions fit\n";
  return found;
}

llvm::json::Object longestSequenceJson(const LongestSequence &found) {
  llvm::json::Array rows;
  for (const TriedLength &tried : found.tried) {
    llvm::json::Object row{{"positions", tried.length}, {"fits", tried.fits}};
    if (tried.report) {
      row["reserved_per_rank"] = tried.report->memory.reserved;
      row["libraries_per_rank"] = tried.report->memory.libraries;
      row["host_per_rank"] = tried.report->memory.host;
      row["step_seconds"] = tried.report->time.total;
    } else {
      row["error"] = tried.error;
    }
    rows.push_back(std::move(row));
  }
  llvm::json::Object json{{"limit", found.limits.limit}, {"tried", std::move(rows)}};
  if (found.longest)
    json["longest"] = found.tried[*found.longest].length;
  return json;
}

} // namespace tessera
