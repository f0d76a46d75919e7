//===- TcpTransport.h - messages by sockets --------------------------------===//
//
// For launchers that only set an environment (torchrun, plain scripts, srun without PMIx): rank 0 listens, the others
// find it by address and port. No library is needed. Peers are trusted: use it in networks where that holds.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_TCP_TCPTRANSPORT_H
#define TESSERA_RUNTIME_COMM_TCP_TCPTRANSPORT_H

#include "runtime/comm/remote/Transport.h"

#include <atomic>
#include <string>

namespace tessera {

struct TcpOptions {
  int rank = 0, numRanks = 1;
  std::string host;                 ///< of rank 0, as all others reach it
  int port = 0;                     ///< on which rank 0 listens
  double startTimeoutSeconds = 600; ///< for all ranks to come; 0: for ever
  /// Not 0 once this process was asked to end: then the start-up ends too, of all ranks.
  const std::atomic<int> *stopSignal = nullptr;
  /// Gets the signal that ended the start-up, here or in another process.
  std::atomic<int> *endedBy = nullptr;
};

/// Meets the other ranks.
Result<std::unique_ptr<Transport>> openTcpTransport(const TcpOptions &options);

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_TCP_TCPTRANSPORT_H
