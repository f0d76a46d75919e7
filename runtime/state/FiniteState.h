//===- FiniteState.h - looks for infinities and NaNs in the state ---------------===//

#ifndef TESSERA_RUNTIME_STATE_FINITESTATE_H
#define TESSERA_RUNTIME_STATE_FINITESTATE_H

#include "runtime/state/StateView.h"

namespace tessera {

/// How many elements are infinite or not a number. Integers never are.
uint64_t countNonFinite(ByteSpan bytes, DataType dtype);

/// Copies `source` to `target` and counts on the way: memory is read once.
uint64_t copyAndCountNonFinite(uint8_t *target, ByteSpan source, DataType dtype);

/// Which trained parameters and (if `states`) optimizer states have such elements: "parameter 'h.0.w' has 3 values that
/// are not finite (and 2 others have 17)". Empty: none. Frozen parameters may hold what they like, masks for instance;
/// copies that another rank saves are left out.
std::string describeNonFinite(const std::vector<RankState> &ranks, bool states = true);

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_FINITESTATE_H
