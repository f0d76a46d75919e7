//===- Peers.h - processes that write something together --------------------===//

#ifndef TESSERA_RUNTIME_STATE_PEERS_H
#define TESSERA_RUNTIME_STATE_PEERS_H

#include "runtime/base/Status.h"

#include <functional>
#include <string>
#include <vector>

namespace tessera {

/// The processes that write one checkpoint or one folder of weights together, on a file system that all of them see.
struct Peers {
  int firstRank = 0; ///< Of this process; rank 0's makes the folder.
  /// Every process's text, in order of rank. None: this process has all ranks.
  std::function<Result<std::vector<std::string>>(const std::string &text)> gather;

  bool isRoot() const { return firstRank == 0; }
};

/// Tells all processes how this one fares. If one failed, all return its error; else everyone's text.
Result<std::vector<std::string>> agree(const Peers &peers, const Status &status, const std::string &text);

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_PEERS_H
