//===- OneGpu.cpp - ranks that share a GPU as threads of one process --------===//
//
// For programs of several ranks where there is one GPU. The issuing threads meet at each collective and tell each other
// their buffers and an event; the GPU then waits for the events, and copies and reduces straight out of the
// others' memory. Sums are taken in group order.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaCollectives.h"

#include <algorithm>
#include <cstring>

namespace tessera::cuda {
namespace {

using artifact::CollectiveKind;

/// What a rank tells the others.
struct Offer {
  const char *input;
  char *output;
  CUevent ready, done;
};

class OneGpuCollectives : public CudaCollectives {
public:
  explicit OneGpuCollectives(const CollectiveSetUp &setUp)
      : communicator(setUp.context->communicator), mover(*setUp.mover) {}
  ~OneGpuCollectives() override {
    for (CUevent event : {ready, done})
      if (event)
        cuEventDestroy(event);
  }

  Status open() {
    TESSERA_CU(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    TESSERA_CU(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
    return Status::ok();
  }

  std::string_view name() const override { return "local"; }
  /// Ranks meet while they issue; one alone meets nobody.
  bool canBeCaptured() const override { return communicator.numRanks() == 1; }
  Status poll() override { return Status::ok(); }
  void abort() override {}

  Status start(const CollectiveCall &call, CUstream stream) override {
    const std::vector<int> &group = *call.group;
    auto position = static_cast<size_t>(std::find(group.begin(), group.end(), communicator.rank()) - group.begin());
    TESSERA_CU(cuEventRecord(ready, stream));
    TESSERA_RETURN_IF_ERROR(meet(call));
    for (int rank : group)
      TESSERA_CU(cuStreamWaitEvent(stream, offers[rank].ready, CU_EVENT_WAIT_DEFAULT));
    TESSERA_RETURN_IF_ERROR(move(call, position, stream));
    if (call.kind == CollectiveKind::AllReduce) {
      TESSERA_RETURN_IF_ERROR(finish(call, stream));
      TESSERA_RETURN_IF_ERROR(collectParts(call, position, stream));
    }
    return finish(call, stream);
  }

private:
  /// All ranks of the world issue the same collectives in the same order, so that they can meet as one.
  Status meet(const CollectiveCall &call) {
    Offer mine{static_cast<const char *>(call.input), static_cast<char *>(call.output), ready, done};
    std::string blob(reinterpret_cast<const char *>(&mine), sizeof(mine));
    TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all,
                             communicator.gatherBlobs(blob, describe(toString(call.kind), call.info)));
    offers.resize(all.size());
    for (size_t rank = 0; rank < all.size(); ++rank)
      std::memcpy(&offers[rank], all[rank].data(), sizeof(Offer));
    return Status::ok();
  }

  /// Nobody goes on before all have done what was issued.
  Status finish(const CollectiveCall &call, CUstream stream) {
    TESSERA_CU(cuEventRecord(done, stream));
    TESSERA_RETURN_IF_ERROR(meet(call));
    for (int rank : *call.group)
      TESSERA_CU(cuStreamWaitEvent(stream, offers[rank].done, CU_EVENT_WAIT_DEFAULT));
    // The events are recorded anew by the next collective: only after all have issued their waits.
    return meet(call);
  }

  Status copy(void *target, const void *source, int64_t bytes, CUstream stream) {
    if (target == source || bytes == 0)
      return Status::ok();
    TESSERA_CU(cuMemcpyDtoDAsync(deviceAddress(target), deviceAddress(source), static_cast<size_t>(bytes), stream));
    return Status::ok();
  }

  /// Elements that a position reduces in an all_reduce.
  static std::pair<int64_t, int64_t> part(int64_t elements, size_t position, size_t count) {
    auto each = (elements + static_cast<int64_t>(count) - 1) / static_cast<int64_t>(count);
    int64_t begin = std::min(elements, each * static_cast<int64_t>(position));
    return {begin, std::min(elements, begin + each)};
  }

  Status reduce(const CollectiveCall &call, char *target, int64_t begin, int64_t end, CUstream stream) {
    auto width = static_cast<int64_t>(byteWidth(call.dtype));
    std::vector<const void *> inputs;
    for (int rank : *call.group)
      inputs.push_back(offers[rank].input + begin * width);
    return mover.reduce(call.reduction, target, inputs, call.dtype, end - begin, stream);
  }

  Status move(const CollectiveCall &call, size_t position, CUstream stream) {
    const std::vector<int> &group = *call.group;
    auto width = static_cast<int64_t>(byteWidth(call.dtype)), count = static_cast<int64_t>(group.size());
    int64_t bytes = call.elements * width, self = static_cast<int64_t>(position);
    auto *output = static_cast<char *>(call.output);
    switch (call.kind) {
    case CollectiveKind::AllGather:
      for (int64_t from = 0; from < count; ++from)
        TESSERA_RETURN_IF_ERROR(copy(output + from * bytes, offers[group[from]].input, bytes, stream));
      return Status::ok();
    case CollectiveKind::ReduceScatter: {
      int64_t each = call.elements / count;
      return reduce(call, output, self * each, (self + 1) * each, stream);
    }
    case CollectiveKind::AllReduce: {
      // The part of this rank, into its own output; the others' inputs stay as they are until all have reduced.
      auto [begin, end] = part(call.elements, position, group.size());
      return reduce(call, output + begin * width, begin, end, stream);
    }
    case CollectiveKind::AllToAll: {
      int64_t each = bytes / count;
      for (int64_t from = 0; from < count; ++from)
        TESSERA_RETURN_IF_ERROR(copy(output + from * each, offers[group[from]].input + self * each, each, stream));
      return Status::ok();
    }
    case CollectiveKind::Permute: {
      int64_t from = ((self - call.shift) % count + count) % count;
      return copy(output, offers[group[from]].input, bytes, stream);
    }
    }
    return TESSERA_ERROR(Internal, "an unknown collective");
  }

  Status collectParts(const CollectiveCall &call, size_t position, CUstream stream) {
    auto width = static_cast<int64_t>(byteWidth(call.dtype));
    for (size_t from = 0; from < call.group->size(); ++from) {
      auto [begin, end] = part(call.elements, from, call.group->size());
      if (from != position)
        TESSERA_RETURN_IF_ERROR(copy(static_cast<char *>(call.output) + begin * width,
                                     offers[(*call.group)[from]].output + begin * width, (end - begin) * width,
                                     stream));
    }
    return Status::ok();
  }

  Communicator &communicator;
  Mover &mover;
  CUevent ready = nullptr, done = nullptr;
  std::vector<Offer> offers; ///< by rank
};

} // namespace

Result<std::unique_ptr<CudaCollectives>> joinOnOneGpu(const CollectiveSetUp &setUp) {
  auto made = std::make_unique<OneGpuCollectives>(setUp);
  TESSERA_RETURN_IF_ERROR(made->open());
  return std::unique_ptr<CudaCollectives>(std::move(made));
}

} // namespace tessera::cuda
