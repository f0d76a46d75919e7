//===- RemoteWorld.cpp - what a process knows of the others ----------------===//

#include "runtime/comm/remote/RemoteWorld.h"

#include "runtime/base/Log.h"
#include "runtime/comm/RankMessage.h"

#include <cstring>
#include <numeric>

namespace tessera {

/// What processes tell each other aside from collectives; of fixed size, so that a receive can always be waiting.
struct RemoteWorld::Record {
  enum Kind : uint32_t { Alive, Abort };
  uint32_t kind = Alive;
  uint32_t isBusy = 0, waits = 0;
  char text[1012] = "";

  std::byte *bytes() { return reinterpret_cast<std::byte *>(this); }
};

static std::chrono::steady_clock::duration seconds(double count) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(count));
}

/// Several within a stall timeout, at most one per second.
static std::chrono::steady_clock::duration heartbeatFor(double stallTimeoutSeconds) {
  return seconds(stallTimeoutSeconds > 0 ? std::clamp(stallTimeoutSeconds / 8, 0.02, 1.0) : 1.0);
}

RemoteWorld::RemoteWorld(std::unique_ptr<Transport> opened, const RemoteWorldOptions &options)
    : transport(std::move(opened)), options(options), heartbeat(heartbeatFor(options.stallTimeoutSeconds)),
      peers(transport->numRanks()) {}

Result<std::unique_ptr<RemoteWorld>> RemoteWorld::create(std::unique_ptr<Transport> transport,
                                                         const RemoteWorldOptions &options) {
  std::unique_ptr<RemoteWorld> world(new RemoteWorld(std::move(transport), options));
  TESSERA_RETURN_IF_ERROR(world->open());
  return world;
}

Status RemoteWorld::openLink(RemoteLink &target, const std::vector<int> &members) {
  Clock::time_point begin = Clock::now();
  RemoteActivity activity{"opening of connections", {}, false};
  TESSERA_ASSIGN_OR_RETURN(target.link, transport->open(members, [&](const std::vector<int> &missing) -> Status {
    if (isAborted.load(std::memory_order_acquire))
      return abortReason();
    return checkPending(missing, activity, begin);
  }));
  target.members = members;
  target.position = static_cast<int>(std::find(members.begin(), members.end(), rank()) - members.begin());
  return Status::ok();
}

Status RemoteWorld::open() {
  std::vector<int> everyone(numRanks());
  std::iota(everyone.begin(), everyone.end(), 0);
  TESSERA_RETURN_IF_ERROR(openLink(control, everyone));
  TESSERA_RETURN_IF_ERROR(openLink(checkpoints, everyone));
  RemoteLink monitored;
  TESSERA_RETURN_IF_ERROR(openLink(monitored, everyone));
  monitorLink = std::move(monitored.link);
  TESSERA_RETURN_IF_ERROR(transport->begin());
  Clock::time_point now = Clock::now();
  for (Peer &peer : peers)
    peer.lastHeard = now.time_since_epoch().count();
  monitor = std::thread([this] { watch(); });
  return Status::ok();
}

RemoteWorld::~RemoteWorld() {
  isEnding = true;
  changed.notify_all();
  if (monitor.joinable())
    monitor.join();
}

Status RemoteWorld::finish() {
  std::byte token{};
  std::vector<std::byte> tokens(numRanks());
  std::vector<Transfer> transfers;
  for (int rank = 0; rank < numRanks(); ++rank)
    if (rank != this->rank()) {
      transfers.push_back(receiveFrom(rank, &tokens[rank], 1));
      transfers.push_back(sendTo(rank, &token, 1));
    }
  TESSERA_RETURN_IF_ERROR(exchange(control, std::move(transfers), {"end of the run", {}, false}));
  isEnding = true;
  changed.notify_all();
  monitor.join();
  for (Peer &peer : peers) {
    peer.receiving.reset();
    peer.sending.reset();
  }
  transport->finish();
  return Status::ok();
}

Status RemoteWorld::prepare(const std::vector<int> &members, int channel) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (links.count({members, channel}))
      return Status::ok();
  }
  auto made = std::make_unique<RemoteLink>();
  TESSERA_RETURN_IF_ERROR(openLink(*made, members));
  std::lock_guard<std::mutex> lock(mutex);
  links[{members, channel}] = std::move(made);
  return Status::ok();
}

Result<RemoteLink *> RemoteWorld::link(const std::vector<int> &members, int channel) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = links.find({members, channel});
  if (found == links.end())
    return TESSERA_ERROR(Internal, "a collective on a group and channel that were not prepared");
  return found->second.get();
}

static std::vector<int> pendingRanks(const RemoteLink &link, const Exchange &exchange) {
  std::vector<int> ranks;
  for (const Transfer &transfer : exchange.transfers)
    if (!transfer.isDone)
      ranks.push_back(link.members[transfer.peer]);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

Status RemoteWorld::exchange(RemoteLink &link, std::vector<Transfer> transfers, const RemoteActivity &activity) {
  if (isAborted.load(std::memory_order_acquire))
    return abortReason();
  if (transfers.empty())
    return Status::ok();
  TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<Exchange> exchange, link.link->start(std::move(transfers)));
  Clock::time_point begin = Clock::now();
  // Others are told of a wait that has lasted for a while.
  struct WaitMark {
    std::atomic<int> &count;
    bool isSet = false;
    ~WaitMark() { count -= isSet ? 1 : 0; }
    void set() {
      count += isSet ? 0 : 1;
      isSet = true;
    }
  } mark{numWaits};
  // Ranks arrive nearly together as a rule: look often for a moment, then leave the core to others. Looking is also
  // what moves the bytes, so that the pauses stay short.
  for (int64_t look = 0;; ++look) {
    if (Status status = exchange->progress(); !status.isOk())
      return lostPeer(status, pendingRanks(link, *exchange), activity);
    if (exchange->isDone())
      return Status::ok();
    if (isAborted.load(std::memory_order_acquire))
      return abortReason();
    if (look < 50)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(look < 1000 ? 20 : 200));
    if (look % 64 != 63)
      continue;
    if (Clock::now() - begin > heartbeat)
      mark.set();
    TESSERA_RETURN_IF_ERROR(checkPending(pendingRanks(link, *exchange), activity, begin));
  }
}

/// Whether one of the ranks that this one waits for has ended, or has had its time.
Status RemoteWorld::checkPending(const std::vector<int> &pending, const RemoteActivity &activity,
                                 Clock::time_point begin) {
  for (int rank : pending)
    if (peers[rank].hasEnded)
      return lostPeer(Status::ok(), pending, activity);
  Clock::time_point now = Clock::now();
  if (options.stopSignal && options.stopSignal->load() != 0 && now - begin > std::chrono::milliseconds(200) &&
      !hasWarned.exchange(true))
    log::warn("asked to end by signal {}, while it waits for rank {} at {}", options.stopSignal->load(),
              pending.front(), describe(activity.what, activity.info));
  if (options.stallTimeoutSeconds <= 0)
    return Status::ok();
  // The timeout counts from when the last of them was busy (or, for the patient, was heard of).
  double limit = options.stallTimeoutSeconds;
  for (int rank : pending) {
    if (peers[rank].waits)
      limit = options.stallTimeoutSeconds + indirectPatience(options.stallTimeoutSeconds);
    const std::atomic<Clock::rep> &last = activity.isPatient ? peers[rank].lastHeard : peers[rank].lastBusy;
    begin = std::max(begin, Clock::time_point(Clock::duration(last.load())));
  }
  if (now - begin < seconds(limit))
    return Status::ok();
  abort(TESSERA_ERROR(
      Aborted, describeStall(pending, describe(activity.what, activity.info), options.stallTimeoutSeconds, rank()) +
                   silence(pending)));
  return abortReason();
}

/// Tells a rank that is slow from one that was stopped or whose host is gone.
std::string RemoteWorld::silence(const std::vector<int> &ranks) const {
  for (int rank : ranks) {
    Clock::duration silent = Clock::now() - Clock::time_point(Clock::duration(peers[rank].lastHeard.load()));
    if (silent > 3 * heartbeat + std::chrono::milliseconds(100))
      return "; nothing was heard of rank " + std::to_string(rank) + " for " +
             std::to_string(std::chrono::duration_cast<std::chrono::seconds>(silent).count()) +
             " s: it was stopped or killed, or its host is gone";
  }
  return "; its process is alive";
}

/// A connection broke: if the other one said why, that is the reason.
Status RemoteWorld::lostPeer(const Status &cause, const std::vector<int> &pending, const RemoteActivity &activity) {
  std::vector<int> ended;
  for (int tries = 0; tries < 50 && !isAborted && ended.empty(); ++tries) {
    for (int rank : pending)
      if (peers[rank].hasEnded)
        ended.push_back(rank);
    if (ended.empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  int lost = ended.empty() ? pending.front() : ended.front();
  std::string text = "rank " + std::to_string(lost) + " has ended: rank " + std::to_string(rank()) +
                     " waits for it at " + describe(activity.what, activity.info);
  abort(TESSERA_ERROR(Aborted, cause.isOk() ? text : text + " (" + cause.message() + ")"));
  return abortReason();
}

Status RemoteWorld::checkOthers(std::string_view what) {
  if (isAborted.load(std::memory_order_acquire))
    return abortReason();
  std::string waits = "rank " + std::to_string(rank()) + " waits in " + std::string(what);
  for (int rank = 0; rank < numRanks(); ++rank) {
    if (rank == this->rank())
      continue;
    std::string lost;
    Clock::duration silent = Clock::now() - Clock::time_point(Clock::duration(peers[rank].lastHeard.load()));
    if (peers[rank].hasEnded)
      lost = "rank " + std::to_string(rank) + " has ended: " + waits;
    else if (options.stallTimeoutSeconds > 0 && silent > seconds(options.stallTimeoutSeconds))
      lost = "stalled: " + waits + silence({rank});
    if (lost.empty())
      continue;
    abort(TESSERA_ERROR(Aborted, lost));
    return abortReason();
  }
  return Status::ok();
}

void RemoteWorld::setBusy(bool busy) {
  isBusy = busy;
  changed.notify_all();
}

void RemoteWorld::abort(const Status &why) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!isAborted) {
    Status named = toldByRank(why, rank());
    reason = Status(StatusCode::Aborted, named.message(), named.file(), named.line());
    begunHere = true;
    isAborted.store(true, std::memory_order_release);
    changed.notify_all();
  }
  if (begunHere)
    changed.wait_for(lock, std::chrono::seconds(1), [this] { return hasToldAbort; });
}

void RemoteWorld::setAborted(const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (isAborted)
    return;
  reason = TESSERA_ERROR(Aborted, message);
  isAborted.store(true, std::memory_order_release);
}

Status RemoteWorld::abortReason() {
  std::lock_guard<std::mutex> lock(mutex);
  return reason;
}

void RemoteWorld::watch() {
  constexpr std::chrono::milliseconds interval{10};
  while (!isEnding) {
    for (int rank = 0; rank < numRanks(); ++rank)
      if (rank != this->rank() && !peers[rank].hasEnded)
        watchPeer(rank);
    std::unique_lock<std::mutex> lock(mutex);
    if (begunHere && !hasToldAbort) {
      hasToldAbort = true;
      for (int rank = 0; rank < numRanks(); ++rank) {
        const Peer &peer = peers[rank];
        if (rank != this->rank() && !peer.hasEnded && (!peer.sentAbort || peer.sending))
          hasToldAbort = false;
      }
      if (hasToldAbort)
        changed.notify_all();
    }
    changed.wait_for(lock, interval);
  }
}

void RemoteWorld::watchPeer(int rank) {
  Peer &peer = peers[rank];
  for (std::unique_ptr<Exchange> *each : {&peer.receiving, &peer.sending})
    if (*each && !(*each)->progress().isOk()) {
      peer.hasEnded = true;
      return;
    }
  if (peer.receiving && peer.receiving->isDone()) {
    hear(rank);
    peer.receiving.reset();
  }
  if (peer.sending && peer.sending->isDone())
    peer.sending.reset();
  if (!peer.receiving) {
    peer.incoming = std::make_unique<Record>();
    auto started = monitorLink->start({receiveFrom(rank, peer.incoming->bytes(), sizeof(Record))});
    if (!started.isOk()) {
      peer.hasEnded = true;
      return;
    }
    peer.receiving = std::move(*started);
  }
  if (!peer.sending)
    tell(rank, Clock::now());
}

void RemoteWorld::hear(int rank) {
  Peer &peer = peers[rank];
  Clock::rep now = Clock::now().time_since_epoch().count();
  peer.lastHeard = now;
  // A rank that was busy until this record was so until now.
  if (peer.incoming->isBusy)
    peer.lastBusy = now;
  peer.waits = peer.incoming->waits != 0;
  if (peer.incoming->kind == Record::Abort) {
    peer.incoming->text[sizeof(peer.incoming->text) - 1] = '\0';
    setAborted(peer.incoming->text);
  }
}

void RemoteWorld::tell(int rank, Clock::time_point now) {
  Peer &peer = peers[rank];
  bool busy = isBusy, waits = numWaits > 0;
  auto record = std::make_unique<Record>();
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (begunHere) {
      if (peer.sentAbort)
        return;
      record->kind = Record::Abort;
      std::strncpy(record->text, reason.message().c_str(), sizeof(record->text) - 1);
    } else if (now - peer.lastSent < heartbeat && busy == peer.sentBusy && waits == peer.sentWaits) {
      return;
    }
  }
  record->isBusy = busy || peer.sentBusy;
  record->waits = waits;
  auto started = monitorLink->start({sendTo(rank, record->bytes(), sizeof(Record))});
  if (!started.isOk()) {
    peer.hasEnded = true;
    return;
  }
  peer.sentAbort = record->kind == Record::Abort;
  peer.sentBusy = busy;
  peer.sentWaits = waits;
  peer.lastSent = now;
  peer.outgoing = std::move(record);
  peer.sending = std::move(*started);
}

} // namespace tessera
