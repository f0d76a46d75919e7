//===- Nccl.cpp - ranks with a GPU each, by NCCL ----------------------------===//
//
// The unique id travels over the runtime's Communicator (threads, MPI or TCP). Each group gets a communicator per
// stream, split from that of the world, so that gathers and reductions never wait for each other. All calls are
// non-blocking: what does not come to an end within the stall timeout, or while another rank gives up, is aborted.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Device.h"
#include "runtime/device/cuda/CudaCollectives.h"

#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

namespace tessera::cuda {
namespace {

using artifact::CollectiveKind;
using artifact::DataType;

Result<ncclDataType_t> typeOf(DataType dtype, bool adds) {
  switch (dtype) {
  case DataType::F32:
    return ncclFloat32;
  case DataType::F64:
    return ncclFloat64;
  case DataType::F16:
    return ncclFloat16;
  case DataType::BF16:
    return ncclBfloat16;
  case DataType::I32:
    return ncclInt32;
  case DataType::I64:
    return ncclInt64;
  default:
    if (adds || byteWidth(dtype) != 1)
      return TESSERA_ERROR(Unsupported, std::string("a sum of type ") + artifact::EnumNameDataType(dtype));
    return ncclUint8; // bytes that are only moved
  }
}

class NcclCollectives : public CudaCollectives {
public:
  explicit NcclCollectives(const CollectiveSetUp &setUp)
      : context(*setUp.context), timeout(setUp.stallTimeoutSeconds) {}
  ~NcclCollectives() override {
    for (auto &[key, communicator] : communicators)
      ncclCommAbort(communicator); // without the others: destroying would wait for them
    if (world)
      ncclCommAbort(world);
  }

  Status open() {
    Communicator &control = context.communicator;
    ncclUniqueId id{};
    if (control.rank() == 0)
      TESSERA_RETURN_IF_ERROR(check("ncclGetUniqueId", ncclGetUniqueId(&id), nullptr));
    std::string blob(reinterpret_cast<const char *>(&id), sizeof(id));
    TESSERA_RETURN_IF_ERROR(control.broadcast(blob, 0, "NCCL's unique id"));
    std::memcpy(&id, blob.data(), sizeof(id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t begun = ncclCommInitRankConfig(&world, control.numRanks(), id, control.rank(), &config);
    TESSERA_RETURN_IF_ERROR(check("ncclCommInitRank", begun, world));
    for (auto [group, stream] : collectiveChannels(context.artifact.program())) {
      const std::vector<int> &members = context.groups[group];
      if (members.size() < 2)
        continue;
      int position = static_cast<int>(std::find(members.begin(), members.end(), control.rank()) - members.begin());
      ncclComm_t made = nullptr;
      Status split = check("ncclCommSplit", ncclCommSplit(world, members.front(), position, &made, &config), world);
      if (made)
        communicators[{members, stream}] = made;
      TESSERA_RETURN_IF_ERROR(split);
      TESSERA_RETURN_IF_ERROR(settle("ncclCommSplit", made));
    }
    return Status::ok();
  }

  std::string_view name() const override { return "nccl"; }
  bool canBeCaptured() const override { return true; }

  Status start(const CollectiveCall &call, CUstream stream) override {
    ncclComm_t communicator = communicators.at({*call.group, call.channel});
    bool adds = call.kind == CollectiveKind::AllReduce || call.kind == CollectiveKind::ReduceScatter;
    TESSERA_ASSIGN_OR_RETURN(ncclDataType_t type, typeOf(call.dtype, adds));
    auto count = static_cast<size_t>(call.elements), ranks = call.group->size();
    auto *input = static_cast<const char *>(call.input);
    auto *output = static_cast<char *>(call.output);
    switch (call.kind) {
    case CollectiveKind::AllGather:
      return check("ncclAllGather", ncclAllGather(input, output, count, type, communicator, stream), communicator);
    case CollectiveKind::ReduceScatter:
      return check("ncclReduceScatter",
                   ncclReduceScatter(input, output, count / ranks, type, ncclSum, communicator, stream), communicator);
    case CollectiveKind::AllReduce:
      return check("ncclAllReduce", ncclAllReduce(input, output, count, type, ncclSum, communicator, stream),
                   communicator);
    case CollectiveKind::AllToAll:
      return allToAll(input, output, count / ranks, call, type, communicator, stream);
    case CollectiveKind::Permute:
      return permute(call, type, communicator, stream);
    }
    return TESSERA_ERROR(Internal, "an unknown collective");
  }

  Status poll() override {
    for (auto &[key, communicator] : communicators) {
      ncclResult_t state = ncclSuccess;
      ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
      for (ncclResult_t result : {asked, state})
        if (result != ncclSuccess && result != ncclInProgress)
          return error("NCCL", result, communicator);
    }
    return Status::ok();
  }

  void abort() override {
    for (auto &[key, communicator] : communicators)
      ncclCommAbort(communicator);
    communicators.clear();
    if (ncclComm_t mine = std::exchange(world, nullptr))
      ncclCommAbort(mine);
  }

private:
  static Status error(const char *call, ncclResult_t result, ncclComm_t communicator) {
    std::string text = std::string(call) + ": " + ncclGetErrorString(result);
    if (const char *last = ncclGetLastError(communicator); last && *last)
      text += std::string(" (") + last + ")";
    return TESSERA_ERROR(IoError, text);
  }

  Status check(const char *call, ncclResult_t result, ncclComm_t communicator) {
    if (result == ncclSuccess)
      return Status::ok();
    return result == ncclInProgress ? settle(call, communicator) : error(call, result, communicator);
  }

  /// Waits until a call that was begun has been taken.
  Status settle(const char *call, ncclComm_t communicator) {
    auto begin = std::chrono::steady_clock::now();
    while (true) {
      ncclResult_t state = ncclSuccess;
      ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
      if (asked != ncclSuccess)
        return error(call, asked, communicator);
      if (state == ncclSuccess)
        return Status::ok();
      if (state != ncclInProgress)
        return error(call, state, communicator);
      TESSERA_RETURN_IF_ERROR(context.communicator.abortReason());
      double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (timeout > 0 && seconds > timeout)
        return TESSERA_ERROR(Aborted, std::string("stalled: not all ranks reached ") + call + " within " +
                                          std::to_string(static_cast<int>(timeout)) + " s");
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  Status allToAll(const char *input, char *output, size_t count, const CollectiveCall &call, ncclDataType_t type,
                  ncclComm_t communicator, CUstream stream) {
    size_t bytes = count * byteWidth(call.dtype);
    TESSERA_RETURN_IF_ERROR(check("ncclGroupStart", ncclGroupStart(), communicator));
    ncclResult_t first = ncclSuccess;
    for (size_t peer = 0; peer < call.group->size(); ++peer) {
      keepFirst(first, ncclSend(input + peer * bytes, count, type, static_cast<int>(peer), communicator, stream));
      keepFirst(first, ncclRecv(output + peer * bytes, count, type, static_cast<int>(peer), communicator, stream));
    }
    return endGroup("all_to_all", first, communicator);
  }

  Status permute(const CollectiveCall &call, ncclDataType_t type, ncclComm_t communicator, CUstream stream) {
    const std::vector<int> &group = *call.group;
    auto ranks = static_cast<int64_t>(group.size());
    int64_t self = std::find(group.begin(), group.end(), context.communicator.rank()) - group.begin();
    auto to = static_cast<int>(((self + call.shift) % ranks + ranks) % ranks);
    auto from = static_cast<int>(((self - call.shift) % ranks + ranks) % ranks);
    TESSERA_RETURN_IF_ERROR(check("ncclGroupStart", ncclGroupStart(), communicator));
    ncclResult_t first = ncclSuccess;
    auto count = static_cast<size_t>(call.elements);
    keepFirst(first, ncclSend(call.input, count, type, to, communicator, stream));
    keepFirst(first, ncclRecv(call.output, count, type, from, communicator, stream));
    return endGroup("permute", first, communicator);
  }

  static void keepFirst(ncclResult_t &first, ncclResult_t next) {
    if (first == ncclSuccess || first == ncclInProgress)
      first = next;
  }

  Status endGroup(const char *what, ncclResult_t first, ncclComm_t communicator) {
    ncclResult_t ended = ncclGroupEnd();
    if (first != ncclSuccess && first != ncclInProgress)
      return error(what, first, communicator);
    return check(what, ended, communicator);
  }

  RankContext &context;
  const double timeout;
  ncclComm_t world = nullptr;
  std::map<std::pair<std::vector<int>, int>, ncclComm_t> communicators; ///< by members and stream
};

} // namespace

Result<std::unique_ptr<CudaCollectives>> joinByNccl(const CollectiveSetUp &setUp) {
  auto made = std::make_unique<NcclCollectives>(setUp);
  TESSERA_RETURN_IF_ERROR(made->open());
  return std::unique_ptr<CudaCollectives>(std::move(made));
}

} // namespace tessera::cuda
