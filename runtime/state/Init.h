//===- Init.h - seeded initial values ------------------------------------------===//
//
// An element's initial value is a function of (seed, parameter name, index in the parameter) and nothing else: the same
// on any mesh, under any wrap policy and on any number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_INIT_H
#define TESSERA_RUNTIME_STATE_INIT_H

#include "runtime/state/Philox.h"
#include "runtime/state/StateView.h"

namespace tessera {

/// The stream of random numbers of a parameter.
PhiloxKey parameterKey(uint64_t seed, std::string_view name);

/// Elements [begin, end) of a parameter. Runs on the calling thread's OpenMP team.
void initialValues(const InitSpec &init, PhiloxKey key, int64_t begin, int64_t end, float *values);

/// Writes initial values into what `view` holds of `segment`.
Status initialiseSegment(const StateView &view, const ParameterSegment &segment, uint64_t seed);

/// Sets a rank's whole state: optimizer states and padding to zero, parameters and their averages to their initial
/// values. Parameters without an initialiser are an error that lists all of them. `isZeroed`: the memory is new, and
/// zero already; zeros are not written again then.
Status initialiseState(const RankState &views, uint64_t seed, bool isZeroed = false);

/// Lets the moving averages begin as the parameters are.
Status startAverages(const RankState &views);

/// Zeroes optimizer states and padding, and leaves the parameters alone.
void clearState(const RankState &views);

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_INIT_H
