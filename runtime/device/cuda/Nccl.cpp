//===- Nccl.cpp - ranks with a GPU each, by NCCL ----------------------------===//
//
// What NCCL or the driver does not allow (windows, captured copy engines, captured communicators that do not block) is
// found at the start, and done without: the communicators are made anew, and a line says so.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Log.h"
#include "runtime/device/Device.h"
#include "runtime/device/cuda/CudaCollectives.h"
#include "runtime/device/cuda/NcclMemory.h"
#include "runtime/device/cuda/NcclTrial.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace tessera::cuda {
namespace {

using artifact::CollectiveKind;
using artifact::DataType;
using artifact::ReductionKind;
using Registration = NcclMeans::Registration;

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

ncclRedOp_t operationOf(ReductionKind kind) {
  return kind == ReductionKind::Sum ? ncclSum : kind == ReductionKind::Max ? ncclMax : ncclMin;
}

bool isFloat(DataType dtype) {
  return dtype == DataType::F32 || dtype == DataType::F64 || dtype == DataType::F16 || dtype == DataType::BF16;
}

class NcclCollectives : public CudaCollectives {
public:
  explicit NcclCollectives(const CollectiveSetUp &setUp)
      : context(*setUp.context), options(setUp.options), isOneHost(setUp.isOneHost), mover(*setUp.mover),
        calls(context.communicator, setUp.stallTimeoutSeconds), channels(context, calls) {}
  ~NcclCollectives() override {
    if (!isAborted && !hasLeft)
      abort();
  }

  Status open() {
    NcclMeans means;
    if (const char *chosen = std::getenv("TESSERA_NCCL_REGISTRATION"); chosen && std::strcmp(chosen, "off") == 0)
      means.registration = Registration::None;
    means.usesCopyEngines = mayUseCopyEngines(means);
    while (true) {
      TESSERA_ASSIGN_OR_RETURN(bool isDone, tryToOpen(means));
      if (isDone)
        return Status::ok();
      channels.abort();
    }
  }

  std::string_view name() const override { return "nccl"; }
  bool canBeCaptured() const override { return true; }
  bool gathersTakeMultiprocessors() const override {
    return !(registered.isSymmetric && channels.gathersUseCopyEngines());
  }

  Status start(const CollectiveCall &call, CUstream stream) override {
    std::lock_guard<std::timed_mutex> lock(mutex);
    if (isAborted)
      return TESSERA_ERROR(Aborted, "NCCL was aborted");
    ncclComm_t communicator = channels.find(*call.group, call.channel)->communicator;
    bool adds = call.kind == CollectiveKind::AllReduce || call.kind == CollectiveKind::ReduceScatter;
    if (adds && call.reduction != ReductionKind::Sum && isFloat(call.dtype))
      return reduceInOrder(call, communicator, stream);
    TESSERA_ASSIGN_OR_RETURN(ncclDataType_t type, typeOf(call.dtype, adds));
    const ncclRedOp_t operation = operationOf(call.reduction);
    auto count = static_cast<size_t>(call.elements), ranks = call.group->size();
    auto *input = static_cast<const char *>(call.input);
    auto *output = static_cast<char *>(call.output);
    switch (call.kind) {
    case CollectiveKind::AllGather:
      return calls.check("ncclAllGather", ncclAllGather(input, output, count, type, communicator, stream),
                         communicator);
    case CollectiveKind::ReduceScatter:
      return calls.check("ncclReduceScatter",
                         ncclReduceScatter(input, output, count / ranks, type, operation, communicator, stream),
                         communicator);
    case CollectiveKind::AllReduce:
      return calls.check("ncclAllReduce", ncclAllReduce(input, output, count, type, operation, communicator, stream),
                         communicator);
    case CollectiveKind::AllToAll:
      return allToAll(input, output, count / ranks, call, type, communicator, stream);
    case CollectiveKind::Permute:
      return permute(call, type, communicator, stream);
    }
    return TESSERA_ERROR(Internal, "an unknown collective");
  }

  /// NCCL wants the ranks of a host to end together: one alone may wait for the others.
  Status leave() override {
    std::lock_guard<std::timed_mutex> lock(mutex);
    if (isAborted || hasLeft)
      return Status::ok();
    TESSERA_RETURN_IF_ERROR(deregisterArenas(calls, channels));
    TESSERA_RETURN_IF_ERROR(channels.close());
    hasLeft = true;
    return Status::ok();
  }

  Status poll() override {
    std::unique_lock<std::timed_mutex> lock(mutex, std::try_to_lock);
    if (!lock.owns_lock())
      return Status::ok(); // the rank's thread is in a call, which looks for errors itself
    for (const NcclChannel &channel : channels.all()) {
      ncclResult_t state = ncclSuccess;
      ncclResult_t asked = ncclCommGetAsyncError(channel.communicator, &state);
      for (ncclResult_t result : {asked, state})
        if (result != ncclSuccess && result != ncclInProgress)
          return ncclFailure("NCCL", result, channel.communicator);
    }
    return Status::ok();
  }

  void abort() override {
    // A call that the driver holds would lose its communicator: then the end of the process is what ends it.
    std::unique_lock<std::timed_mutex> lock(mutex, std::chrono::seconds(1));
    if (!lock.owns_lock() || std::exchange(isAborted, true))
      return;
    channels.abort();
  }

private:
  /// NCCL takes them between GPUs of one host, for windows at the same offsets on all ranks.
  bool mayUseCopyEngines(const NcclMeans &means) const {
    return isOneHost && means.registration == Registration::Windows &&
           asymmetricCollective(context.artifact.package()).empty();
  }

  /// Makes communicators and registers memory by `means`; false where something was refused, which `means` then does
  /// without. All ranks come to the same result.
  Result<bool> tryToOpen(NcclMeans &means) {
    const bool tells = context.communicator.rank() == 0;
    TESSERA_RETURN_IF_ERROR(channels.connect(means));
    if (channels.all().empty())
      return true;
    TESSERA_ASSIGN_OR_RETURN(registered, registerArenas(context, calls, channels, means.registration));
    if (!registered.refusal.empty()) {
      const bool hadWindows = registered.way == Registration::Windows;
      if (tells)
        log::warn("{}: arenas cannot be registered as {}, trying again {} (TESSERA_NCCL_REGISTRATION=off does not try)",
                  registered.refusal, hadWindows ? "windows" : "buffers", hadWindows ? "as buffers" : "without");
      means.registration = hadWindows ? Registration::Buffers : Registration::None;
      means.usesCopyEngines = false;
      return false;
    }
    if (!options.usesGraphs)
      return true;
    TESSERA_ASSIGN_OR_RETURN(std::string refusal,
                             captureRefusal(context, calls, channels,
                                            [this](const auto &call, CUstream stream) { return start(call, stream); }));
    if (refusal.empty())
      return true;
    if (channels.someUseCopyEngines()) {
      if (tells)
        log::warn("{}: collectives cannot be part of CUDA graphs, trying again with gathers that use no copy engines",
                  refusal);
      means.usesCopyEngines = false;
      return false;
    }
    if (!means.isBlocking) {
      if (tells)
        log::warn("{}: communicators that do not block cannot be part of CUDA graphs, those that do are taken: what "
                  "hangs in them cannot be aborted",
                  refusal);
      means.isBlocking = true;
      means.usesCopyEngines = mayUseCopyEngines(means); // they were not the reason
      return false;
    }
    return TESSERA_ERROR(Unsupported,
                         refusal + ": collectives cannot be part of CUDA graphs; --no-graph runs without them");
  }

  /// NCCL's maximum of floats loses NaNs, that of integers has none: the output holds integers of the same order in
  /// between. A reduce_scatter would have to overwrite its input, and the compiler makes none.
  Status reduceInOrder(const CollectiveCall &call, ncclComm_t communicator, CUstream stream) {
    const bool isWide = call.dtype == DataType::F64;
    if (call.kind != CollectiveKind::AllReduce || (call.dtype != DataType::F32 && !isWide))
      return TESSERA_ERROR(Unsupported, std::string(toString(call.kind)) + " with " +
                                            std::string(toString(call.reduction)) + " of type " +
                                            artifact::EnumNameDataType(call.dtype) + " by NCCL");
    TESSERA_RETURN_IF_ERROR(
        mover.order(call.reduction, call.output, call.input, call.dtype, call.elements, /*isBack=*/false, stream));
    TESSERA_RETURN_IF_ERROR(
        calls.check("ncclAllReduce",
                    ncclAllReduce(call.output, call.output, static_cast<size_t>(call.elements),
                                  isWide ? ncclInt64 : ncclInt32, operationOf(call.reduction), communicator, stream),
                    communicator));
    return mover.order(call.reduction, call.output, call.output, call.dtype, call.elements, /*isBack=*/true, stream);
  }

  Status allToAll(const char *input, char *output, size_t count, const CollectiveCall &call, ncclDataType_t type,
                  ncclComm_t communicator, CUstream stream) {
    size_t bytes = count * byteWidth(call.dtype);
    TESSERA_RETURN_IF_ERROR(calls.check("ncclGroupStart", ncclGroupStart(), communicator));
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
    TESSERA_RETURN_IF_ERROR(calls.check("ncclGroupStart", ncclGroupStart(), communicator));
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
      return ncclFailure(what, first, communicator);
    return calls.check(what, ended, communicator);
  }

  RankContext &context;
  const GpuOptions options;
  const bool isOneHost;
  const Mover &mover;
  const NcclCalls calls;
  std::timed_mutex mutex; ///< of the communicators, between the rank's thread and the one that watches
  NcclChannels channels;
  NcclRegistered registered;
  bool hasLeft = false, isAborted = false;
};

} // namespace

Result<std::unique_ptr<CudaCollectives>> joinByNccl(const CollectiveSetUp &setUp) {
  auto made = std::make_unique<NcclCollectives>(setUp);
  TESSERA_RETURN_IF_ERROR(made->open());
  return std::unique_ptr<CudaCollectives>(std::move(made));
}

} // namespace tessera::cuda
