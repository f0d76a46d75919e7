//===- NcclMemory.cpp - arenas that NCCL reads and writes in place ----------===//

#include "runtime/device/cuda/NcclMemory.h"

#include "runtime/base/Log.h"
#include "runtime/device/Device.h"
#include "runtime/device/cuda/CudaCollectives.h"

#include <algorithm>

namespace tessera::cuda {
namespace {

using Registration = NcclMeans::Registration;

size_t roundedForNccl(size_t bytes) {
  constexpr size_t unit = NCCL_WIN_REQUIRED_ALIGNMENT;
  return (bytes + unit - 1) / unit * unit;
}

/// The name and version of the library that runs.
Result<std::string> libraryName(const NcclCalls &calls) {
  int version = 0;
  TESSERA_RETURN_IF_ERROR(calls.check("ncclGetVersion", ncclGetVersion(&version), nullptr));
  return "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

class Registrar {
public:
  Registrar(RankContext &context, const NcclCalls &calls, NcclChannels &channels)
      : context(context), calls(calls), channels(channels) {}

  /// Whether all arenas of all ranks are registered in this way; `refusal` is set where a call ended with an error. The
  /// ranks tell each other how each call ended, so that none waits in the next one for a rank that could not go on. In
  /// the call itself NCCL lets ranks wait for each other: one that fails lets go of its communicators, so that the
  /// others' calls fail, too.
  Result<bool> registerAll(Registration way, bool isSymmetric, std::string &refusal) {
    const artifact::Package &package = context.artifact.package();
    bool isComplete = false;
    for (uint32_t index = 0; index < package.arenas()->size(); ++index) {
      const ArenaMemory &arena = context.buffers.arenas()[index];
      if (arena.host || !arena.data)
        continue;
      const size_t bytes = roundedForNccl(package.arenas()->Get(index)->bytes());
      for (NcclChannel &channel : channels.all()) {
        Result<bool> done = way == Registration::Windows ? registerWindow(channel, arena.data, bytes, isSymmetric)
                                                         : registerBuffer(channel, arena.data, bytes);
        if (!done.isOk()) {
          if (done.status().code() == StatusCode::Aborted)
            return done.status();
          log::warn("rank {}: {}", context.communicator.rank(), done.status().message());
          channels.abort();
        }
        const std::string mine = !done.isOk() ? done.status().message() : *done ? yes : no;
        TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all,
                                 context.communicator.gatherBlobs(mine, "registration of arenas with NCCL"));
        auto failed = std::find_if(all.begin(), all.end(), [](const auto &each) { return each != yes && each != no; });
        if (failed != all.end())
          refusal = "rank " + std::to_string(failed - all.begin()) + ": " + *failed;
        isComplete = std::all_of(all.begin(), all.end(), [](const auto &each) { return each == yes; });
        if (!isComplete)
          return false;
      }
    }
    return isComplete;
  }

private:
  static inline const std::string yes = "registered", no = "not registered";

  /// False: this system has no windows.
  Result<bool> registerWindow(NcclChannel &channel, void *memory, size_t bytes, bool isSymmetric) {
    ncclWindow_t &window = *channel.windows.emplace_back(std::make_unique<ncclWindow_t>(nullptr));
    TESSERA_RETURN_IF_ERROR(
        calls.check("ncclCommWindowRegister",
                    ncclCommWindowRegister(channel.communicator, memory, bytes, &window,
                                           isSymmetric ? NCCL_WIN_COLL_SYMMETRIC : NCCL_WIN_DEFAULT),
                    channel.communicator));
    return window != nullptr;
  }

  Result<bool> registerBuffer(NcclChannel &channel, void *memory, size_t bytes) {
    void *&handle = channel.buffers.emplace_back(nullptr);
    TESSERA_RETURN_IF_ERROR(calls.check(
        "ncclCommRegister", ncclCommRegister(channel.communicator, memory, bytes, &handle), channel.communicator));
    return handle != nullptr;
  }

  RankContext &context;
  const NcclCalls &calls;
  NcclChannels &channels;
};

} // namespace

Result<NcclRegistered> registerArenas(RankContext &context, const NcclCalls &calls, NcclChannels &channels,
                                      Registration first) {
  NcclRegistered registered;
  const bool tells = context.communicator.rank() == 0;
  const std::string asymmetric = asymmetricCollective(context.artifact.package());
  TESSERA_ASSIGN_OR_RETURN(std::string nccl, libraryName(calls));
  if (tells && !asymmetric.empty())
    log::info("{}: windows are not symmetric, {}", nccl, asymmetric);
  for (Registration way : {Registration::Windows, Registration::Buffers}) {
    if (way < first)
      continue;
    const bool isWindow = way == Registration::Windows;
    TESSERA_ASSIGN_OR_RETURN(
        bool isComplete, Registrar(context, calls, channels).registerAll(way, asymmetric.empty(), registered.refusal));
    registered.way = way;
    if (!registered.refusal.empty())
      return registered;
    if (isComplete) {
      registered.isSymmetric = isWindow && asymmetric.empty();
      if (tells)
        log::info("{}: arenas are registered as {} with {} communicators", nccl, isWindow ? "windows" : "buffers",
                  channels.all().size());
      return registered;
    }
    TESSERA_RETURN_IF_ERROR(deregisterArenas(calls, channels));
  }
  registered.way = Registration::None;
  if (tells)
    log::warn("{}: arenas are not registered{}: collectives go through NCCL's own buffers", nccl,
              first == Registration::None ? "" : " (it offers neither windows nor buffers on these GPUs)");
  return registered;
}

Status deregisterArenas(const NcclCalls &calls, NcclChannels &channels) {
  for (NcclChannel &channel : channels.all()) {
    for (const std::unique_ptr<ncclWindow_t> &window : channel.windows)
      if (*window)
        TESSERA_RETURN_IF_ERROR(calls.check(
            "ncclCommWindowDeregister", ncclCommWindowDeregister(channel.communicator, *window), channel.communicator));
    for (void *buffer : channel.buffers)
      if (buffer)
        TESSERA_RETURN_IF_ERROR(
            calls.check("ncclCommDeregister", ncclCommDeregister(channel.communicator, buffer), channel.communicator));
    channel.windows.clear();
    channel.buffers.clear();
  }
  return Status::ok();
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
