//===- LongestSequence.h - how long may a sequence be -----------*- C++ -*-===//
//
// The longest sequence whose step fits a device, found by compiling the step for one length after the other.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_LONGESTSEQUENCE_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_LONGESTSEQUENCE_H

#include "runtime/artifact/artifact_generated.h"
#include "tools/tessera-compile/driver/Fit.h"

namespace tessera {

/// A length that was compiled.
struct TriedLength : TriedStep {
  int64_t length = 0;                              ///< positions of a sequence, over all ranks
  std::string attention;                           ///< as of `--attention`; what auto is at this length
  std::optional<artifact::SequenceChoiceT> chosen; ///< why; nothing if it was asked for
  bool fits = false;
};

struct LongestSequence {
  FitReport limits;               ///< what a rank and a host have
  int64_t ranks = 1;              ///< that a sequence is split over
  int64_t unit = 1;               ///< lengths are multiples of it: of 1024, and of the ranges that ranks need
  std::vector<TriedLength> tried; ///< in order
  std::optional<size_t> longest;  ///< number of the longest that fits
};

/// Doubles the length of `options` (or the least one) until a step does not fit or compile, then halves the gap until
/// it is at most 1/32 of the length. Prints a line for each. Fails, with an error, if the model's length is fixed or
/// not even the least one compiles.
mlir::FailureOr<LongestSequence> findLongestSequence(const CompileOptions &options, const cost::Target &target,
                                                     mlir::MLIRContext &context, llvm::raw_ostream &out);

llvm::json::Object longestSequenceJson(const LongestSequence &found);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_LONGESTSEQUENCE_H
