//===- RemoteCommunicator.h - one rank per process -------------------------===//
//
// Collectives over any transport (MPI, TCP). Sums are taken as in `local`: the parts of all members come to the rank
// that owns the sum (an all-to-all), which adds them in group order. So a run gives the same bits over processes as
// over threads.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_REMOTE_REMOTECOMMUNICATOR_H
#define TESSERA_RUNTIME_COMM_REMOTE_REMOTECOMMUNICATOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/remote/Transport.h"

#include <atomic>

namespace tessera {

struct RemoteWorldOptions {
  /// A rank that waits longer than this for another one ends all ranks. 0: wait for ever.
  double stallTimeoutSeconds = 60;
  /// Not 0 once the process was asked to end: a rank that waits then says for whom.
  const std::atomic<int> *stopSignal = nullptr;
};

/// The communicator of this process. Its destructor ends the connection if the run was not aborted; all ranks do so
/// together.
Result<std::unique_ptr<Communicator>> createRemoteCommunicator(std::unique_ptr<Transport> transport,
                                                               const RemoteWorldOptions &options = {});

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_REMOTE_REMOTECOMMUNICATOR_H
