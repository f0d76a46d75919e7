//===- StepCounts.h - what a lowered step issues, by class ------*- C++ -*-===//
//
// Counts the instructions of an exec.program, and the bytes and predicted seconds of its generated kernels by their
// kind.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_COST_STEPCOUNTS_H
#define TESSERA_COMPILER_COST_STEPCOUNTS_H

#include "compiler/cost/Latency.h"
#include "compiler/dialect/exec/Exec.h"

#include <map>
#include <string>

namespace tessera::cost {

/// The generated kernels of one kind, over one step of one rank.
struct KernelCount {
  int64_t launches = 0;
  double read = 0, written = 0; ///< bytes: of each launch the sizes of its buffers, each counted once
  double seconds = 0;           ///< if nothing ran beside them
};

struct StepCounts {
  /// By kind: "elementwise", "row", "column", "reduce_all" or "scatter"; "other" if a kernel's name says none of them.
  std::map<std::string, KernelCount> kernels;
  /// Instructions by name ("gemm", "copy", "record"), launches among them. What a loop repeats counts each time.
  std::map<std::string, int64_t> instructions;
};

StepCounts countStep(exec::ProgramOp program, const LatencyModel &latency);

} // namespace tessera::cost

#endif // TESSERA_COMPILER_COST_STEPCOUNTS_H
