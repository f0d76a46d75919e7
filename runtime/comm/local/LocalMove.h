//===- LocalMove.h - copies and reductions between ranks of one process--------===//

#ifndef TESSERA_RUNTIME_COMM_LOCAL_LOCALMOVE_H
#define TESSERA_RUNTIME_COMM_LOCAL_LOCALMOVE_H

#include "runtime/artifact/artifact_generated.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::local {

/// Copies between places that do not overlap, or are the same.
void copy(void *target, const void *source, size_t bytes);

bool canReduce(artifact::DataType dtype);
/// target[i] = ((inputs[0][i] + inputs[1][i]) + …), or their maximum or minimum; the target may be one of the inputs.
/// BF16 and F16 sum in f32. Of a NaN and a number the NaN is taken, and 0 is above -0.
void reduce(artifact::ReductionKind kind, artifact::DataType dtype, void *target,
            const std::vector<const void *> &inputs, int64_t elements);

/// Elements [begin, end) that position `position` of `count` reduces in an all_reduce.
std::pair<int64_t, int64_t> part(int64_t elements, size_t position, size_t count);

} // namespace tessera::local

#endif // TESSERA_RUNTIME_COMM_LOCAL_LOCALMOVE_H
