//===- NcclChannels.h - the communicators of a rank -------------------------===//
//
// The unique id travels over the runtime's Communicator (threads, MPI or TCP). Each group gets a communicator per
// stream, split from that of the world, so that gathers and reductions never wait for each other.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_NCCLCHANNELS_H
#define TESSERA_RUNTIME_DEVICE_CUDA_NCCLCHANNELS_H

#include "runtime/device/RankContext.h"
#include "runtime/device/cuda/NcclCalls.h"

#include <deque>
#include <vector>

namespace tessera::cuda {

/// What NCCL or the driver may not allow, and is then done without.
struct NcclMeans {
  enum class Registration { Windows, Buffers, None };

  bool isBlocking = false;     ///< communicators that block can hang, and are for libraries that capture no others
  bool usesCopyEngines = true; ///< for gathers, on one node; from NCCL 2.28 on
  Registration registration = Registration::Windows;
};

/// Collectives of one group on one stream, and what is registered with it.
struct NcclChannel {
  std::vector<int> members;
  int stream;
  bool hasGathers;
  bool usesCopyEngines; ///< if all ranks are of one node, and its windows symmetric
  ncclComm_t communicator;
  std::vector<std::unique_ptr<ncclWindow_t>> windows; ///< NCCL may write them until a call is settled
  std::vector<void *> buffers;
};

class NcclChannels {
public:
  NcclChannels(RankContext &context, const NcclCalls &calls) : context(context), calls(calls) {}

  /// Makes all communicators; all ranks call it together.
  Status connect(const NcclMeans &means);
  NcclChannel *find(const std::vector<int> &members, int stream);
  /// In the same order on all ranks.
  std::vector<NcclChannel> &all() { return channels; }
  /// Of some channel, and of all beside computing that have gathers.
  bool someUseCopyEngines() const;
  bool gathersUseCopyEngines() const;
  /// The orderly end, when nothing is registered any more.
  Status close();
  /// Ends what is under way. Takes a few seconds at most; what does not come back is left to the end of the process.
  void abort();

private:
  Status open(const std::vector<int> &members, int stream, const NcclMeans &means);
  struct Use;
  Use useOf(const std::vector<int> &members, int stream) const;

  RankContext &context;
  const NcclCalls &calls;
  ncclComm_t world = nullptr;
  std::deque<std::string> names; ///< NCCL keeps their addresses
  std::vector<NcclChannel> channels;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_NCCLCHANNELS_H
