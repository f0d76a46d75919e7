//===- Socket.cpp - owned sockets, and waits that can be ended -------------===//

#include "runtime/comm/tcp/Socket.h"

#include "runtime/comm/tcp/Resolve.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tessera::tcp {

static Status systemFailure(const std::string &what) {
  return TESSERA_ERROR(IoError, what + ": " + std::strerror(errno));
}

Socket::~Socket() {
  if (number >= 0)
    ::close(number);
}

/// Small messages go at once.
static Socket prepared(Socket socket) {
  int yes = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  return socket;
}

Result<Socket> listenOn(int port) {
  // One socket for IPv6 and IPv4, or IPv4 alone where there is no IPv6.
  for (int family : {AF_INET6, AF_INET}) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.descriptor() < 0)
      continue;
    int yes = 1, no = 0;
    ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    sockaddr_storage address = {};
    socklen_t length = 0;
    if (family == AF_INET6) {
      ::setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
      auto *v6 = reinterpret_cast<sockaddr_in6 *>(&address);
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(static_cast<uint16_t>(port));
      length = sizeof(*v6);
    } else {
      auto *v4 = reinterpret_cast<sockaddr_in *>(&address);
      v4->sin_family = AF_INET;
      v4->sin_port = htons(static_cast<uint16_t>(port));
      length = sizeof(*v4);
    }
    if (::bind(socket.descriptor(), reinterpret_cast<sockaddr *>(&address), length) == 0 &&
        ::listen(socket.descriptor(), SOMAXCONN) == 0)
      return socket;
    if (errno == EADDRINUSE)
      return TESSERA_ERROR(IoError,
                           "port " + std::to_string(port) +
                               " is in use by another program or run: end that one, or choose another port for "
                               "all ranks with MASTER_PORT or TESSERA_PORT");
    if (errno == EACCES)
      break;
  }
  return systemFailure("cannot listen on port " + std::to_string(port));
}

int portOf(const Socket &socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr *>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 &>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in &>(address).sin_port);
}

/// Waits until the socket is ready for `events`.
static Status waitFor(const Socket &socket, short events, const WaitCheck &check) {
  while (true) {
    pollfd entry = {socket.descriptor(), events, 0};
    int ready = ::poll(&entry, 1, static_cast<int>(checkInterval.count()));
    if (ready > 0)
      return Status::ok();
    if (ready < 0 && errno != EINTR)
      return systemFailure("cannot wait for a connection");
    TESSERA_RETURN_IF_ERROR(check());
  }
}

void waitToRead(const Socket &socket, std::chrono::milliseconds limit) {
  pollfd entry = {socket.descriptor(), POLLIN, 0};
  ::poll(&entry, 1, static_cast<int>(limit.count()));
}

Result<Socket> acceptNow(const Socket &listener) {
  while (true) {
    int descriptor = ::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor >= 0)
      return prepared(Socket(descriptor));
    if (errno == EAGAIN || errno == EWOULDBLOCK)
      return Socket();
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      return systemFailure("cannot accept a connection");
    // Anything else is about one connection, which is gone.
  }
}

/// A port of this machine that nobody listens on may be the one that the system gives to the connecting side, which is
/// then connected with itself.
static bool isConnectedWithItself(const Socket &socket) {
  sockaddr_storage own = {}, other = {};
  socklen_t ownLength = sizeof(own), otherLength = sizeof(other);
  return ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr *>(&own), &ownLength) == 0 &&
         ::getpeername(socket.descriptor(), reinterpret_cast<sockaddr *>(&other), &otherLength) == 0 &&
         ownLength == otherLength && std::memcmp(&own, &other, ownLength) == 0;
}

Result<Socket> connectOnce(const std::string &host, int port, const WaitCheck &check, std::string &reason) {
  constexpr std::chrono::seconds patience{10}; // with an address from which nothing is heard
  TESSERA_ASSIGN_OR_RETURN(Addresses addresses, resolve(host, port, check));
  reason = "no address";
  for (const addrinfo *each = addresses.get(); each; each = each->ai_next) {
    Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.isOpen()) {
      reason = std::strerror(errno);
      continue;
    }
    int error = ::connect(socket.descriptor(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      auto end = std::chrono::steady_clock::now() + patience;
      bool isLate = false;
      Status waited = waitFor(socket, POLLOUT, [&]() -> Status {
        TESSERA_RETURN_IF_ERROR(check());
        isLate = std::chrono::steady_clock::now() >= end;
        return isLate ? TESSERA_ERROR(IoError, "no answer") : Status::ok();
      });
      if (!waited.isOk() && !isLate)
        return waited;
      socklen_t length = sizeof(error);
      error = isLate ? ETIMEDOUT : 0;
      if (!isLate)
        ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error == 0 && isConnectedWithItself(socket))
      error = ECONNREFUSED;
    if (error == 0)
      return prepared(std::move(socket));
    reason = std::strerror(error);
  }
  return Socket();
}

std::string peerAddress(const Socket &socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  char text[NI_MAXHOST] = "";
  if (::getpeername(socket.descriptor(), reinterpret_cast<sockaddr *>(&address), &length) == 0)
    ::getnameinfo(reinterpret_cast<sockaddr *>(&address), length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  std::string result(text);
  return result.starts_with("::ffff:") ? result.substr(7) : result;
}

Result<size_t> trySend(const Socket &socket, const void *data, size_t bytes) {
  ssize_t moved = ::send(socket.descriptor(), data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (moved >= 0)
    return static_cast<size_t>(moved);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
    return size_t{0};
  return systemFailure("connection lost");
}

Result<size_t> tryReceive(const Socket &socket, void *data, size_t bytes) {
  ssize_t moved = ::recv(socket.descriptor(), data, bytes, MSG_DONTWAIT);
  if (moved > 0)
    return static_cast<size_t>(moved);
  if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    return size_t{0};
  if (moved == 0)
    errno = ECONNRESET;
  return systemFailure("connection lost");
}

Status sendAll(const Socket &socket, const void *data, size_t bytes, const WaitCheck &check) {
  for (size_t done = 0; done < bytes;) {
    TESSERA_RETURN_IF_ERROR(waitFor(socket, POLLOUT, check));
    TESSERA_ASSIGN_OR_RETURN(size_t moved, trySend(socket, static_cast<const char *>(data) + done, bytes - done));
    done += moved;
  }
  return Status::ok();
}

Status receiveAll(const Socket &socket, void *data, size_t bytes, const WaitCheck &check) {
  for (size_t done = 0; done < bytes;) {
    TESSERA_RETURN_IF_ERROR(waitFor(socket, POLLIN, check));
    TESSERA_ASSIGN_OR_RETURN(size_t moved, tryReceive(socket, static_cast<char *>(data) + done, bytes - done));
    done += moved;
  }
  return Status::ok();
}

} // namespace tessera::tcp
