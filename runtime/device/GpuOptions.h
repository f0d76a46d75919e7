//===- GpuOptions.h - what a user chooses for runs on GPUs -----------------===//

#ifndef TESSERA_RUNTIME_DEVICE_GPUOPTIONS_H
#define TESSERA_RUNTIME_DEVICE_GPUOPTIONS_H

#include <optional>
#include <string>

namespace tessera {

struct GpuOptions {
  bool usesGraphs = true; ///< whole steps as graphs of CUDA
  /// File of the algorithms of products that were timed, "": the user's; none: the library's first choice is taken.
  std::optional<std::string> autotune;
  /// The gradient of attention adds its parts in any order: faster, and in other bits each time.
  bool hasFastAttentionGradient = false;
  /// Collectives add in the same order each time: not in the switches between GPUs.
  bool isReproducible = true;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_DEVICE_GPUOPTIONS_H
