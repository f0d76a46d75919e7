//===- CollectiveNames.h - what collectives are called ----------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_COLLECTIVENAMES_H
#define TESSERA_RUNTIME_ARTIFACT_COLLECTIVENAMES_H

#include "runtime/artifact/artifact_generated.h"

#include <string_view>

namespace tessera {

/// "all_gather", …: in messages, traces and dumps.
std::string_view toString(artifact::CollectiveKind kind);
/// "sum", "max" or "min".
std::string_view toString(artifact::ReductionKind kind);

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_COLLECTIVENAMES_H
