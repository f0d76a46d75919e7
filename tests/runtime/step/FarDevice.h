//===- FarDevice.h - a device whose memory the host cannot touch ------------===//
//
// Computes on the CPU, but hands out addresses at which nothing can be read or written: whoever forgets a transfer ends
// the test.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TESTS_RUNTIME_STEP_FARDEVICE_H
#define TESSERA_TESTS_RUNTIME_STEP_FARDEVICE_H

#include "runtime/device/cpu/CpuDevice.h"

#include <atomic>
#include <sys/mman.h>

namespace tessera::test {

/// What went from and to all devices of a test.
struct Transfers {
  std::atomic<int64_t> toDevice{0}, toHost{0};
};

class FarDevice : public Device {
public:
  static Result<std::unique_ptr<Device>> create(const Artifact &artifact, const DeviceOptions &options,
                                                Transfers &transfers) {
    TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<Device> near,
                             cpu::CpuDevice::create(artifact.package().target()->str(), options));
    return std::unique_ptr<Device>(new FarDevice(std::move(near), transfers));
  }
  ~FarDevice() override {
    for (const Mapping &mapping : mappings)
      ::munmap(mapping.far, mapping.bytes);
  }

  std::string name() const override { return "far"; }
  std::string arithmetic() const override { return near->arithmetic(); }
  int threads() const override { return near->threads(); }
  Status checkMemory(const artifact::Package &package) const override { return near->checkMemory(package); }
  Result<ArenaMemory> allocate(const artifact::Arena &arena) override {
    TESSERA_ASSIGN_OR_RETURN(ArenaMemory memory, near->allocate(arena));
    nearArenas.push_back(memory);
    if (!memory.data)
      return memory;
    void *far = ::mmap(nullptr, memory.allocatedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (far == MAP_FAILED)
      return TESSERA_ERROR(Exhausted, "no addresses left");
    mappings.push_back({static_cast<std::byte *>(far), memory.data, memory.allocatedBytes});
    return ArenaMemory{mappings.back().far, nullptr, memory.allocatedBytes};
  }
  Result<std::byte *> allocateStaging(size_t bytes) override { return near->allocateStaging(bytes); }
  Status copyToDevice(void *target, const void *source, size_t bytes) override {
    ++transfers.toDevice;
    return near->copyToDevice(translate(target), source, bytes);
  }
  Status copyToHost(void *target, const void *source, size_t bytes) override {
    ++transfers.toHost;
    return near->copyToHost(target, translate(source), bytes);
  }
  size_t workspaceBytes() const override { return near->workspaceBytes(); }
  Status prepare(RankContext &context) override {
    far = &context;
    nearContext = std::make_unique<RankContext>(
        context.artifact, BufferMap(context.artifact, context.communicator.rank(), nearArenas), context.communicator);
    return near->prepare(*nearContext);
  }
  Result<std::unique_ptr<Command>> compile(const artifact::Instruction &instruction) override {
    return near->compile(instruction);
  }
  Result<std::unique_ptr<DeviceStream>> createStream(int number) override { return near->createStream(number); }
  Result<std::unique_ptr<DeviceEvent>> createEvent() override { return near->createEvent(); }
  Result<StepMode> beginStep(size_t program, bool isObserved) override {
    nearContext->step = far->step;
    return near->beginStep(program, isObserved);
  }
  Status endStep() override { return near->endStep(); }
  bool marksAreTimes() const override { return true; }
  int64_t timeOf(TimeMark mark) const override { return mark; }

private:
  struct Mapping {
    std::byte *far, *near;
    size_t bytes;
  };

  FarDevice(std::unique_ptr<Device> near, Transfers &transfers) : near(std::move(near)), transfers(transfers) {}
  std::byte *translate(const void *address) const {
    auto *wanted = static_cast<const std::byte *>(address);
    for (const Mapping &mapping : mappings)
      if (wanted >= mapping.far && wanted < mapping.far + mapping.bytes)
        return mapping.near + (wanted - mapping.far);
    return nullptr;
  }

  std::unique_ptr<Device> near;
  Transfers &transfers;
  std::vector<ArenaMemory> nearArenas;
  std::vector<Mapping> mappings;
  RankContext *far = nullptr;
  std::unique_ptr<RankContext> nearContext;
};

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_STEP_FARDEVICE_H
