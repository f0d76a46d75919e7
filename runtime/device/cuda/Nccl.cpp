//===- Nccl.cpp - ranks with a GPU each, by NCCL ----------------------------===//
//
// The unique id travels over the runtime's Communicator (threads, MPI or TCP). Each group gets a communicator per
// stream, split from that of the world, so that gathers and reductions never wait for each other, and registers the
// arenas with each, so that collectives need no copies. All calls are non-blocking: what does not come to an end within
// the stall timeout, or while another rank gives up, is aborted. Communicators that block are for libraries that do not
// let others be captured; that is tried at the start.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Log.h"
#include "runtime/device/Device.h"
#include "runtime/device/cuda/CudaCollectives.h"
#include "runtime/device/cuda/Overlap.h"

#include <nccl.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
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

Status ncclFailure(const char *call, ncclResult_t result, ncclComm_t communicator) {
  std::string text = std::string(call) + ": " + ncclGetErrorString(result);
  if (const char *last = ncclGetLastError(communicator); last && *last)
    text += std::string(" (") + last + ")";
  return TESSERA_ERROR(IoError, text);
}

size_t roundedForNccl(size_t bytes) {
  constexpr size_t unit = NCCL_WIN_REQUIRED_ALIGNMENT;
  return (bytes + unit - 1) / unit * unit;
}

/// Collectives of one group on one stream, and what is registered with it.
struct Channel {
  std::vector<int> members;
  int stream;
  ncclComm_t communicator;
  std::vector<std::unique_ptr<ncclWindow_t>> windows; ///< NCCL may write them until a call is settled
  std::vector<void *> buffers;
};

class NcclCollectives : public CudaCollectives {
public:
  explicit NcclCollectives(const CollectiveSetUp &setUp)
      : context(*setUp.context), timeout(setUp.stallTimeoutSeconds), options(setUp.options) {}
  ~NcclCollectives() override {
    if (!isAborted && !hasLeft)
      abort();
  }

  Status open() {
    static std::once_flag once; // NCCL reads its environment once
    std::call_once(once, [this] { setEnvironment(); });
    TESSERA_RETURN_IF_ERROR(connect());
    if (options.usesGraphs && !channels.empty()) {
      TESSERA_ASSIGN_OR_RETURN(std::string refusal, captureRefusal());
      if (!refusal.empty()) {
        if (context.communicator.rank() == 0)
          log::warn("{}: communicators that do not block cannot be part of CUDA graphs, those that do are taken: what "
                    "hangs in them cannot be aborted",
                    refusal);
        abort();
        channels.clear();
        world = nullptr;
        isAborted = false;
        isBlocking = true;
        TESSERA_RETURN_IF_ERROR(connect());
      }
    }
    return registerArenas();
  }

  std::string_view name() const override { return "nccl"; }
  bool canBeCaptured() const override { return true; }

  Status start(const CollectiveCall &call, CUstream stream) override {
    std::lock_guard<std::timed_mutex> lock(mutex);
    if (isAborted)
      return TESSERA_ERROR(Aborted, "NCCL was aborted");
    ncclComm_t communicator = find(*call.group, call.channel)->communicator;
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

  /// NCCL wants the ranks of a host to end together: one alone may wait for the others.
  Status leave() override {
    std::lock_guard<std::timed_mutex> lock(mutex);
    if (isAborted || hasLeft)
      return Status::ok();
    TESSERA_RETURN_IF_ERROR(close());
    hasLeft = true;
    return Status::ok();
  }

  Status poll() override {
    std::unique_lock<std::timed_mutex> lock(mutex, std::try_to_lock);
    if (!lock.owns_lock())
      return Status::ok(); // the rank's thread is in a call, which looks for errors itself
    for (const Channel &channel : channels) {
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
    std::vector<ncclComm_t> all;
    for (const Channel &channel : channels)
      all.push_back(channel.communicator);
    if (world)
      all.push_back(world);
    // Each frees memory, for which the driver waits until the GPU is idle, which it is once all have been told: none
    // may wait for the one before. What does not come back is left to the end of the process.
    struct Running {
      std::mutex mutex;
      std::condition_variable changed;
      size_t count;
    };
    auto running = std::make_shared<Running>();
    running->count = all.size();
    CUcontext current = nullptr;
    cuCtxGetCurrent(&current);
    for (ncclComm_t communicator : all)
      std::thread([running, communicator, current] {
        cuCtxSetCurrent(current);
        ncclCommAbort(communicator);
        std::lock_guard<std::mutex> counted(running->mutex);
        --running->count;
        running->changed.notify_all();
      }).detach();
    std::unique_lock<std::mutex> waiting(running->mutex);
    running->changed.wait_for(waiting, std::chrono::seconds(3), [&] { return running->count == 0; });
  }

private:
  void setEnvironment() const {
    // Operations of several communicators are issued in one order on all ranks: with this NCCL keeps it on the GPU too,
    // so that no two ranks run them crosswise and wait for each other.
    ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
    if (!options.isReproducible)
      return;
    // Sums in the switches between GPUs (NVLS, and the kernels for symmetric windows that use it) are not the same bits
    // from call to call: https://github.com/NVIDIA/nccl/issues/1497.
    ::setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
    if (const char *chosen = std::getenv("NCCL_NVLS_ENABLE"); std::strcmp(chosen, "0") != 0)
      log::warn("NCCL_NVLS_ENABLE={} lets switches add: runs may differ in the last bits (--reproducible off says so "
                "without this warning)",
                chosen);
  }

  /// How many multiprocessors collectives beside computing may take: as few as they can.
  int policyOf(const std::vector<int> &members, int stream) const {
    if (stream == 0)
      return NCCL_CTA_POLICY_DEFAULT;
#ifdef NCCL_CTA_POLICY_ZERO
    // Copy engines gather between GPUs of one NVLink domain, and need none; elsewhere NCCL takes its usual kernels.
    int version = 0;
    if (ncclGetVersion(&version) == ncclSuccess && version >= NCCL_VERSION(2, 28, 0) && onlyGathers(members, stream))
      return NCCL_CTA_POLICY_ZERO;
#endif
    return NCCL_CTA_POLICY_EFFICIENCY;
  }

  bool onlyGathers(const std::vector<int> &members, int stream) const {
    bool only = true;
    forEachInstruction(context.artifact.program(), [&](const artifact::Instruction &instruction) {
      const artifact::Collective *collective = instruction.operation_as_Collective();
      if (collective && instruction.stream() == stream && context.groups[collective->group()] == members)
        only &= collective->kind() == CollectiveKind::AllGather;
    });
    return only;
  }

  /// Makes the communicators.
  Status connect() {
    Communicator &control = context.communicator;
    ncclUniqueId id{};
    if (control.rank() == 0)
      TESSERA_RETURN_IF_ERROR(check("ncclGetUniqueId", ncclGetUniqueId(&id), nullptr));
    std::string blob(reinterpret_cast<const char *>(&id), sizeof(id));
    TESSERA_RETURN_IF_ERROR(control.broadcast(blob, 0, "NCCL's unique id"));
    std::memcpy(&id, blob.data(), sizeof(id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = isBlocking ? 1 : 0;
    TESSERA_ASSIGN_OR_RETURN(world, make("ncclCommInitRank", nullptr, [&](ncclComm_t *slot) {
                               return ncclCommInitRankConfig(slot, control.numRanks(), id, control.rank(), &config);
                             }));
    for (auto [group, stream] : collectiveChannels(context.artifact.program()))
      TESSERA_RETURN_IF_ERROR(openChannel(context.groups[group], stream));
    return Status::ok();
  }

  /// A communicator that `call` makes and `from` (null: none) is split for. A thread of NCCL writes it, even after this
  /// has given up waiting: then nobody owns its place.
  template <typename Call> Result<ncclComm_t> make(const char *name, ncclComm_t from, Call call) {
    auto made = std::make_unique<ncclComm_t>(nullptr);
    ncclResult_t begun = call(made.get());
    Status status = begun == ncclSuccess || begun == ncclInProgress ? Status::ok() : ncclFailure(name, begun, from);
    if (status.isOk() && from && begun == ncclInProgress)
      status = settle(name, from);
    if (status.isOk() && *made)
      status = settle(name, *made);
    if (status.isOk())
      return *made;
    if (*made)
      ncclCommAbort(*made);
    static_cast<void>(made.release());
    return status;
  }

  /// Why collectives cannot be captured on one of the ranks; empty: they can.
  Result<std::string> captureRefusal() {
    CUstream stream = nullptr;
    CUdeviceptr number = 0;
    TESSERA_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUresult allocated = cuMemAlloc(&number, sizeof(float));
    Result<std::string> refusal = allocated == CUDA_SUCCESS ? captureOne(stream, number)
                                                            : Result<std::string>(driverError("cuMemAlloc", allocated));
    cuMemFree(number);
    cuStreamDestroy(stream);
    TESSERA_RETURN_IF_ERROR(refusal.status());
    TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all,
                             context.communicator.gatherBlobs(*refusal, "the trial of a capture"));
    auto refused = std::find_if(all.begin(), all.end(), [](const std::string &each) { return !each.empty(); });
    return refused == all.end() ? "" : *refused;
  }

  /// A sum that runs comes first: connections are made by the first, in a way that cannot be captured.
  Result<std::string> captureOne(CUstream stream, CUdeviceptr number) {
    TESSERA_CU(cuMemsetD8Async(number, 0, sizeof(float), stream));
    auto add = [&] {
      auto *value = std::bit_cast<void *>(number);
      return check("ncclAllReduce", ncclAllReduce(value, value, 1, ncclFloat32, ncclSum, world, stream), world);
    };
    TESSERA_RETURN_IF_ERROR(add());
    const auto begin = std::chrono::steady_clock::now();
    for (CUresult state = CUDA_ERROR_NOT_READY; (state = cuStreamQuery(stream)) != CUDA_SUCCESS;) {
      if (state != CUDA_ERROR_NOT_READY)
        return driverError("the first collective", state);
      TESSERA_RETURN_IF_ERROR(stillWaits("the first collective", begin));
      TESSERA_RETURN_IF_ERROR(settle("the first collective", world));
    }
    TESSERA_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    Status added = add();
    CUgraph graph = nullptr;
    CUresult ended = cuStreamEndCapture(stream, &graph);
    if (graph)
      cuGraphDestroy(graph);
    if (!added.isOk())
      return added.message();
    return ended == CUDA_SUCCESS ? std::string() : driverError("cuStreamEndCapture", ended).message();
  }

  Status openChannel(const std::vector<int> &members, int stream) {
    if (members.size() < 2 || find(members, stream))
      return Status::ok();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = isBlocking ? 1 : 0;
    config.commName = names.emplace_back("tessera stream " + std::to_string(stream)).c_str();
    config.CTAPolicy = policyOf(members, stream);
    if (stream != 0)
      config.maxCTAs = collectiveMultiprocessors;
    auto position = std::find(members.begin(), members.end(), context.communicator.rank()) - members.begin();
    TESSERA_ASSIGN_OR_RETURN(ncclComm_t made, make("ncclCommSplit", world, [&](ncclComm_t *slot) {
                               return ncclCommSplit(world, members.front(), static_cast<int>(position), slot, &config);
                             }));
    channels.push_back({members, stream, made, {}, {}});
    return Status::ok();
  }

  Channel *find(const std::vector<int> &members, int stream) {
    for (Channel &channel : channels)
      if (channel.stream == stream && channel.members == members)
        return &channel;
    return nullptr;
  }

  /// Lets collectives work on the arenas where they are. Either all ranks do so or none: mixed use is not defined.
  Status registerArenas() {
    const artifact::Program &program = context.artifact.program();
    bool isFirst = context.communicator.rank() == 0;
    if (channels.empty())
      return Status::ok();
    int version = 0;
    TESSERA_RETURN_IF_ERROR(check("ncclGetVersion", ncclGetVersion(&version), nullptr));
    std::string nccl = "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
                       std::to_string(version % 100);
    const char *chosen = std::getenv("TESSERA_NCCL_REGISTRATION");
    bool isOff = chosen && std::string(chosen) == "off";
    std::string asymmetric = asymmetricCollective(program);
    if (isFirst && !asymmetric.empty())
      log::info("{}: windows are not symmetric, {}", nccl, asymmetric);
    for (const char *way : {"windows", "buffers"}) {
      bool isWindow = std::strcmp(way, "windows") == 0;
      size_t wanted = 0, got = 0;
      for (uint32_t index = 0; !isOff && index < program.arenas()->size(); ++index) {
        const ArenaMemory &arena = context.buffers.arenas()[index];
        for (Channel &channel : channels) {
          if (arena.host || !arena.data)
            continue;
          size_t bytes = roundedForNccl(program.arenas()->Get(index)->bytes());
          TESSERA_ASSIGN_OR_RETURN(bool has, isWindow ? registerWindow(channel, arena.data, bytes, asymmetric.empty())
                                                      : registerBuffer(channel, arena.data, bytes));
          ++wanted;
          got += has ? 1 : 0;
        }
      }
      std::string mine = std::to_string(got) + " of " + std::to_string(wanted);
      TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all,
                               context.communicator.gatherBlobs(mine, "registration of arenas with NCCL"));
      bool isComplete = wanted > 0;
      for (const std::string &each : all)
        isComplete &= each == std::to_string(wanted) + " of " + std::to_string(wanted);
      if (isComplete) {
        if (isFirst)
          log::info("{}: arenas are registered as {} with {} communicators", nccl, way, channels.size());
        return Status::ok();
      }
      TESSERA_RETURN_IF_ERROR(deregister());
    }
    if (isFirst)
      log::warn("{}: arenas are not registered ({}): collectives go through NCCL's own buffers", nccl,
                isOff ? "TESSERA_NCCL_REGISTRATION=off" : "it offers neither windows nor buffers on these GPUs");
    return Status::ok();
  }

  /// False: this system has no windows.
  Result<bool> registerWindow(Channel &channel, void *memory, size_t bytes, bool isSymmetric) {
    ncclWindow_t &window = *channel.windows.emplace_back(std::make_unique<ncclWindow_t>(nullptr));
    TESSERA_RETURN_IF_ERROR(check("ncclCommWindowRegister",
                                  ncclCommWindowRegister(channel.communicator, memory, bytes, &window,
                                                         isSymmetric ? NCCL_WIN_COLL_SYMMETRIC : NCCL_WIN_DEFAULT),
                                  channel.communicator));
    return window != nullptr;
  }

  Result<bool> registerBuffer(Channel &channel, void *memory, size_t bytes) {
    void *&handle = channel.buffers.emplace_back(nullptr);
    TESSERA_RETURN_IF_ERROR(check("ncclCommRegister", ncclCommRegister(channel.communicator, memory, bytes, &handle),
                                  channel.communicator));
    return handle != nullptr;
  }

  Status deregister() {
    for (Channel &channel : channels) {
      for (const std::unique_ptr<ncclWindow_t> &window : channel.windows)
        if (*window)
          TESSERA_RETURN_IF_ERROR(check("ncclCommWindowDeregister",
                                        ncclCommWindowDeregister(channel.communicator, *window), channel.communicator));
      for (void *buffer : channel.buffers)
        if (buffer)
          TESSERA_RETURN_IF_ERROR(
              check("ncclCommDeregister", ncclCommDeregister(channel.communicator, buffer), channel.communicator));
      channel.windows.clear();
      channel.buffers.clear();
    }
    return Status::ok();
  }

  Status close() {
    TESSERA_RETURN_IF_ERROR(deregister());
    auto end = [&](ncclComm_t &communicator) -> Status {
      TESSERA_RETURN_IF_ERROR(check("ncclCommFinalize", ncclCommFinalize(communicator), communicator));
      ncclComm_t ended = std::exchange(communicator, nullptr);
      ncclResult_t result = ncclCommDestroy(ended);
      return result == ncclInProgress ? Status::ok() : check("ncclCommDestroy", result, nullptr);
    };
    while (!channels.empty()) {
      ncclComm_t last = channels.back().communicator;
      Status ended = end(last);
      if (!last)
        channels.pop_back();
      TESSERA_RETURN_IF_ERROR(ended);
    }
    return world ? end(world) : Status::ok();
  }

  Status check(const char *call, ncclResult_t result, ncclComm_t communicator) {
    if (result == ncclSuccess)
      return Status::ok();
    return result == ncclInProgress && communicator ? settle(call, communicator)
                                                    : ncclFailure(call, result, communicator);
  }

  /// Waits until a call that was begun has been taken.
  Status settle(const char *call, ncclComm_t communicator) {
    auto begin = std::chrono::steady_clock::now();
    while (true) {
      ncclResult_t state = ncclSuccess;
      ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
      if (asked != ncclSuccess)
        return ncclFailure(call, asked, communicator);
      if (state == ncclSuccess)
        return Status::ok();
      if (state != ncclInProgress)
        return ncclFailure(call, state, communicator);
      TESSERA_RETURN_IF_ERROR(stillWaits(call, begin));
    }
  }

  /// Pauses; an error if another rank has given up, or the stall timeout has passed since `begin`.
  Status stillWaits(const char *call, std::chrono::steady_clock::time_point begin) {
    TESSERA_RETURN_IF_ERROR(context.communicator.abortReason());
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (timeout > 0 && seconds > timeout)
      return TESSERA_ERROR(Aborted, std::string("stalled: not all ranks reached ") + call + " within " +
                                        std::to_string(static_cast<int>(timeout)) + " s");
    // A collective is taken by a thread of NCCL, usually at once.
    if (seconds < 200e-6)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    return Status::ok();
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
      return ncclFailure(what, first, communicator);
    return check(what, ended, communicator);
  }

  RankContext &context;
  const double timeout;
  const GpuOptions options;
  std::timed_mutex mutex; ///< of the communicators, between the rank's thread and the one that watches
  ncclComm_t world = nullptr;
  std::deque<std::string> names; ///< NCCL keeps their addresses
  std::vector<Channel> channels; ///< in the same order on all ranks
  bool hasLeft = false, isAborted = false, isBlocking = false;
};

} // namespace

Result<std::unique_ptr<CudaCollectives>> joinByNccl(const CollectiveSetUp &setUp) {
  auto made = std::make_unique<NcclCollectives>(setUp);
  TESSERA_RETURN_IF_ERROR(made->open());
  return std::unique_ptr<CudaCollectives>(std::move(made));
}

Result<void *> allocateForNccl(size_t bytes) {
  void *memory = nullptr;
  if (ncclResult_t result = ncclMemAlloc(&memory, roundedForNccl(bytes)); result != ncclSuccess)
    return ncclFailure("ncclMemAlloc", result, nullptr)
        .withContext("an arena of " + std::to_string(bytes >> 20) + " MiB");
  return memory;
}

void freeForNccl(void *memory) { ncclMemFree(memory); }

} // namespace tessera::cuda
