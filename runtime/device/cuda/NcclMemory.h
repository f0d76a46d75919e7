//===- NcclMemory.h - arenas that NCCL reads and writes in place ------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_NCCLMEMORY_H
#define TESSERA_RUNTIME_DEVICE_CUDA_NCCLMEMORY_H

#include "runtime/device/cuda/NcclChannels.h"

namespace tessera::cuda {

/// What came of a registration; on all ranks the same.
struct NcclRegistered {
  NcclMeans::Registration way = NcclMeans::Registration::None; ///< or the one that was refused
  bool isSymmetric = false;                                    ///< windows, at the same offsets on all ranks
  std::string refusal; ///< an error, after which communicators must be made anew; empty: none
};

/// Registers the device arenas with every channel, as windows, else as buffers, so that collectives need no copies. All
/// ranks call it together. Either all ranks are registered or none: mixed use is not defined.
Result<NcclRegistered> registerArenas(RankContext &context, const NcclCalls &calls, NcclChannels &channels,
                                      NcclMeans::Registration first);
Status deregisterArenas(const NcclCalls &calls, NcclChannels &channels);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_NCCLMEMORY_H
