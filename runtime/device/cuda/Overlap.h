//===- Overlap.h - what computes beside collectives -------------------------===//
//
// Pure logic, built and tested without CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_OVERLAP_H
#define TESSERA_RUNTIME_DEVICE_CUDA_OVERLAP_H

#include "runtime/artifact/artifact_generated.h"

#include <unordered_set>

namespace tessera::cuda {

/// Multiprocessors that a communicator beside computing takes at most, and that products beside it leave it. Chosen
/// without hardware.
inline constexpr int collectiveMultiprocessors = 16;

/// Products of the compute stream that are issued after a collective of another stream, and before the compute stream
/// waits for it. `withGathers`: of gathers too, which else move by copy engines.
std::unordered_set<const artifact::Instruction *> productsBesideCollectives(const artifact::Package &package,
                                                                            bool withGathers);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_OVERLAP_H
