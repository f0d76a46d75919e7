//===- LocalCommunicator.h - ranks are threads of one process --------------===//
//
// Members of a group publish their pointers, meet, and copy or add straight out of each other's memory: every byte is
// moved once, there is no staging buffer and no installation.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_LOCAL_LOCALCOMMUNICATOR_H
#define TESSERA_RUNTIME_COMM_LOCAL_LOCALCOMMUNICATOR_H

#include "runtime/comm/Communicator.h"

#include <memory>
#include <vector>

namespace tessera {

struct LocalWorldOptions {
  /// A rank that waits longer than this for another one ends all ranks. 0: wait for ever.
  double stallTimeoutSeconds = 60;
};

/// One communicator per rank, index = rank. They share state, and may be used from different threads.
std::vector<std::unique_ptr<Communicator>> createLocalWorld(int numRanks, const LocalWorldOptions &options = {});

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_LOCAL_LOCALCOMMUNICATOR_H
