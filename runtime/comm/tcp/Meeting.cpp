//===- Meeting.cpp - the ranks of a run find each other --------------------===//

#include "runtime/comm/tcp/Meeting.h"

#include "runtime/base/Log.h"
#include "runtime/comm/RankMessage.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

namespace tessera::tcp {

static constexpr std::chrono::milliseconds retryInterval{50};

Meeting::Meeting(const TcpOptions &options, Reception &reception)
    : options(options), where(options.host + ":" + std::to_string(options.port)), reception(reception),
      peers(options.rank == 0 ? options.numRanks : 1), ranks(options.numRanks) {}

Status Meeting::meet() {
  TESSERA_RETURN_IF_ERROR(options.rank == 0 ? gather() : report());
  hasMet = true;
  return Status::ok();
}

/// What the other side has said, if it is there as a whole; an error if the other side is gone, or not of Tessera.
Result<std::optional<Note>> Meeting::hear(Peer &peer) {
  auto *bytes = reinterpret_cast<char *>(&peer.note);
  TESSERA_ASSIGN_OR_RETURN(size_t step, tryReceive(peer.socket, bytes + peer.heard, sizeof(Note) - peer.heard));
  peer.heard += step;
  if (std::memcmp(bytes, magicOfRuns.data(), std::min(peer.heard, sizeof(Magic))) != 0)
    return TESSERA_ERROR(IoError, "what answers there is not a tessera-run of this version");
  if (peer.heard < sizeof(Note))
    return std::optional<Note>();
  peer.heard = 0;
  peer.note.text[sizeof(peer.note.text) - 1] = '\0';
  return std::optional<Note>(peer.note);
}

std::vector<int> Meeting::missing() const {
  std::vector<int> absent;
  for (int rank = 1; rank < options.numRanks; ++rank)
    if (!peers[rank].socket.isOpen())
      absent.push_back(rank);
  return absent;
}

/// Rank 0: takes everyone's report, then tells all where the others are.
Status Meeting::gather() {
  Waiting waiting(options.startTimeoutSeconds);
  while (true) {
    std::vector<int> absent = missing();
    if (absent.empty())
      break;
    std::string names = "rank " + listRanks(absent) + " of " + std::to_string(options.numRanks);
    if (waiting.isOver())
      return endAll(names + " did not come to " + where + " within " + waiting.limit(), 0);
    waiting.tell([&] { return "waits for " + names + " at " + where; });
    Result<std::vector<Guest>> guests = reception.receive();
    if (!guests.isOk())
      return end(guests.status());
    for (Guest &guest : *guests)
      TESSERA_RETURN_IF_ERROR(admit(std::move(guest)));
    TESSERA_RETURN_IF_ERROR(check());
  }
  hasMet = true;
  std::strncpy(ranks[0].host, options.host.c_str(), sizeof(ranks[0].host) - 1);
  ranks[0].port = options.port;
  std::random_device random;
  runToken = (uint64_t{random()} << 32) | random() | 1;
  Note welcome = Note::make(Note::Welcome);
  welcome.token = runToken;
  for (int rank = 1; rank < options.numRanks; ++rank) {
    const Socket &socket = peers[rank].socket;
    auto check = [this] { return this->check(); };
    Status sent = sendAll(socket, &welcome, sizeof(welcome), check);
    if (sent.isOk())
      sent = sendAll(socket, ranks.data(), ranks.size() * sizeof(Place), check);
    if (!sent.isOk())
      return endAll("rank " + std::to_string(rank) + " has ended before the first step", 0);
  }
  return Status::ok();
}

Status Meeting::admit(Guest guest) {
  const Hello &hello = guest.hello;
  std::string wrong;
  if (hello.token != 0) {
    log::debug("drops a connection of {}: it is of another run", peerAddress(guest.socket));
    return Status::ok();
  }
  if (hello.numRanks != options.numRanks || hello.rank < 0 || hello.rank >= options.numRanks) {
    wrong = "two runs meet at " + where + ", where rank 0 waits for a run of " + std::to_string(options.numRanks) +
            " ranks: rank " + std::to_string(hello.rank) + " of a run of " + std::to_string(hello.numRanks) +
            " ranks came there from " + peerAddress(guest.socket);
  } else {
    TESSERA_RETURN_IF_ERROR(checkPeer(hello.rank)); // one that is gone may come again
    if (hello.rank == 0 || peers[hello.rank].socket.isOpen())
      wrong = "two processes say that they are rank " + std::to_string(hello.rank) + " of the run at " + where;
  }
  if (!wrong.empty()) {
    Note note = Note::make(Note::End, wrong);
    static_cast<void>(trySend(guest.socket, &note, sizeof(note)));
    return endAll(wrong, 0);
  }
  Place &place = ranks[hello.rank];
  place = {};
  std::strncpy(place.host, peerAddress(guest.socket).c_str(), sizeof(place.host) - 1);
  place.port = hello.link;
  Note known = Note::make(Note::Known);
  static_cast<void>(trySend(guest.socket, &known, sizeof(known)));
  peers[hello.rank] = {};
  peers[hello.rank].socket = std::move(guest.socket);
  return Status::ok();
}

/// Other ranks: until rank 0 says that all have come.
Status Meeting::report() {
  Waiting waiting(options.startTimeoutSeconds);
  std::string reason;
  while (true) {
    TESSERA_ASSIGN_OR_RETURN(bool done, reportOnce(waiting, reason));
    if (done)
      return Status::ok();
    peers[0] = {};
    std::this_thread::sleep_for(retryInterval);
  }
}

/// False: rank 0 is not there, or is gone again, for the `reason`.
Result<bool> Meeting::reportOnce(Waiting &waiting, std::string &reason) {
  std::string self = "rank " + std::to_string(options.rank);
  auto check = [&]() -> Status {
    TESSERA_RETURN_IF_ERROR(checkSignal());
    std::string why = reason.empty() ? "" : ": " + reason;
    if (waiting.isOver())
      return TESSERA_ERROR(Aborted, self + " cannot meet rank 0 at " + where + " within " + waiting.limit() + why);
    waiting.tell([&] { return "waits for rank 0 at " + where + why; });
    return Status::ok();
  };
  TESSERA_RETURN_IF_ERROR(check());
  std::string refused;
  TESSERA_ASSIGN_OR_RETURN(Socket socket, connectOnce(options.host, options.port, check, refused));
  if (!socket.isOpen()) {
    reason = refused;
    return false;
  }
  Peer &peer = peers[0];
  peer.socket = std::move(socket);
  Hello hello;
  hello.rank = options.rank;
  hello.numRanks = options.numRanks;
  hello.link = reception.port();
  if (Result<size_t> sent = trySend(peer.socket, &hello, sizeof(hello)); !sent.isOk() || *sent < sizeof(hello)) {
    reason = "connection lost";
    return false;
  }
  // Something else may listen there. Rank 0 says that it has heard; it may have come later, and then waits for longer.
  reason = "no answer";
  std::optional<Waiting> others;
  auto checkOthers = [&]() -> Status {
    if (!others)
      return check();
    TESSERA_RETURN_IF_ERROR(checkSignal());
    if (others->isOver())
      return TESSERA_ERROR(Aborted, self + " has met rank 0 at " + where + ", but was not told within " +
                                        waiting.limit() + " that all ranks have come");
    others->tell([&] { return "waits for rank 0 at " + where + " to say that all ranks have come"; });
    return Status::ok();
  };
  while (true) {
    Result<std::optional<Note>> note = hear(peer);
    if (!note.isOk()) {
      reason = note.status().message();
      return false;
    }
    if (!*note) {
      waitToRead(peer.socket, checkInterval);
      TESSERA_RETURN_IF_ERROR(checkOthers());
      continue;
    }
    if ((*note)->kind == Note::Known) {
      others.emplace(options.startTimeoutSeconds > 0 ? options.startTimeoutSeconds + 5 : 0);
      continue;
    }
    if ((*note)->kind == Note::End)
      return endAll((*note)->text, (*note)->signal);
    runToken = (*note)->token;
    TESSERA_RETURN_IF_ERROR(receiveAll(peer.socket, ranks.data(), ranks.size() * sizeof(Place), checkOthers)
                                .withContext(self + " has met rank 0 at " + where));
    for (Place &place : ranks)
      place.host[sizeof(place.host) - 1] = '\0';
    return true;
  }
}

static std::string wasAskedToEnd(int rank, int signal) {
  return "rank " + std::to_string(rank) + " was asked to end by signal " + std::to_string(signal);
}

Status Meeting::check() {
  if (!reason.isOk())
    return reason;
  TESSERA_RETURN_IF_ERROR(checkSignal());
  if (options.rank != 0)
    return hasBegun ? Status::ok() : checkPeer(0);
  for (int rank = 1; rank < options.numRanks; ++rank)
    TESSERA_RETURN_IF_ERROR(checkPeer(rank));
  return Status::ok();
}

/// Whether this process was asked to end. The others hear of it.
Status Meeting::checkSignal() {
  int signal = options.stopSignal ? options.stopSignal->load() : 0;
  if (signal == 0 || hasBegun)
    return reason;
  return endAll(wasAskedToEnd(options.rank, signal), signal);
}

Status Meeting::checkPeer(int rank) {
  Peer &peer = peers[rank];
  if (!peer.socket.isOpen())
    return Status::ok();
  Result<std::optional<Note>> note = hear(peer);
  if (!note.isOk() && !hasMet) {
    log::info("rank {} of {} is gone, and may come again", rank, options.numRanks);
    peer = {};
    return Status::ok();
  }
  if (!note.isOk())
    return endAll("rank " + std::to_string(rank) + " has ended before the first step", 0);
  if (!*note)
    return Status::ok();
  if ((*note)->kind == Note::End)
    return endAll((*note)->text, (*note)->signal);
  peer.isReady = (*note)->kind == Note::Ready;
  hasBegun |= (*note)->kind == Note::Begin;
  return Status::ok();
}

Status Meeting::end(const Status &why) { return endAll(toldByRank(why, options.rank).message(), 0); }

Status Meeting::endAll(const std::string &text, int signal) {
  if (!reason.isOk())
    return reason;
  reason = TESSERA_ERROR(Aborted, text);
  if (options.endedBy)
    options.endedBy->store(signal);
  Note note = Note::make(Note::End, text, signal);
  for (Peer &peer : peers)
    if (peer.socket.isOpen())
      static_cast<void>(trySend(peer.socket, &note, sizeof(note)));
  return reason;
}

Status Meeting::begin() {
  Waiting waiting(options.startTimeoutSeconds);
  auto checkTime = [&](const std::string &whom) -> Status {
    if (waiting.isOver())
      return end(TESSERA_ERROR(Aborted, whom + " did not open all connections within " + waiting.limit()));
    waiting.tell([&] { return "waits for " + whom + " to open all connections"; });
    return Status::ok();
  };
  if (options.rank != 0) {
    Note ready = Note::make(Note::Ready);
    Status sent = sendAll(peers[0].socket, &ready, sizeof(ready), [this] { return this->check(); });
    TESSERA_RETURN_IF_ERROR(checkPeer(0)); // it may have said why it is gone
    TESSERA_RETURN_IF_ERROR(sent);
    // Rank 0 may have let all begin by now. If this process is asked to end it therefore asks rank 0, and waits for the
    // answer: an end for all, or the begin, after which all agree to end before the first step.
    bool hasAsked = false;
    while (!hasBegun) {
      waitToRead(peers[0].socket, checkInterval);
      TESSERA_RETURN_IF_ERROR(checkPeer(0));
      if (int signal = options.stopSignal ? options.stopSignal->load() : 0; signal != 0 && !hasAsked) {
        Note note = Note::make(Note::End, wasAskedToEnd(options.rank, signal), signal);
        static_cast<void>(trySend(peers[0].socket, &note, sizeof(note)));
        hasAsked = true;
      }
      TESSERA_RETURN_IF_ERROR(checkTime("the others"));
    }
    return Status::ok();
  }
  for (int rank = 1; rank < options.numRanks; ++rank)
    while (!peers[rank].isReady) {
      waitToRead(peers[rank].socket, checkInterval);
      TESSERA_RETURN_IF_ERROR(check());
      TESSERA_RETURN_IF_ERROR(checkTime("rank " + std::to_string(rank)));
    }
  hasBegun = true;
  Note note = Note::make(Note::Begin);
  for (int rank = 1; rank < options.numRanks; ++rank) // that one is gone now is noticed by its links
    static_cast<void>(trySend(peers[rank].socket, &note, sizeof(note)));
  return Status::ok();
}

} // namespace tessera::tcp
