//===- LocalWorld.h - the state that ranks of one process share ------------===//

#ifndef TESSERA_RUNTIME_COMM_LOCAL_LOCALWORLD_H
#define TESSERA_RUNTIME_COMM_LOCAL_LOCALWORLD_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/local/LocalCommunicator.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// Names what a rank waits for, for the message of a stall.
struct LocalActivity {
  std::string_view what; ///< kind of collective, or the name of a barrier
  CollectiveInfo info;
  bool isPatient = false; ///< waits without a limit
};

/// Where the members of one group meet on one channel. A meeting is a barrier; between two of them the published calls
/// of all members may be read.
struct LocalGroup {
  explicit LocalGroup(const std::vector<int> &ranks)
      : members(ranks), calls(ranks.size()), blobs(ranks.size()), meetings(ranks.size()) {}

  const std::vector<int> members;
  std::vector<CollectiveCall> calls;           ///< by position; copies, since a member that fails is gone early
  std::vector<const std::string *> blobs;      ///< by position; of broadcasts and gathers
  std::vector<std::atomic<uint64_t>> meetings; ///< by position: how many it came to
  std::atomic<uint64_t> finished{0};           ///< meetings that are over
  std::atomic<size_t> arrived{0};              ///< members at the present meeting
  std::condition_variable changed;
};

class LocalWorld {
public:
  LocalWorld(int numRanks, const LocalWorldOptions &options)
      : numRanks(numRanks), stallTimeoutSeconds(options.stallTimeoutSeconds), ranks(numRanks) {}

  LocalGroup &group(const std::vector<int> &members, int channel);
  void setBusy(int rank, bool isBusy);
  /// Waits until all members have come. If some have not within the timeout, and were not busy, it aborts the world.
  Status meet(LocalGroup &group, int position, const LocalActivity &activity);

  void abort(const Status &why);
  Status abortReason();

  const int numRanks;

private:
  using Clock = std::chrono::steady_clock;
  /// What others see of a rank: whether it may take its time, until when it might, and how many of its threads wait.
  struct RankActivity {
    std::atomic<bool> isBusy{false};
    std::atomic<Clock::rep> busyUntil{0};
    std::atomic<int> waits{0};
  };

  static std::vector<int> missing(const LocalGroup &group, int position);
  Clock::time_point deadline(const LocalGroup &group, int position, Clock::time_point begin) const;

  const double stallTimeoutSeconds;
  std::vector<RankActivity> ranks;
  std::atomic<bool> aborted{false};
  std::mutex mutex;
  Status reason;
  std::map<std::pair<std::vector<int>, int>, std::unique_ptr<LocalGroup>> groups;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_LOCAL_LOCALWORLD_H
