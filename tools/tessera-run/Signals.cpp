//===- Signals.cpp - how signals end a run ---------------------------------===//

#include "tools/tessera-run/Signals.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <sys/prctl.h>
#include <unistd.h>

namespace tessera {

static SignalState state;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<long>::is_always_lock_free);

/// Since an arbitrary moment; at least 1.
static long milliseconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::max(1L, static_cast<long>(now.tv_sec) * 1000 + now.tv_nsec / 1000000);
}

/// Only calls what may be called in a handler.
static void handle(int number) {
  int none = 0;
  state.stopSignal.compare_exchange_strong(none, number);
  if (state.mayEndAtOnce.load()) {
    constexpr char text[] = "stopped before the first step\n";
    [[maybe_unused]] ssize_t written = ::write(STDOUT_FILENO, text, sizeof(text) - 1);
    ::_exit(128 + number);
  }
  if (number != SIGINT && number != SIGTERM)
    return;
  constexpr long sameWish = 1000;
  long now = milliseconds(), first = 0;
  if (!state.firstMilliseconds.compare_exchange_strong(first, now) && now - first >= sameWish)
    ::_exit(128 + number);
}

/// The Python package starts a run whose end its own is, too: TESSERA_PARENT is its process.
static void followParent() {
  const char *parent = std::getenv("TESSERA_PARENT");
  if (parent && std::strtol(parent, nullptr, 10) == static_cast<long>(::getppid()))
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

SignalState &handleSignals() {
  for (int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    struct sigaction action = {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN)
      continue;
    action = {};
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, nullptr);
  }
  for (int number : {SIGPIPE, SIGXFSZ})
    ::signal(number, SIG_IGN);
  followParent();
  return state;
}

} // namespace tessera
