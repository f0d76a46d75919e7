//===- TcpTransport.h - messages by sockets --------------------------------===//
//
// For launchers that only set an environment (torchrun, plain scripts, srun without PMIx): rank 0 listens, the others
// find it by address and port. No library is needed. Peers are trusted: use it in networks where that holds.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_TCP_TCPTRANSPORT_H
#define TESSERA_RUNTIME_COMM_TCP_TCPTRANSPORT_H

#include "runtime/comm/remote/Transport.h"

#include <string>

namespace tessera {

struct TcpOptions {
  int rank = 0, numRanks = 1;
  std::string host; ///< of rank 0, as all others reach it
  int port = 0;     ///< on which rank 0 listens
  double connectTimeoutSeconds = 120;
};

/// Meets the other ranks.
Result<std::unique_ptr<Transport>> openTcpTransport(const TcpOptions &options);

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_TCP_TCPTRANSPORT_H
