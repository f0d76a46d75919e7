//===- RankMessage.h - errors say of which rank they are -------------------===//

#ifndef TESSERA_RUNTIME_COMM_RANKMESSAGE_H
#define TESSERA_RUNTIME_COMM_RANKMESSAGE_H

#include "runtime/base/Status.h"

namespace tessera {

/// An error that arose in a rank, for all others: with `rank N: ` before it, unless it already begins with a rank.
Status toldByRank(const Status &error, int rank);
/// An error as a rank reports it at its end: with `rank N: ` before it, unless it begins with this rank.
Status seenByRank(const Status &error, int rank);

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_RANKMESSAGE_H
