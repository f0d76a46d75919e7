//===- CpuDevice.h - a team of threads as a device -------------------------===//
//
// Memory is the process's own. Stream 0 is the rank's thread with its team; other streams are threads with queues, or
// the rank's thread too where there is only one rank, since then nothing is gained by them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_CPUDEVICE_H
#define TESSERA_RUNTIME_DEVICE_CPU_CPUDEVICE_H

#include "runtime/device/Device.h"
#include "runtime/device/cpu/Arena.h"
#include "runtime/device/cpu/CodeObject.h"
#include "runtime/device/cpu/Conv.h"
#include "runtime/device/cpu/Dnn.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/cpu/Team.h"

namespace tessera::cpu {

/// What the commands of one rank share.
struct CpuShared {
  explicit CpuShared(Team team) : team(team) {}

  RankContext *rank = nullptr;
  Team team;
  GemmPlanner gemms;
  ConvPlanner convolutions;
  Scratch attentionScratch;
  std::vector<CodeObject> code;
  std::vector<Kernel> kernels; ///< by index in Package.kernels
};

/// Makes the command of an instruction; its stream and location are set by the caller.
Result<std::unique_ptr<Command>> makeCommand(const artifact::Instruction &instruction, CpuShared &shared);

class CpuDevice : public Device {
public:
  /// Fails if this machine cannot run code for `target`. The calling thread becomes the rank's.
  static Result<std::unique_ptr<Device>> create(const std::string &target, const DeviceOptions &options);

  std::string name() const override { return "cpu"; }
  std::string arithmetic() const override;
  int threads() const override { return shared.team.threads(); }
  Status checkMemory(const artifact::Package &package) const override;
  Result<ArenaMemory> allocate(const artifact::Arena &arena) override;
  Result<std::byte *> allocateStaging(size_t bytes) override;
  Status copyToDevice(void *target, const void *source, size_t bytes) override;
  Status copyToHost(void *target, const void *source, size_t bytes) override;
  size_t workspaceBytes() const override;
  Status prepare(RankContext &context) override;
  Result<std::unique_ptr<Command>> compile(const artifact::Instruction &instruction) override;
  Result<std::unique_ptr<DeviceStream>> createStream(int number) override;
  Result<std::unique_ptr<DeviceEvent>> createEvent() override;
  Result<StepMode> beginStep(size_t, bool) override { return StepMode::Issue; }
  Status endStep() override { return Status::ok(); }
  bool marksAreTimes() const override { return true; }
  int64_t timeOf(TimeMark mark) const override { return mark; }

private:
  explicit CpuDevice(const DeviceOptions &options) : options(options), shared(Team(options.threads)) {}
  Status loadKernels(const artifact::Package &package);

  const DeviceOptions options;
  CpuShared shared;
  std::vector<Arena> arenas;
};

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_CPUDEVICE_H
