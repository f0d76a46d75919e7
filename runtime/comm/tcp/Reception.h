//===- Reception.h - takes connections, and hears who they are -------------===//
//
// Anything may connect to a port: scanners, health checks, browsers, processes that say nothing. All connections are
// heard at the same time, so that none holds up another; what is not of Tessera is dropped.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_TCP_RECEPTION_H
#define TESSERA_RUNTIME_COMM_TCP_RECEPTION_H

#include "runtime/comm/tcp/Messages.h"
#include "runtime/comm/tcp/Socket.h"

#include <chrono>
#include <cstddef>
#include <deque>
#include <vector>

namespace tessera::tcp {

/// Who has introduced itself.
struct Guest {
  Socket socket;
  Hello hello;
};

class Reception {
public:
  explicit Reception(Socket listener) : listener(std::move(listener)) {}
  int port() const { return portOf(listener); }

  /// Those who have introduced themselves; waits for them for `checkInterval` at most. May be empty.
  Result<std::vector<Guest>> receive();

private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    Socket socket;
    Hello hello;
    size_t heard = 0; ///< bytes of `hello`
    Clock::time_point came = Clock::now();
  };
  enum class Outcome { Waits, Introduced, Dropped };

  Status acceptAll();
  static Outcome hear(Stranger &stranger);

  Socket listener;
  std::deque<Stranger> strangers; ///< in the order in which they came
};

} // namespace tessera::tcp

#endif // TESSERA_RUNTIME_COMM_TCP_RECEPTION_H
