//===- Socket.cpp - owned sockets and blocking helpers with a deadline -----===//

#include "runtime/comm/tcp/Socket.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
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
static Socket prepared(int descriptor) {
  int yes = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  return Socket(descriptor);
}

Result<Socket> listenOn(int port) {
  // One socket for IPv6 and IPv4, or IPv4 alone where there is no IPv6.
  for (int family : {AF_INET6, AF_INET}) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
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
    if (errno == EADDRINUSE || errno == EACCES)
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
static Status waitFor(const Socket &socket, short events, Deadline deadline) {
  while (true) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry = {socket.descriptor(), events, 0};
    int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1000)));
    if (ready > 0)
      return Status::ok();
    if (ready < 0 && errno != EINTR)
      return systemFailure("cannot wait for a connection");
    if (left.count() <= 0)
      return TESSERA_ERROR(Aborted, "no answer in time");
  }
}

Result<Socket> acceptFrom(const Socket &listener, Deadline deadline) {
  TESSERA_RETURN_IF_ERROR(waitFor(listener, POLLIN, deadline));
  int descriptor = ::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor < 0)
    return systemFailure("cannot accept a connection");
  return prepared(descriptor);
}

Result<Socket> connectTo(const std::string &host, int port, Deadline deadline) {
  std::string what = "cannot connect to " + host + ":" + std::to_string(port), reason = "no address";
  while (true) {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (failed)
      reason = ::gai_strerror(failed);
    std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
    for (const addrinfo *each = found; each; each = each->ai_next) {
      Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (socket.descriptor() >= 0 && ::connect(socket.descriptor(), each->ai_addr, each->ai_addrlen) == 0) {
        int yes = 1;
        ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        return socket;
      }
      reason = std::strerror(errno);
    }
    if (std::chrono::steady_clock::now() >= deadline)
      return TESSERA_ERROR(IoError, std::string(what).append(": ").append(reason));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
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

Status sendAll(const Socket &socket, const void *data, size_t bytes, Deadline deadline) {
  for (size_t done = 0; done < bytes;) {
    TESSERA_RETURN_IF_ERROR(waitFor(socket, POLLOUT, deadline));
    TESSERA_ASSIGN_OR_RETURN(size_t moved, trySend(socket, static_cast<const char *>(data) + done, bytes - done));
    done += moved;
  }
  return Status::ok();
}

Status receiveAll(const Socket &socket, void *data, size_t bytes, Deadline deadline) {
  for (size_t done = 0; done < bytes;) {
    TESSERA_RETURN_IF_ERROR(waitFor(socket, POLLIN, deadline));
    TESSERA_ASSIGN_OR_RETURN(size_t moved, tryReceive(socket, static_cast<char *>(data) + done, bytes - done));
    done += moved;
  }
  return Status::ok();
}

} // namespace tessera::tcp
