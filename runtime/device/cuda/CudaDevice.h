//===- CudaDevice.h - one NVIDIA GPU as the device of a rank ----------------===//
//
// The first step of a program is issued instruction by instruction; the second is captured as one CUDA graph, which all
// later ones launch. Steps that somebody observes, and all steps with --no-graph, are issued.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/CudaAttention.h"
#include "runtime/device/cuda/CudaCollectives.h"
#include "runtime/device/cuda/CudaGemm.h"
#include "runtime/device/cuda/CudaMove.h"
#include "runtime/device/cuda/Progress.h"
#include "runtime/device/cuda/Watchdog.h"

#include <chrono>
#include <unordered_set>

namespace tessera::cuda {

class CudaStream;

/// A kernel, and how many pointers it takes.
struct CudaKernel {
  CUfunction function = nullptr;
  size_t numBuffers = 0;
};

/// What streams, events and commands of one rank share.
struct CudaShared {
  RankContext *rank = nullptr;
  CUcontext context = nullptr;
  std::vector<CudaStream *> streams; ///< by number
  std::vector<CudaKernel> kernels;   ///< by index in Package.kernels
  GemmPlanner gemms;
  CudnnPlans cudnn;
  AttentionPlanner attentions;
  Workspace workspace; ///< of attention and convolutions, on the compute stream
  Mover mover;
  Progress progress;
  std::unique_ptr<CudaCollectives> collectives;
  /// Products that run beside collectives of NCCL's, and the multiprocessors that are left to them.
  std::unordered_set<const artifact::Instruction *> besideCollectives;
  int multiprocessorsBeside = 0;
  int64_t step = 0;         ///< counts the calls of beginStep
  bool isCapturing = false; ///< what is issued becomes part of a graph
  bool isReplay = false;    ///< the step is a graph
  double stallTimeoutSeconds = 60;

  // Events that mark times of a step, and how many of them are taken.
  std::vector<CUevent> marks;
  size_t numMarks = 0;
  /// Those that are part of graphs; as TimeMark from `firstGraphMark` on.
  std::vector<CUevent> graphMarks;
  static constexpr size_t firstGraphMark = size_t{1} << 32;

  /// What there is of a program.
  struct Captured {
    CUgraphExec graph = nullptr;
    int64_t steps = 0; ///< that have begun
  };
  std::timed_mutex graphMutex; ///< held while a graph is launched or goes away
  std::vector<Captured> programs;
  /// Lets go of the graphs without waiting for their end.
  void dropGraphs();

  Watchdog watchdog{*this}; ///< last: it looks at all of the above
};

/// Makes the command of an instruction.
Result<std::unique_ptr<Command>> makeCommand(const artifact::Instruction &instruction, CudaShared &shared);

class CudaDevice : public Device {
public:
  static Result<std::unique_ptr<Device>> open(const Artifact &artifact, const DeviceOptions &options);
  ~CudaDevice() override;

  std::string name() const override { return gpuName; }
  std::string arithmetic() const override;
  int threads() const override { return 1; }
  Status meetRanks(Communicator &communicator) override;
  Status checkMemory(const artifact::Package &package) const override;
  Result<ArenaMemory> allocate(const artifact::Arena &arena) override;
  Result<std::byte *> allocateStaging(size_t bytes) override;
  Status copyToDevice(void *target, const void *source, size_t bytes) override;
  Status copyToHost(void *target, const void *source, size_t bytes) override;
  Status copyAllToDevice(std::span<const HostCopy> all) override { return transfer(all); }
  Status copyAllToHost(std::span<const HostCopy> all) override { return transfer(all); }
  size_t workspaceBytes() const override { return GemmPlanner::workspaceBytes + shared->workspace.bytes(); }
  Status prepare(RankContext &context) override;
  Result<std::unique_ptr<Command>> compile(const artifact::Instruction &instruction) override;
  Status leaveRanks() override;
  Result<std::unique_ptr<DeviceStream>> createStream(int number) override;
  Result<std::unique_ptr<DeviceEvent>> createEvent() override;
  Result<StepMode> beginStep(size_t program, bool isObserved) override;
  Status endStep() override;
  bool isRecording() const override { return shared->isCapturing; }
  bool marksAreTimes() const override { return false; }
  TimeMark stepBegin() const override { return 0; }
  TimeMark stepEnd() const override { return 1; }
  int64_t timeOf(TimeMark mark) const override;

private:
  explicit CudaDevice(const DeviceOptions &options) : options(options) {}
  Status findGpu(const std::string &target);
  Result<ArenaMemory> allocateOnGpu(size_t bytes);
  Status loadKernels(const artifact::Package &package);
  Status transfer(std::span<const HostCopy> all);
  Status beginCapture();
  Status endCapture();
  Status launchGraph();
  Status joinStreams();
  Status endIssue();

  const DeviceOptions options;
  std::string gpuName;
  CUdevice gpu = 0;
  int capability = 0; ///< 90 for sm_90
  int ranksOnGpu = 1;
  size_t freeBytes = 0, totalBytes = 0; ///< of its memory, before ranks took some
  int64_t numRanks = 1;
  std::unique_ptr<CudaShared> shared;
  std::vector<CUdeviceptr> deviceMemory;
  std::vector<void *> ncclMemory; ///< of device arenas that collectives of several GPUs use
  std::vector<void *> hostMemory;
  std::vector<CUlibrary> libraries;
  CUstream transfers = nullptr;
  size_t program = 0; ///< of the step
  bool isObserved = false;
  mutable bool hasWarned = false; ///< that times are not known
  int64_t beganAt = 0;            ///< nanoseconds of the host's clock at mark 0
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
