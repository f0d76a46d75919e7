//===- NcclTrial.h - whether collectives can be part of graphs --------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_NCCLTRIAL_H
#define TESSERA_RUNTIME_DEVICE_CUDA_NCCLTRIAL_H

#include "runtime/device/cuda/NcclChannels.h"

#include <functional>

namespace tessera::cuda {

/// Gives a collective to a stream.
using StartCollective = std::function<Status(const CollectiveCall &call, CUstream stream)>;

/// Why the first collective of some channel cannot be issued or captured on one of the ranks; empty: all can. Each runs
/// once before, on its own buffers, which hold zeros and keep them, since nothing is loaded yet: connections are made
/// by the first of a channel, in a way that cannot be captured. All ranks call it together.
Result<std::string> captureRefusal(RankContext &context, const NcclCalls &calls, NcclChannels &channels,
                                   const StartCollective &start);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_NCCLTRIAL_H
