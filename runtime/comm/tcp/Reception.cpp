//===- Reception.cpp - takes connections, and hears who they are -----------===//

#include "runtime/comm/tcp/Reception.h"

#include "runtime/base/Log.h"

#include <algorithm>
#include <cstring>
#include <poll.h>
#include <sys/resource.h>

namespace tessera::tcp {

/// A rank introduces itself at once. Of those who do not, so many may wait, for so long; the oldest go first.
static constexpr std::chrono::seconds patience{10};
static size_t maxStrangers() {
  rlimit descriptors = {};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  return std::clamp<size_t>(descriptors.rlim_cur / 8, 8, 256);
}

static void drop(const Socket &socket, const char *why) {
  log::debug("drops a connection of {}: {}", peerAddress(socket), why);
}

Status Reception::acceptAll() {
  const size_t most = maxStrangers();
  while (true) {
    Result<Socket> accepted = acceptNow(listener);
    if (!accepted.isOk()) {
      if (strangers.empty())
        return accepted.status();
      drop(strangers.front().socket, "there are too many");
      strangers.pop_front();
      continue;
    }
    if (!accepted->isOpen())
      return Status::ok();
    Stranger stranger;
    stranger.socket = *std::move(accepted);
    strangers.push_back(std::move(stranger));
    if (strangers.size() > most) {
      drop(strangers.front().socket, "there are too many");
      strangers.pop_front();
    }
  }
}

Reception::Outcome Reception::hear(Stranger &stranger) {
  auto *bytes = reinterpret_cast<char *>(&stranger.hello);
  Result<size_t> step = tryReceive(stranger.socket, bytes + stranger.heard, sizeof(Hello) - stranger.heard);
  if (!step.isOk()) {
    drop(stranger.socket, "it ended before it said who it is");
    return Outcome::Dropped;
  }
  stranger.heard += *step;
  if (std::memcmp(bytes, magicOfRuns.data(), std::min(stranger.heard, sizeof(Magic))) != 0) {
    drop(stranger.socket, "it is no tessera-run of this version");
    return Outcome::Dropped;
  }
  if (stranger.heard == sizeof(Hello))
    return Outcome::Introduced;
  if (Clock::now() - stranger.came < patience)
    return Outcome::Waits;
  drop(stranger.socket, "it does not say who it is");
  return Outcome::Dropped;
}

Result<std::vector<Guest>> Reception::receive() {
  std::vector<pollfd> entries = {{listener.descriptor(), POLLIN, 0}};
  for (const Stranger &stranger : strangers)
    entries.push_back({stranger.socket.descriptor(), POLLIN, 0});
  ::poll(entries.data(), entries.size(), static_cast<int>(checkInterval.count()));
  TESSERA_RETURN_IF_ERROR(acceptAll());
  std::vector<Guest> guests;
  std::deque<Stranger> remaining;
  for (Stranger &stranger : strangers)
    switch (hear(stranger)) {
    case Outcome::Waits:
      remaining.push_back(std::move(stranger));
      break;
    case Outcome::Introduced:
      guests.push_back({std::move(stranger.socket), stranger.hello});
      break;
    case Outcome::Dropped:
      break;
    }
  strangers = std::move(remaining);
  return guests;
}

} // namespace tessera::tcp
