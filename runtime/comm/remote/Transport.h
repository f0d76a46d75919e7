//===- Transport.h - moves bytes between processes -------------------------===//
//
// All that a communicator over processes needs: ordered messages between the members of a group, started and then
// polled, so that nothing blocks inside a library and a rank that does not come can be named.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_REMOTE_TRANSPORT_H
#define TESSERA_RUNTIME_COMM_REMOTE_TRANSPORT_H

#include "runtime/base/Status.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace tessera {

/// One message; `data` stays valid until it is done.
struct Transfer {
  int peer = 0; ///< position in the link's group
  bool isSend = false;
  std::byte *data = nullptr;
  size_t bytes = 0; ///< the same on both sides
  bool isDone = false;
};

inline Transfer sendTo(int peer, const void *data, size_t bytes) {
  return {peer, true, static_cast<std::byte *>(const_cast<void *>(data)), bytes, false};
}
inline Transfer receiveFrom(int peer, void *data, size_t bytes) {
  return {peer, false, static_cast<std::byte *>(data), bytes, false};
}

/// Messages under way. One that is destroyed before it is done is cancelled, as far as the transport can.
class Exchange {
public:
  explicit Exchange(std::vector<Transfer> transfers) : transfers(std::move(transfers)) {}
  virtual ~Exchange() = default;
  Exchange(const Exchange &) = delete;
  Exchange &operator=(const Exchange &) = delete;

  /// Moves what can be moved at once and marks what is done. An error means that a peer or the network is gone.
  virtual Status progress() = 0;
  bool isDone() const {
    return std::all_of(transfers.begin(), transfers.end(), [](const Transfer &transfer) { return transfer.isDone; });
  }

  std::vector<Transfer> transfers;
};

/// The members of a group, for the messages of one thread. Messages between two members in one direction arrive in the
/// order in which they were started.
class Link {
public:
  virtual ~Link() = default;
  virtual Result<std::unique_ptr<Exchange>> start(std::vector<Transfer> transfers) = 0;
};

/// About ranks that are waited for; an error ends the wait.
using MissingCheck = std::function<Status(const std::vector<int> &missing)>;

class Transport {
public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  virtual int rank() const = 0;
  virtual int numRanks() const = 0;
  /// All ranks call it in the same order, each with its own group (ranks in group order, this one among them). Once
  /// all ranks have begun, `check` is asked during waits, as far as the transport can.
  virtual Result<std::unique_ptr<Link>> open(const std::vector<int> &members, const MissingCheck &check) = 0;
  /// After the first links: returns when all ranks have opened theirs. From then on failures are told over links.
  virtual Status begin() = 0;
  /// After a barrier, when nothing is under way. Without it the process must end by _Exit.
  virtual void finish() = 0;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_REMOTE_TRANSPORT_H
