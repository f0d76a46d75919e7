//===- RemoteWorld.h - what a process knows of the others ------------------===//
//
// Waits for messages and decides when a wait has lasted too long. A monitor thread tells the other processes that this
// one is alive and whether it is busy, and carries the reason when a rank ends the run: the messages of collectives are
// never the only way to learn of a failure.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_REMOTE_REMOTEWORLD_H
#define TESSERA_RUNTIME_COMM_REMOTE_REMOTEWORLD_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/remote/RemoteCommunicator.h"
#include "runtime/comm/remote/Transport.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace tessera {

/// A link with what its thread needs besides.
struct RemoteLink {
  std::unique_ptr<Link> link;
  std::vector<int> members;
  int position = 0;               ///< of this rank
  std::vector<std::byte> staging; ///< parts of peers that are summed
};

/// Names what a rank waits for, for the message of a stall.
struct RemoteActivity {
  std::string_view what; ///< kind of collective, or the name of a barrier
  CollectiveInfo info;
  bool isPatient = false; ///< waits as long as the others are alive
};

class RemoteWorld {
public:
  static Result<std::unique_ptr<RemoteWorld>> create(std::unique_ptr<Transport> transport,
                                                     const RemoteWorldOptions &options);
  /// Orderly only after `finish`.
  ~RemoteWorld();

  int rank() const { return transport->rank(); }
  int numRanks() const { return transport->numRanks(); }

  /// Opens the link of a group on a channel; all ranks call it in the same order.
  Status prepare(const std::vector<int> &members, int channel);
  /// Of a group and channel that were prepared.
  Result<RemoteLink *> link(const std::vector<int> &members, int channel);
  RemoteLink &blobLink(BlobChannel channel) { return channel == BlobChannel::Control ? control : checkpoints; }

  /// Starts messages and waits until all are done, a rank fails or stalls.
  Status exchange(RemoteLink &link, std::vector<Transfer> transfers, const RemoteActivity &activity);

  /// See Communicator::checkOthers.
  Status checkOthers(std::string_view what);
  void setBusy(bool busy);
  /// Tells the other processes, for at most a second.
  void abort(const Status &why);
  Status abortReason();
  Status finish();

private:
  using Clock = std::chrono::steady_clock;
  struct Record;
  struct Peer {
    std::atomic<bool> hasEnded{false}, waits{false};
    std::atomic<Clock::rep> lastHeard{0}, lastBusy{0};
    // Of the monitor thread:
    std::unique_ptr<Record> incoming, outgoing;
    std::unique_ptr<Exchange> receiving, sending;
    Clock::time_point lastSent;
    bool sentBusy = false, sentWaits = false, sentAbort = false;
  };

  RemoteWorld(std::unique_ptr<Transport> transport, const RemoteWorldOptions &options);
  Status open();
  Status openLink(RemoteLink &target, const std::vector<int> &members);
  void setAborted(const std::string &message);
  void watch();
  void watchPeer(int rank);
  void hear(int rank);
  void tell(int rank, Clock::time_point now);
  Status checkPending(const std::vector<int> &pending, const RemoteActivity &activity, Clock::time_point begin);
  Status lostPeer(const Status &cause, const std::vector<int> &pending, const RemoteActivity &activity);
  std::string silence(const std::vector<int> &ranks) const;

  std::unique_ptr<Transport> transport;
  const RemoteWorldOptions options;
  const Clock::duration heartbeat;
  RemoteLink control, checkpoints;
  std::unique_ptr<Link> monitorLink;
  std::vector<Peer> peers; ///< by rank

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<std::vector<int>, int>, std::unique_ptr<RemoteLink>> links;
  Status reason;
  std::atomic<int> numWaits{0}; ///< threads that have waited for longer than a heartbeat
  std::atomic<bool> isAborted{false}, isBusy{false}, isEnding{false}, hasWarned{false};
  bool begunHere = false;    ///< the reason arose in this process
  bool hasToldAbort = false; ///< to all others
  std::thread monitor;       // last: it uses the members above
};

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_REMOTE_REMOTEWORLD_H
