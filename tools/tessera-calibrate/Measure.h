//===- Measure.h - what is measured of a machine ---------------------------------------===//

#ifndef TESSERA_TOOLS_CALIBRATE_MEASURE_H
#define TESSERA_TOOLS_CALIBRATE_MEASURE_H

#include "runtime/base/Status.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::calibrate {

struct Options {
  int ranks = 1;
  int threads = 1; ///< per rank
  int repeats = 5;
  bool cpuTime = false; ///< seconds of computing, not of waiting: for a machine that does other things too
  bool quick = false;   ///< few and small sizes: to try the tool, not to predict by
};

struct GemmSample {
  int64_t m, n, k;
  double flops; ///< per second and rank
};
using Points = std::vector<std::pair<double, double>>;

struct CollectiveSample {
  double latency = 0; ///< seconds of a few bytes
  Points bandwidth;   ///< wire bytes, wire bytes per second beyond the latency
};

/// Rates of one rank while all ranks do the same.
struct Measurements {
  std::vector<GemmSample> gemm;
  Points memory;                               ///< bytes touched by a kernel, bytes per second beyond the launch
  double kernelOperations = 0;                 ///< per second, of a kernel whose operands are in registers
  double launch = 0;                           ///< seconds
  Points attentionForward, attentionBackward;  ///< keys, FLOP per second
  double convolution = 0;                      ///< FLOP per second
  std::array<CollectiveSample, 5> collectives; ///< in the order of artifact::CollectiveKind
  double overlapCompute = 1, overlapCommunication = 1;
};

/// A size, and the rate beyond a constant cost. Sizes at which the constant is most of the time say nothing about the
/// rate and are left out, but for the largest.
void addRate(Points &points, double size, double seconds, double constant, bool isLast);

Result<Measurements> measure(const Options &options);

} // namespace tessera::calibrate

#endif // TESSERA_TOOLS_CALIBRATE_MEASURE_H
