//===- CpuDevice.cpp - a team of threads as a device -----------------------===//

#include "runtime/device/cpu/CpuDevice.h"

#include "runtime/base/Log.h"
#include "runtime/device/HostMemory.h"
#include "runtime/device/cpu/Stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <dnnl.h>
#include <fstream>
#include <sstream>

namespace tessera::cpu {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class CpuEvent : public DeviceEvent {
public:
  Event event;
};

/// The rank's thread, where it is the only one: program order keeps every order that events ask for.
class OnlyStream : public DeviceStream {
public:
  bool runsAtOnce() const override { return true; }
  void issue(std::function<void()> task) override { task(); }
  Status record(DeviceEvent &) override { return Status::ok(); }
  Status wait(DeviceEvent &, WaitObserver) override { return Status::ok(); }
  TimeMark mark() override { return now(); }
  Status synchronise() override { return Status::ok(); }
};

/// Blocks until the record is complete, and tells how long that took.
void waitFor(const Event &event, uint64_t record, const DeviceStream::WaitObserver &observer) {
  int64_t begin = observer ? now() : 0;
  event.wait(record);
  if (observer)
    observer(begin, now());
}

/// The rank's thread beside others.
class RankStream : public OnlyStream {
public:
  Status record(DeviceEvent &event) override {
    Event &mine = static_cast<CpuEvent &>(event).event;
    mine.complete(mine.issueRecord());
    return Status::ok();
  }
  Status wait(DeviceEvent &event, WaitObserver observer) override {
    const Event &other = static_cast<CpuEvent &>(event).event;
    if (uint64_t record = other.lastIssued(); record > 0)
      waitFor(other, record, observer);
    return Status::ok();
  }
};

class ThreadStream : public DeviceStream {
public:
  bool runsAtOnce() const override { return false; }
  void issue(std::function<void()> task) override { stream.push(std::move(task)); }
  Status record(DeviceEvent &event) override {
    Event &mine = static_cast<CpuEvent &>(event).event;
    stream.push([&mine, record = mine.issueRecord()] { mine.complete(record); });
    return Status::ok();
  }
  Status wait(DeviceEvent &event, WaitObserver observer) override {
    const Event &other = static_cast<CpuEvent &>(event).event;
    if (uint64_t record = other.lastIssued(); record > 0)
      stream.push([&other, record, observer = std::move(observer)] { waitFor(other, record, observer); });
    return Status::ok();
  }
  TimeMark mark() override { return now(); }
  Status synchronise() override {
    stream.drain();
    return Status::ok();
  }

private:
  Stream stream;
};

/// The model of this machine's processor and its vector instructions: by both, libraries choose the order of a
/// product's sums.
std::string processor() {
  std::string word, line, model = "a processor";
  std::ifstream file("/proc/cpuinfo");
  while (std::getline(file, line)) {
    if (const size_t colon = line.find(": "); line.starts_with("model name") && colon != line.npos)
      model = line.substr(colon + 2);
    if (!line.starts_with("flags"))
      continue;
    model += " with";
    std::istringstream words(line);
    while (words >> word)
      if (word.starts_with("avx") || word.starts_with("amx") || word == "fma")
        model.append(" ").append(word);
    return model;
  }
  return model + " with unknown instructions";
}

} // namespace

std::string CpuDevice::arithmetic() const {
  const dnnl_version_t &library = *dnnl_version();
  return "--threads " + std::to_string(threads()) + " on " + processor() + ", oneDNN " + std::to_string(library.major) +
         "." + std::to_string(library.minor) + "." + std::to_string(library.patch);
}

Result<std::unique_ptr<Device>> CpuDevice::create(const std::string &target, const DeviceOptions &options) {
  if (options.rankOnHost == 0) {
    if (options.gpu.autotune)
      log::warn("--autotune is not applied: it chooses among algorithms of cuBLASLt, and this artifact is for the CPU");
    if (options.gpu.hasFastAttentionGradient)
      log::warn("--attention-gradient fast is not applied: it chooses among algorithms of cuDNN, and this artifact is "
                "for the CPU");
  }
  TESSERA_RETURN_IF_ERROR(checkTarget(target));
  std::unique_ptr<CpuDevice> made(new CpuDevice(options));
  if (const int there = made->shared.team.adopt(); there < options.threads && options.rankOnHost == 0)
    log::warn("OpenMP gives a rank {} of {} threads (OMP_THREAD_LIMIT), and it computes with as many", there,
              options.threads);
  return std::unique_ptr<Device>(std::move(made));
}

Status CpuDevice::checkMemory(const artifact::Package &package) const {
  uint64_t planned = 0;
  if (package.arenas())
    for (const artifact::Arena *arena : *package.arenas())
      planned += arena->bytes();
  uint64_t ranks = static_cast<uint64_t>(std::max(options.ranksInProcess, 1));
  uint64_t available = hostMemoryPerRank(ranks);
  if (planned > available)
    return TESSERA_ERROR(Exhausted, "the plan needs " + std::to_string(planned >> 20) + " MiB for each of " +
                                        std::to_string(ranks) + " ranks, each may use " +
                                        std::to_string(available >> 20) + " MiB");
  return Status::ok();
}

Result<ArenaMemory> CpuDevice::allocate(const artifact::Arena &arena) {
  TESSERA_ASSIGN_OR_RETURN(Arena made, Arena::create(arena.bytes(), shared.team));
  arenas.push_back(std::move(made));
  return ArenaMemory{arenas.back().data(), arenas.back().data(), arenas.back().allocatedBytes()};
}

Result<std::byte *> CpuDevice::allocateStaging(size_t bytes) {
  TESSERA_ASSIGN_OR_RETURN(Arena made, Arena::create(bytes, shared.team));
  arenas.push_back(std::move(made));
  return arenas.back().data();
}

Status CpuDevice::copyToDevice(void *target, const void *source, size_t bytes) {
  std::memcpy(target, source, bytes);
  return Status::ok();
}

Status CpuDevice::copyToHost(void *target, const void *source, size_t bytes) {
  std::memcpy(target, source, bytes);
  return Status::ok();
}

size_t CpuDevice::workspaceBytes() const {
  return shared.gemms.workspaceBytes() + shared.convolutions.workspaceBytes() + shared.attentionScratch.bytes();
}

/// Each group gets a communicator per stream, so that gathers and reductions never wait for each other.
Status CpuDevice::prepare(RankContext &context) {
  shared.rank = &context;
  for (auto [group, stream] : collectiveChannels(context.artifact.package()))
    if (context.groups[group].size() > 1)
      TESSERA_RETURN_IF_ERROR(context.communicator.prepare(context.groups[group], stream));
  return loadKernels(context.artifact.package());
}

Status CpuDevice::loadKernels(const artifact::Package &package) {
  if (const auto *objects = package.code_objects())
    for (const artifact::CodeObject *object : *objects) {
      TESSERA_ASSIGN_OR_RETURN(CodeObject loaded,
                               CodeObject::load(object->data()->data(), object->data()->size(), "tessera-kernels"));
      shared.code.push_back(std::move(loaded));
    }
  if (const auto *table = package.kernels())
    for (const artifact::Kernel *kernel : *table) {
      TESSERA_ASSIGN_OR_RETURN(Kernel found, shared.code[kernel->code_object()].find(kernel->symbol()->c_str()));
      shared.kernels.push_back(found);
    }
  return Status::ok();
}

Result<std::unique_ptr<Command>> CpuDevice::compile(const artifact::Instruction &instruction) {
  return makeCommand(instruction, shared);
}

Result<std::unique_ptr<DeviceStream>> CpuDevice::createStream(int number) {
  if (shared.rank->artifact.numRanks() == 1)
    return std::unique_ptr<DeviceStream>(std::make_unique<OnlyStream>());
  if (number == 0)
    return std::unique_ptr<DeviceStream>(std::make_unique<RankStream>());
  return std::unique_ptr<DeviceStream>(std::make_unique<ThreadStream>());
}

Result<std::unique_ptr<DeviceEvent>> CpuDevice::createEvent() {
  return std::unique_ptr<DeviceEvent>(std::make_unique<CpuEvent>());
}

} // namespace tessera::cpu
