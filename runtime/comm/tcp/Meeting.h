//===- Meeting.h - the ranks of a run find each other ----------------------===//
//
// Every rank reports to rank 0, which tells all where the others are. The connections stay until all links are open, so
// that a rank that fails or is asked to end in the meantime tells all others why.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_TCP_MEETING_H
#define TESSERA_RUNTIME_COMM_TCP_MEETING_H

#include "runtime/comm/tcp/Messages.h"
#include "runtime/comm/tcp/Reception.h"
#include "runtime/comm/tcp/TcpTransport.h"
#include "runtime/comm/tcp/Waiting.h"

#include <optional>
#include <string>
#include <vector>

namespace tessera::tcp {

class Meeting {
public:
  /// `reception`: of this rank; rank 0's listens where all others look for it.
  Meeting(const TcpOptions &options, Reception &reception);

  /// Waits until all ranks have come.
  Status meet();
  /// To be asked during every wait until `begin` returns: an error if this process was asked to end, or if another one
  /// has ended or says that the start-up is over.
  Status check();
  /// The links of this rank are open: waits until those of all are.
  Status begin();
  /// Ends the start-up of all ranks; returns the reason that holds, which is the first one.
  Status end(const Status &why);

  uint64_t token() const { return runToken; }
  const std::vector<Place> &places() const { return ranks; } ///< by rank

private:
  struct Peer {
    Socket socket;
    Note note;
    size_t heard = 0; ///< bytes of `note`
    bool isReady = false;
  };

  Status gather();
  Status admit(Guest guest);
  Status report();
  Result<bool> reportOnce(Waiting &waiting, std::string &reason);
  Status checkSignal();
  Status checkPeer(int rank);
  Status endAll(const std::string &text, int signal);
  std::vector<int> missing() const;
  static Result<std::optional<Note>> hear(Peer &peer);

  const TcpOptions options;
  const std::string where; ///< of rank 0
  Reception &reception;
  std::vector<Peer> peers; ///< of rank 0: by rank; of others: rank 0 alone
  std::vector<Place> ranks;
  uint64_t runToken = 0;
  bool hasMet = false, hasBegun = false;
  Status reason; ///< of the end
};

} // namespace tessera::tcp

#endif // TESSERA_RUNTIME_COMM_TCP_MEETING_H
