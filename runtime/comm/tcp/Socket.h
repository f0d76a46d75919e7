//===- Socket.h - owned sockets, and waits that can be ended ---------------===//
//
// Nothing here blocks for longer than a tenth of a second without asking the caller whether to go on.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_TCP_SOCKET_H
#define TESSERA_RUNTIME_COMM_TCP_SOCKET_H

#include "runtime/base/Status.h"

#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace tessera::tcp {

/// Called about ten times a second during a wait; an error ends it and is returned.
using WaitCheck = std::function<Status()>;
/// Between two of these calls, at most.
inline constexpr std::chrono::milliseconds checkInterval{100};

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
  bool isOpen() const { return number >= 0; }

private:
  int number = -1;
};

/// Listens on all addresses of this machine; port 0: any.
Result<Socket> listenOn(int port);
int portOf(const Socket &socket);
/// A connection that has arrived; none if there is no more. An error if this process has no descriptor left.
Result<Socket> acceptNow(const Socket &listener);
/// One attempt; a socket that is not open and a `reason` if nobody answers. An error if the name has no address, or of
/// `check`.
Result<Socket> connectOnce(const std::string &host, int port, const WaitCheck &check, std::string &reason);
/// The numeric address of the other side.
std::string peerAddress(const Socket &socket);
/// Until there is something to read, the connection is gone, or the time is over.
void waitToRead(const Socket &socket, std::chrono::milliseconds limit);

Status sendAll(const Socket &socket, const void *data, size_t bytes, const WaitCheck &check);
Status receiveAll(const Socket &socket, void *data, size_t bytes, const WaitCheck &check);

/// What can be moved at once; an error if the connection is gone.
Result<size_t> trySend(const Socket &socket, const void *data, size_t bytes);
Result<size_t> tryReceive(const Socket &socket, void *data, size_t bytes);

} // namespace tessera::tcp

#endif // TESSERA_RUNTIME_COMM_TCP_SOCKET_H
