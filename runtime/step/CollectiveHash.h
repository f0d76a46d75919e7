//===- CollectiveHash.h - what ranks must agree on, as numbers -------===//

#ifndef TESSERA_RUNTIME_STEP_COLLECTIVEHASH_H
#define TESSERA_RUNTIME_STEP_COLLECTIVEHASH_H

#include "runtime/artifact/artifact_generated.h"

namespace tessera {

/// Of kind, axes, stream, type, size, shift and reduction of every collective of each program in order, and of the
/// loops around them: ranks with equal numbers issue matching collectives.
uint64_t collectiveSequenceHash(const artifact::Package &package);

/// Of the bytes of all arenas and of where the buffers of collectives lie in them: ranks with equal numbers have them
/// at equal offsets, as NCCL demands of memory that is registered.
uint64_t memoryPlanHash(const artifact::Package &package);

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_COLLECTIVEHASH_H
