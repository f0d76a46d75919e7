//===- StateTransfer.h - brings the state of all ranks to rank 0 -----------===//

#ifndef TESSERA_RUNTIME_STEP_STATETRANSFER_H
#define TESSERA_RUNTIME_STEP_STATETRANSFER_H

#include "runtime/comm/Communicator.h"
#include "runtime/state/StateView.h"

namespace tessera {

/// Rank 0 gets the views of all ranks (those that `saves`), the others nothing; every process calls it. `units` tells
/// the parameters of each unit. The views of other ranks point into `storage`, in memory for a whole copy.
Result<std::vector<RankState>> collectRankStates(Communicator &communicator, const RankState &mine,
                                                 const RankState &units, std::vector<std::string> &storage);

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_STATETRANSFER_H
