//===- Simulate.h - the time line of a lowered step -------------*- C++ -*-===//
//
// Plays the instructions of an exec.program on their streams, with the events between them, on a clock that the latency
// model drives.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_COST_SIMULATE_H
#define TESSERA_COMPILER_COST_SIMULATE_H

#include "compiler/cost/Latency.h"
#include "compiler/dialect/exec/Exec.h"

namespace tessera::cost {

/// Seconds of one step on one rank; all ranks are alike.
struct StepTime {
  double total = 0;
  double compute = 0;    ///< the compute stream computes, contention included
  double contention = 0; ///< the part of it that communication beside it costs
  double exposed = 0;    ///< the compute stream waits, or runs a collective itself
  double hidden = 0;     ///< communication is under way while the compute stream computes
  double gemm = 0, attention = 0, kernels = 0, other = 0; ///< of compute, without contention
};

/// While computation and communication are both under way each advances at the rate that the target gives; collectives
/// on two streams at the same time share their links.
StepTime simulate(exec::ProgramOp program, const LatencyModel &latency);

} // namespace tessera::cost

#endif // TESSERA_COMPILER_COST_SIMULATE_H
