//===- NcclEnvironment.cpp - what NCCL reads of its environment -------------===//

#include "runtime/device/cuda/NcclEnvironment.h"

#include "runtime/base/Log.h"

#include <cstdlib>
#include <cstring>

namespace tessera::cuda {

void setNcclEnvironment(const GpuOptions &options) {
  // Operations of several communicators are issued in one order on all ranks: with this NCCL keeps it on the GPU too,
  // so that no two ranks run them crosswise and wait for each other.
  ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
  // All that a step issued, or its graph, has ended when the next begins: what NCCL adds to a graph to order it
  // beside others and beside issued collectives is not needed.
  ::setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", /*overwrite=*/0);
  if (!options.isReproducible)
    return;
  // Sums in the switches between GPUs (NVLS, and the kernels for symmetric windows that use it) are not the same bits
  // from call to call: https://github.com/NVIDIA/nccl/issues/1497.
  ::setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
  if (const char *chosen = std::getenv("NCCL_NVLS_ENABLE"); std::strcmp(chosen, "0") != 0)
    log::warn("NCCL_NVLS_ENABLE={} lets switches add: runs may differ in the last bits (--reproducible off says so "
              "without this warning)",
              chosen);
}

} // namespace tessera::cuda
