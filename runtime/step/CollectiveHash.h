//===- CollectiveHash.h - the sequence of collectives, as one number -------===//

#ifndef TESSERA_RUNTIME_STEP_COLLECTIVEHASH_H
#define TESSERA_RUNTIME_STEP_COLLECTIVEHASH_H

#include "runtime/artifact/artifact_generated.h"

namespace tessera {

/// Of kind, axes, stream, type, size and shift of every collective in order, and of the loops around them: ranks with
/// equal numbers issue matching collectives.
uint64_t collectiveSequenceHash(const artifact::Program &program);

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_COLLECTIVEHASH_H
