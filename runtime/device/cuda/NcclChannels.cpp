//===- NcclChannels.cpp - the communicators of a rank -----------------------===//

#include "runtime/device/cuda/NcclChannels.h"

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Overlap.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace tessera::cuda {

/// What the step does with a channel.
struct NcclChannels::Use {
  bool hasGathers = false, hasOthers = false;
  size_t mostBytes = 0; ///< of one collective, on this rank
};

NcclChannels::Use NcclChannels::useOf(const std::vector<int> &members, int stream) const {
  Use use;
  forEachInstruction(context.artifact.package(), [&](const artifact::Instruction &instruction) {
    const artifact::Collective *collective = instruction.operation_as_Collective();
    if (!collective || instruction.stream() != stream || context.groups[collective->group()] != members)
      return;
    (collective->kind() == artifact::CollectiveKind::AllGather ? use.hasGathers : use.hasOthers) = true;
    for (uint32_t buffer : {collective->input(), collective->output()})
      use.mostBytes = std::max(use.mostBytes, context.buffers.view(buffer).bytes());
  });
  return use;
}

Status NcclChannels::connect(const NcclMeans &means) {
  Communicator &control = context.communicator;
  ncclUniqueId id{};
  if (control.rank() == 0)
    TESSERA_RETURN_IF_ERROR(calls.check("ncclGetUniqueId", ncclGetUniqueId(&id), nullptr));
  std::string blob(reinterpret_cast<const char *>(&id), sizeof(id));
  TESSERA_RETURN_IF_ERROR(control.broadcast(blob, 0, "NCCL's unique id"));
  std::memcpy(&id, blob.data(), sizeof(id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = means.isBlocking ? 1 : 0;
  TESSERA_ASSIGN_OR_RETURN(world, calls.make("ncclCommInitRank", nullptr, [&](ncclComm_t *slot) {
    return ncclCommInitRankConfig(slot, control.numRanks(), id, control.rank(), &config);
  }));
  for (auto [group, stream] : collectiveChannels(context.artifact.package()))
    TESSERA_RETURN_IF_ERROR(open(context.groups[group], stream, means));
  return Status::ok();
}

Status NcclChannels::open(const std::vector<int> &members, int stream, const NcclMeans &means) {
  if (members.size() < 2 || find(members, stream))
    return Status::ok();
  constexpr size_t little = size_t{64} << 10;
  constexpr int fewMultiprocessors = 2;
  const Use use = useOf(members, stream);
  NcclChannel channel{members, stream, use.hasGathers, false, nullptr, {}, {}};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = means.isBlocking ? 1 : 0;
  config.commName = names.emplace_back("tessera stream " + std::to_string(stream)).c_str();
  // Beside computing, as few multiprocessors as they can.
  if (stream != 0) {
    config.CTAPolicy = NCCL_CTA_POLICY_EFFICIENCY;
    config.maxCTAs = collectiveMultiprocessors;
  }
  // NCCL has buffers for each multiprocessor that it may take.
  if (use.mostBytes <= little)
    config.maxCTAs = fewMultiprocessors;
  int version = 0;
  if (stream != 0 && !use.hasOthers && means.usesCopyEngines && ncclGetVersion(&version) == ncclSuccess &&
      version >= NCCL_VERSION(2, 28, 0)) {
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    channel.usesCopyEngines = true;
  }
  auto position = std::find(members.begin(), members.end(), context.communicator.rank()) - members.begin();
  TESSERA_ASSIGN_OR_RETURN(channel.communicator, calls.make("ncclCommSplit", world, [&](ncclComm_t *slot) {
    return ncclCommSplit(world, members.front(), static_cast<int>(position), slot, &config);
  }));
  channels.push_back(std::move(channel));
  return Status::ok();
}

NcclChannel *NcclChannels::find(const std::vector<int> &members, int stream) {
  for (NcclChannel &channel : channels)
    if (channel.stream == stream && channel.members == members)
      return &channel;
  return nullptr;
}

bool NcclChannels::someUseCopyEngines() const {
  return std::any_of(channels.begin(), channels.end(), [](const NcclChannel &each) { return each.usesCopyEngines; });
}

bool NcclChannels::gathersUseCopyEngines() const {
  return std::all_of(channels.begin(), channels.end(), [](const NcclChannel &each) {
    return each.stream == 0 || !each.hasGathers || each.usesCopyEngines;
  });
}

Status NcclChannels::close() {
  auto end = [&](ncclComm_t &communicator) -> Status {
    TESSERA_RETURN_IF_ERROR(calls.check("ncclCommFinalize", ncclCommFinalize(communicator), communicator));
    ncclComm_t ended = std::exchange(communicator, nullptr);
    ncclResult_t result = ncclCommDestroy(ended);
    return result == ncclInProgress ? Status::ok() : calls.check("ncclCommDestroy", result, nullptr);
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

void NcclChannels::abort() {
  std::vector<ncclComm_t> communicators;
  for (const NcclChannel &channel : channels)
    communicators.push_back(channel.communicator);
  if (world)
    communicators.push_back(world);
  // Threads of NCCL may yet write what was being registered: it stays to the end of the process.
  static std::mutex abandoning;
  static auto *abandoned = new std::deque<std::vector<NcclChannel>>;
  {
    std::lock_guard<std::mutex> lock(abandoning);
    abandoned->push_back(std::exchange(channels, {}));
  }
  world = nullptr;
  // Each frees memory, for which the driver waits until the GPU is idle, which it is once all have been told: none may
  // wait for the one before.
  struct Running {
    std::mutex mutex;
    std::condition_variable changed;
    size_t count;
  };
  auto running = std::make_shared<Running>();
  running->count = communicators.size();
  CUcontext current = nullptr;
  cuCtxGetCurrent(&current);
  for (ncclComm_t communicator : communicators)
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

} // namespace tessera::cuda
