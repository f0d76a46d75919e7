//===- Nccl.cpp - NCCL between the simulated GPUs of one process ---------------===//
//
// A collective occupies each rank's stream until all ranks have come to it. Sums are taken in rank order and rounded at
// each rank, as a ring does. Communicators block or not, as they are asked to.
//
//===----------------------------------------------------------------------===//

#include "NcclRing.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace tessera::sim;

#define TESSERA_NCCL extern "C" TESSERA_SIM_API

namespace {

std::map<std::string, std::shared_ptr<Ring>> rings; ///< by unique id, or by the split that made them
std::set<Member *> members;
thread_local int groupDepth = 0;
thread_local std::vector<std::pair<std::pair<Member *, CUstream>, std::vector<Transfer>>> grouped;

class CollectiveWork : public Work {
public:
  CollectiveWork(Member *member, Call call)
      : member(member), ring(member->ring), rank(member->rank), call(std::move(call)) {}

  Outcome run(Gpu &gpu, std::shared_ptr<void> &state) override {
    if (ring->isAborted || !members.count(member))
      return Outcome::Done;
    auto arrival = std::static_pointer_cast<Arrival>(state);
    if (arrival)
      return arrival->isDone ? Outcome::Done : Outcome::Blocked;
    if (isLost)
      return Outcome::Blocked;
    uint64_t number = ++sim().counts["collectives"];
    if (number == sim().failureAt("nccl-lost")) {
      isLost = true;
      return Outcome::Blocked;
    }
    if (number == sim().failureAt("nccl")) {
      member->error = ncclRemoteError;
      isLost = true;
      return Outcome::Blocked;
    }
    arrival = std::make_shared<Arrival>();
    arrival->call = call;
    arrival->gpu = &gpu;
    state = arrival;
    if (call.kind == Exchange::PointToPoint) {
      ring->pointToPoint.emplace_back(rank, arrival);
      match(*ring);
    } else {
      auto &all = ring->open[member->arrived++];
      all.resize(ring->members.size());
      all[static_cast<size_t>(rank)] = arrival;
      if (std::find(all.begin(), all.end(), nullptr) == all.end()) {
        finish(all);
        ring->open.erase(member->arrived - 1);
      }
    }
    return arrival->isDone ? Outcome::Done : Outcome::Progressed;
  }

  const Member *user() const { return member; }

private:
  Member *member;
  std::shared_ptr<Ring> ring;
  int rank;
  const Call call;
  bool isLost = false;
};

ncclResult_t join(const std::string &name, int ranks, int rank, bool isBlocking, ncclComm_t *made) {
  std::shared_ptr<Ring> &ring = rings[name];
  if (!ring) {
    ring = std::make_shared<Ring>();
    ring->members.resize(static_cast<size_t>(ranks));
  }
  if (rank < 0 || rank >= ranks || static_cast<size_t>(ranks) != ring->members.size() || ring->members[rank])
    return ncclInvalidArgument;
  auto *member = new Member;
  member->ring = ring;
  member->rank = rank;
  member->gpu = sim().current();
  for (Member *other : ring->members)
    if (other && other->gpu == member->gpu) {
      sim().report("NCCL: two ranks share a GPU");
      delete member;
      return ncclInvalidUsage;
    }
  ring->members[rank] = member;
  ++ring->joined;
  members.insert(member);
  ++sim().handles["NCCL communicator"];
  *made = reinterpret_cast<ncclComm_t>(member);
  member->isBlocking = isBlocking;
  return ncclInProgress;
}

Member *memberOf(ncclComm_t handle, const char *call) {
  auto *member = reinterpret_cast<Member *>(handle);
  if (members.count(member))
    return member;
  sim().report(std::string(call) + ": the communicator does not exist");
  return nullptr;
}

ncclResult_t start(ncclComm_t handle, CUstream streamHandle, Call call, const char *name) {
  Lock lock(sim().mutex);
  Member *member = memberOf(handle, name);
  Stream *stream = sim().stream(streamHandle, name);
  if (!member || !stream)
    return ncclInvalidArgument;
  if (!member->ring->isComplete()) {
    sim().report(std::string(name) + ": the communicator is still being made");
    return ncclInvalidUsage;
  }
  if (stream->gpu != member->gpu) {
    sim().report(std::string(name) + ": stream and communicator are of two GPUs");
    return ncclInvalidArgument;
  }
  if (member->error != ncclSuccess)
    return member->error;
  if (member->hasEnded) {
    sim().report(std::string(name) + ": the communicator was finalized");
    return ncclInvalidUsage;
  }
  if (member->pending) {
    sim().report(std::string(name) + ": the communicator's last call is still under way");
    return ncclInvalidUsage;
  }
  if (stream->capture &&
      ((!member->isBlocking && sim().failureAt("nccl-capture")) ||
       (member->usesCopyEngines && sim().failureAt("nccl-engines")) || sim().failureAt("nccl-no-capture")))
    return ncclInvalidUsage;
  // A communicator that does not block gives its work to a thread of its own.
  sim().count(name);
  member->pending = [member, streamHandle, name, call = std::move(call)] {
    Stream *stream = sim().stream(streamHandle, name);
    if (!stream)
      return ncclInvalidArgument;
    CUresult result = sim().submit(*stream, std::make_shared<CollectiveWork>(member, call));
    return result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
  };
  return member->isBlocking ? std::exchange(member->pending, nullptr)() : ncclInProgress;
}

/// Until all ranks have joined a communicator that blocks.
ncclResult_t waitFor(ncclComm_t handle, ncclResult_t begun) {
  while (begun == ncclInProgress) {
    {
      Lock lock(sim().mutex);
      Member *member = memberOf(handle, "a call that blocks");
      if (!member)
        return ncclInvalidArgument;
      if (!member->isBlocking)
        break;
      if (member->ring->isComplete())
        return ncclSuccess;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return begun;
}

ncclResult_t transfer(bool sends, const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t handle,
                      CUstream stream) {
  Lock lock(sim().mutex);
  const char *name = sends ? "ncclSend" : "ncclRecv";
  Member *member = memberOf(handle, name);
  if (!member || peer < 0 || static_cast<size_t>(peer) >= member->ring->members.size())
    return ncclInvalidArgument;
  Transfer one{sends, false, reinterpret_cast<uint64_t>(data), count * widthOf(type), peer};
  if (groupDepth == 0)
    return start(handle, stream, {Exchange::PointToPoint, 0, 0, 0, type, ncclSum, {one}}, name);
  auto key = std::make_pair(member, stream);
  auto found = std::find_if(grouped.begin(), grouped.end(), [&](auto &entry) { return entry.first == key; });
  if (found == grouped.end())
    found = grouped.insert(grouped.end(), {key, {}});
  found->second.push_back(one);
  return ncclSuccess;
}

} // namespace

TESSERA_NCCL const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
  case ncclSystemError:
    return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclInvalidUsage:
    return "invalid usage";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  default:
    return "internal error";
  }
}
TESSERA_NCCL const char *ncclGetLastError(ncclComm_t) { return ""; }

TESSERA_NCCL ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  Lock lock(sim().mutex);
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "simulated %llu",
                static_cast<unsigned long long>(++sim().counts["NCCL ids"]));
  return ncclSuccess;
}

static ncclResult_t beginInit(ncclComm_t *made, int ranks, const ncclUniqueId &id, int rank,
                              const ncclConfig_t *config) {
  Lock lock(sim().mutex);
  *made = nullptr;
  if (!sim().current() || ranks < 1)
    return ncclInvalidArgument;
  if (sim().failureAt("nccl-init"))
    return ncclSystemError;
  return join(id.internal, ranks, rank, !config || config->blocking != 0, made);
}

TESSERA_NCCL ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks, ncclUniqueId id, int rank,
                                                 ncclConfig_t *config) {
  ncclResult_t begun = beginInit(made, ranks, id, rank, config);
  return waitFor(*made, begun);
}

static ncclResult_t beginSplit(ncclComm_t handle, int color, int key, ncclComm_t *made, const ncclConfig_t *config) {
  Lock lock(sim().mutex);
  *made = nullptr;
  Member *member = memberOf(handle, "ncclCommSplit");
  if (!member)
    return ncclInvalidArgument;
  if (!member->ring->isComplete()) {
    sim().report("ncclCommSplit: the communicator is still being made");
    return ncclInvalidUsage;
  }
  // Who belongs to a split is known when all have called it.
  struct Split {
    std::vector<std::tuple<int, int, int, Member *>> calls; ///< color, key, rank
  };
  static std::map<std::pair<Ring *, int>, Split> splits;
  int number = member->splits++;
  Split &split = splits[{member->ring.get(), number}];
  auto *joined = new Member;
  joined->gpu = member->gpu;
  joined->ring = std::make_shared<Ring>();
  joined->ring->members.resize(1); // not complete
  members.insert(joined);
  ++sim().handles["NCCL communicator"];
  split.calls.emplace_back(color, key, member->rank, joined);
  *made = reinterpret_cast<ncclComm_t>(joined);
  joined->isBlocking = !config || config->blocking != 0;
  joined->usesCopyEngines = config && config->CTAPolicy == NCCL_CTA_POLICY_ZERO;
  if (split.calls.size() < member->ring->members.size())
    return ncclInProgress;
  std::sort(split.calls.begin(), split.calls.end());
  for (size_t begin = 0; begin < split.calls.size();) {
    size_t end = begin;
    auto ring = std::make_shared<Ring>();
    for (; end < split.calls.size() && std::get<0>(split.calls[end]) == std::get<0>(split.calls[begin]); ++end) {
      Member *one = std::get<3>(split.calls[end]);
      if (members.count(one))
        one->ring = ring;
      one->rank = static_cast<int>(end - begin);
      ring->members.push_back(one);
      ++ring->joined;
    }
    begin = end;
  }
  splits.erase({member->ring.get(), number});
  return ncclInProgress;
}

TESSERA_NCCL ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t *made, ncclConfig_t *config) {
  ncclResult_t begun = beginSplit(handle, color, key, made, config);
  return waitFor(*made, begun);
}

TESSERA_NCCL ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *state) {
  Lock lock(sim().mutex);
  Member *member = memberOf(handle, "ncclCommGetAsyncError");
  if (!member)
    return ncclInvalidArgument;
  if (member->pending && sim().chance(50))
    if (ncclResult_t result = std::exchange(member->pending, nullptr)(); result != ncclSuccess)
      member->error = result;
  bool isMade = member->ring->isComplete() && !member->pending && !sim().failureAt("nccl-hang");
  // The ranks of a host end together: one that waits alone waits for ever.
  if (member->hasEnded && member->ring->ended < member->ring->joined)
    isMade = false;
  if (member->waitsForLost && member->ring->ended > 0)
    member->error = ncclRemoteError;
  isMade &= !member->waitsForLost;
  *state = member->error != ncclSuccess ? member->error : isMade ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}

/// The end of what is under way, in the background unless the communicator blocks.
TESSERA_NCCL ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  {
    Lock lock(sim().mutex);
    Member *member = memberOf(handle, "ncclCommFinalize");
    if (!member)
      return ncclInvalidArgument;
    if (hasRegistered(handle))
      sim().report("ncclCommFinalize: memory is still registered");
    if (member->hasEnded)
      sim().report("ncclCommFinalize: for a second time");
    endMember(*member);
    if (!member->isBlocking)
      return ncclInProgress;
  }
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (ncclResult_t asked = ncclCommGetAsyncError(handle, &state); asked != ncclSuccess)
      return asked;
  }
  return state;
}

/// NCCL waits for the graphs that hold a communicator's collectives.
static void checkGraphs(const Member *member, const char *call) {
  for (auto &[handle, graph] : sim().executables)
    for (const GraphNode &node : graph->nodes)
      if (auto *collective = dynamic_cast<const CollectiveWork *>(node.work.get()))
        if (collective->user() == member) {
          sim().report(std::string(call) + " waits for ever: a graph holds collectives of the communicator");
          return;
        }
}

static ncclResult_t endCommunicator(ncclComm_t handle, const char *call) {
  Lock lock(sim().mutex);
  Member *member = memberOf(handle, call);
  if (!member)
    return ncclInvalidArgument;
  checkGraphs(member, call);
  // The others would find out by the network; here what is under way ends.
  if (!member->ring->open.empty() || !member->ring->pointToPoint.empty())
    member->ring->isAborted = true;
  endMember(*member);
  dropRegistered(handle);
  members.erase(member);
  --sim().handles["NCCL communicator"];
  return ncclSuccess; // its memory stays: works in streams point to it
}

TESSERA_NCCL ncclResult_t ncclCommAbort(ncclComm_t handle) { return endCommunicator(handle, "ncclCommAbort"); }

// --- Calls ------------------------------------------------------------------------

TESSERA_NCCL ncclResult_t ncclGroupStart() {
  ++groupDepth;
  return ncclSuccess;
}

TESSERA_NCCL ncclResult_t ncclGroupEnd() {
  if (groupDepth == 0)
    return ncclInvalidUsage;
  if (--groupDepth > 0)
    return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (auto &[key, transfers] : std::exchange(grouped, {}))
    if (ncclResult_t one = start(reinterpret_cast<ncclComm_t>(key.first), key.second,
                                 {Exchange::PointToPoint, 0, 0, 0, ncclUint8, ncclSum, transfers}, "ncclGroup");
        result == ncclSuccess)
      result = one;
  return result;
}

TESSERA_NCCL ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t handle,
                                   cudaStream_t stream) {
  return transfer(true, data, count, type, peer, handle, stream);
}
TESSERA_NCCL ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t handle,
                                   cudaStream_t stream) {
  return transfer(false, data, count, type, peer, handle, stream);
}

static Call callOf(Exchange kind, const void *input, void *output, size_t count, ncclDataType_t type,
                   ncclRedOp_t operation = ncclSum) {
  return {kind, reinterpret_cast<uint64_t>(input), reinterpret_cast<uint64_t>(output), count, type, operation, {}};
}
TESSERA_NCCL ncclResult_t ncclAllGather(const void *input, void *output, size_t count, ncclDataType_t type,
                                        ncclComm_t handle, cudaStream_t stream) {
  return start(handle, stream, callOf(Exchange::AllGather, input, output, count, type), "ncclAllGather");
}
TESSERA_NCCL ncclResult_t ncclAllReduce(const void *input, void *output, size_t count, ncclDataType_t type,
                                        ncclRedOp_t operation, ncclComm_t handle, cudaStream_t stream) {
  if (operation != ncclSum && operation != ncclMax && operation != ncclMin)
    return ncclInvalidArgument;
  return start(handle, stream, callOf(Exchange::AllReduce, input, output, count, type, operation), "ncclAllReduce");
}
TESSERA_NCCL ncclResult_t ncclReduceScatter(const void *input, void *output, size_t count, ncclDataType_t type,
                                            ncclRedOp_t operation, ncclComm_t handle, cudaStream_t stream) {
  if (operation != ncclSum && operation != ncclMax && operation != ncclMin)
    return ncclInvalidArgument;
  return start(handle, stream, callOf(Exchange::ReduceScatter, input, output, count, type, operation),
               "ncclReduceScatter");
}
