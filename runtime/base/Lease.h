//===- Lease.h - one process per folder ------------------------------------===//
//
// A small file says who works in a folder: host, process, since when, and a counter that goes up every few seconds. It
// appears by link(2), which one of several processes wins on every file system, NFS among them; clocks of hosts are
// never compared. That a holder on this machine has ended is seen from its process; of one elsewhere it is taken for
// granted only when asked to, and once the counter has stood still for a while.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BASE_LEASE_H
#define TESSERA_RUNTIME_BASE_LEASE_H

#include "runtime/base/Status.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace tessera {

struct LeaseOptions {
  bool takesOver = false;   ///< From a holder elsewhere that shows no sign of life.
  double beatSeconds = 5;   ///< Between two signs of life.
  double staleSeconds = 30; ///< So long a holder elsewhere must show none.
  /// Not 0: acquiring gives up at once.
  const std::atomic<int> *stopSignal = nullptr;
};

class Lease {
public:
  /// Makes the file `path` in a folder that exists. A folder that is in use is an error that says by whom.
  static Result<std::unique_ptr<Lease>> acquire(const std::string &path, const LeaseOptions &options = {});
  /// Releases it.
  ~Lease();
  Lease(const Lease &) = delete;
  Lease &operator=(const Lease &) = delete;

  /// An error if another process has taken the folder over, or may have since the release; looks at the file.
  Status check();
  /// The same without looking: as of the last sign of life.
  bool isLost() const { return lost.load(); }
  /// Removes the file if it is still this process's. Any number of times, from any thread.
  void release();

private:
  Lease(std::string path, std::string id, int descriptor, const LeaseOptions &options);
  Status begin();
  void beat();

  const std::string path, id;
  const LeaseOptions options;
  int descriptor; ///< of this process's file, which may no longer be the one at `path`
  std::atomic<bool> lost{false};
  std::mutex mutex;
  std::condition_variable changed;
  bool isReleased = false;
  std::string lossReason; ///< once `lost`
  std::thread thread;     ///< beats
};

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_LEASE_H
