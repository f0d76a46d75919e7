//===- NcclRing.h - what the ranks of a communicator share ----------------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_NCCLRING_H
#define TESSERA_TESTS_GPU_SIMULATOR_NCCLRING_H

#include "Simulator.h"

#include <nccl.h>

namespace tessera::sim {

enum class Exchange { AllGather, ReduceScatter, AllReduce, PointToPoint };

struct Transfer {
  bool sends = false, isMatched = false;
  uint64_t address = 0;
  size_t bytes = 0;
  int peer = 0;
};

struct Call {
  Exchange kind = Exchange::AllReduce;
  uint64_t input = 0, output = 0;
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t operation = ncclSum;
  std::vector<Transfer> transfers;
};

/// A rank in a collective.
struct Arrival {
  Call call;
  Gpu *gpu = nullptr;
  bool isDone = false;
};

/// What the ranks of a communicator share.
struct Ring {
  std::vector<struct Member *> members;                           ///< by rank; null until it has joined
  std::map<uint64_t, std::vector<std::shared_ptr<Arrival>>> open; ///< by number of the collective, then rank
  std::vector<std::pair<int, std::shared_ptr<Arrival>>> pointToPoint;
  bool isAborted = false;
  bool failsRegistration = false; ///< one rank's call has failed: the others' wait for it
  int joined = 0, ended = 0;      ///< ended: finalized or gone
  bool isComplete() const { return joined == static_cast<int>(members.size()); }
};

/// A communicator of one rank.
struct Member {
  std::shared_ptr<Ring> ring;
  int rank = 0;
  Gpu *gpu = nullptr;
  uint64_t arrived = 0; ///< collectives that its stream has come to
  int splits = 0;
  bool isBlocking = false, usesCopyEngines = false;
  bool hasEnded = false;
  bool waitsForLost = false; ///< in a call, for a rank that does not come
  ncclResult_t error = ncclSuccess;
  std::function<ncclResult_t()> pending; ///< what a call has begun, and a question for the state ends
};

/// The member takes part no more: finalized, or gone.
inline void endMember(Member &member) {
  if (!std::exchange(member.hasEnded, true))
    ++member.ring->ended;
}

/// Whether memory is registered with the communicator.
bool hasRegistered(ncclComm_t communicator);
/// The communicator goes, and with it what is registered.
void dropRegistered(ncclComm_t communicator);

size_t widthOf(ncclDataType_t type);
/// All ranks are there. All inputs are read before anything is written.
void finish(std::vector<std::shared_ptr<Arrival>> &all);
/// Pairs sends with receives between two ranks, in order.
void match(Ring &ring);

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_NCCLRING_H
