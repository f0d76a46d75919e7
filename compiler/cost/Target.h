//===- Target.h - what a machine can do, read from a target file -*- C++ -*-===//
//
// A target file is JSON (docs/cost-model.md has its format): peak rates, efficiencies and link speeds of one kind of
// machine, each with the source of the number beside it. tessera-calibrate writes one for the machine at hand.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_COST_TARGET_H
#define TESSERA_COMPILER_COST_TARGET_H

#include "compiler/dialect/dist/CollectiveKind.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tessera::cost {

/// A quantity by size, known at some points: interpolated between them on logarithmic axes, constant outside of them.
class Curve {
public:
  Curve() = default;
  explicit Curve(double constant) : points{{1.0, constant}} {}
  /// Points in ascending order of x, all numbers positive.
  explicit Curve(std::vector<std::pair<double, double>> points) : points(std::move(points)) {}
  double at(double x) const;
  bool empty() const { return points.empty(); }
  double last() const { return points.back().second; }

private:
  std::vector<std::pair<double, double>> points;
};

/// The fraction of the peak that a product of [m, k] and [k, n] reaches.
struct GemmPoint {
  double m, n, k, efficiency;
};

using Collective = dist::CollectiveKind;
inline constexpr size_t kNumCollectives = 5;
inline constexpr const char *kCollectiveNames[kNumCollectives] = {"all_gather", "reduce_scatter", "all_reduce",
                                                                  "all_to_all", "permute"};

/// One collective on one kind of link: seconds = latency + hop_latency * ceil(log2(ranks)) + wire bytes / bandwidth.
struct LinkModel {
  double latency = 0, hopLatency = 0; ///< seconds
  Curve bandwidth;                    ///< wire bytes per second and device, by the wire bytes of the collective
};
using Links = std::array<LinkModel, kNumCollectives>;

struct Target {
  std::string name, description;
  std::string kind;         ///< cpu | cuda
  std::string architecture; ///< of a GPU: sm_80, sm_90 or sm_100; empty if the file does not say
  int64_t devicesPerNode = 1;
  double deviceMemory = 0; ///< bytes; what one rank may use
  double hostMemory = 0;   ///< bytes of one node, for what is offloaded
  Curve memoryBandwidth;   ///< bytes read and written per second, by the bytes that a kernel touches
  double launchSeconds = 0;
  double kernelOperations = 1e300; ///< that generated kernels do per second, if memory does not bound them
  std::map<std::string, double, std::less<>> peakFlops; ///< per second and device, by dtype: fp32, bf16, fp8, …
  std::map<std::string, std::vector<GemmPoint>, std::less<>> gemm; ///< by dtype
  /// Fractions of the peak, by the number of keys; on GPUs those of cuDNN.
  Curve attentionForward{1.0}, attentionBackward{1.0};
  /// Of GPUs, those of our own kernels: on tensor cores, and of the others, which compute in fp32, both ways.
  Curve tensorForward{1.0}, tensorBackward{1.0}, scalarAttention{1.0};
  bool deterministicAttention = true; ///< as gradients are to be computed; not of the machine and not in its file
  double convolution = 1;             ///< fraction of the peak
  Links intraNode, interNode;
  /// Progress per second of computation, and of communication, while both are under way (1: they do not disturb each
  /// other; 0.5 and 0.5: they share the same cores).
  double overlapCompute = 1, overlapCommunication = 1;

  /// Peak of an element type; types without an entry (integers, f64) count as fp32.
  double peak(mlir::Type elementType) const;
  /// Fraction of the peak for one product, from the measured shapes nearest to it (on logarithmic axes).
  double gemmEfficiency(mlir::Type elementType, double m, double n, double k) const;

  /// Reads a target by name (`h100x8`: a file that ships with the compiler) or by path (`my-machine.json`). `cpu` is
  /// `cpu-host`. Errors name the file and the field.
  static mlir::FailureOr<Target> load(llvm::StringRef nameOrPath, mlir::Location loc);
  /// The names of the targets that ship with the compiler, sorted.
  static std::vector<std::string> shipped();
};

/// "fp32", "bf16", "fp8", … of an element type, as target files name them.
llvm::StringRef dtypeName(mlir::Type elementType);

} // namespace tessera::cost

#endif // TESSERA_COMPILER_COST_TARGET_H
