//===- Resolve.h - the addresses of a host's name --------------------------===//

#ifndef TESSERA_RUNTIME_COMM_TCP_RESOLVE_H
#define TESSERA_RUNTIME_COMM_TCP_RESOLVE_H

#include "runtime/comm/tcp/Socket.h"

#include <memory>
#include <netdb.h>

namespace tessera::tcp {

using Addresses = std::shared_ptr<const addrinfo>;

/// Asks again where the name service says that it fails for the moment, a few times. Does not wait for a name service
/// that hangs once `check` gives an error.
Result<Addresses> resolve(const std::string &host, int port, const WaitCheck &check);

} // namespace tessera::tcp

#endif // TESSERA_RUNTIME_COMM_TCP_RESOLVE_H
