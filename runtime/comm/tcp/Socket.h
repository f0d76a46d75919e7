//===- Socket.h - owned sockets and blocking helpers with a deadline -------===//

#ifndef TESSERA_RUNTIME_COMM_TCP_SOCKET_H
#define TESSERA_RUNTIME_COMM_TCP_SOCKET_H

#include "runtime/base/Status.h"

#include <chrono>
#include <string>
#include <utility>

namespace tessera::tcp {

using Deadline = std::chrono::steady_clock::time_point;

/// A descriptor that is closed with its owner; -1: none.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : number(descriptor) {}
  Socket(Socket &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Socket();
  int descriptor() const { return number; }

private:
  int number = -1;
};

/// Listens on all addresses of this machine; port 0: any.
Result<Socket> listenOn(int port);
int portOf(const Socket &socket);
Result<Socket> acceptFrom(const Socket &listener, Deadline deadline);
/// Tries until it succeeds or the deadline is over.
Result<Socket> connectTo(const std::string &host, int port, Deadline deadline);
/// The numeric address of the other side.
std::string peerAddress(const Socket &socket);

/// The whole of `data`, by the deadline.
Status sendAll(const Socket &socket, const void *data, size_t bytes, Deadline deadline);
Status receiveAll(const Socket &socket, void *data, size_t bytes, Deadline deadline);

/// What can be moved at once; an error if the connection is gone.
Result<size_t> trySend(const Socket &socket, const void *data, size_t bytes);
Result<size_t> tryReceive(const Socket &socket, void *data, size_t bytes);

} // namespace tessera::tcp

#endif // TESSERA_RUNTIME_COMM_TCP_SOCKET_H
