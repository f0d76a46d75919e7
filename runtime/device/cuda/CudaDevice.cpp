//===- CudaDevice.cpp - one NVIDIA GPU as the device of a rank --------------===//

#include "runtime/device/cuda/CudaDevice.h"

#include "runtime/base/Log.h"
#include "runtime/device/HostMemory.h"
#include "runtime/device/cuda/CudaPlugin.h"
#include "runtime/device/cuda/CudaStream.h"
#include "runtime/device/cuda/Gpus.h"
#include "runtime/device/cuda/Overlap.h"
#include "runtime/device/cuda/PlanAhead.h"

#include <algorithm>
#include <bit>
#include <nccl.h>
#include <thread>

namespace tessera::cuda {

using artifact::ArenaKind;

static constexpr size_t mebibyte = size_t{1} << 20;
/// What libraries take beside the plan, estimated without hardware: their code, handles, NCCL's buffers.
static constexpr uint64_t usualLibraryBytes = 768 * mebibyte;

Result<std::unique_ptr<Device>> CudaDevice::open(const Artifact &artifact, const DeviceOptions &options) {
  std::unique_ptr<CudaDevice> made(new CudaDevice(options));
  made->numRanks = artifact.numRanks();
  TESSERA_RETURN_IF_ERROR(made->findGpu(artifact.package().target()->str()));
  return std::unique_ptr<Device>(std::move(made));
}

std::string CudaDevice::arithmetic() const {
  int driver = 0, nccl = 0;
  cuDriverGetVersion(&driver); // answers wherever the device could be opened
  ncclGetVersion(&nccl);
  return gpuName + " with driver " + std::to_string(driver) + ", cuBLASLt " + std::to_string(cublasLtGetVersion()) +
         ", cuDNN " + std::to_string(cudnnGetVersion()) + ", NCCL " + std::to_string(nccl);
}

/// The GPUs of a host are given to its ranks in turn.
Status CudaDevice::findGpu(const std::string &target) {
  TESSERA_ASSIGN_OR_RETURN(std::vector<Gpu> gpus, findGpus());
  auto count = static_cast<int>(gpus.size());
  const Gpu &mine = gpus[options.rankOnHost % count];
  TESSERA_RETURN_IF_ERROR(checkGeneration(mine, target));
  gpu = mine.device;
  gpuName = mine.name;
  capability = mine.capability;
  shared = std::make_unique<CudaShared>();
  shared->stallTimeoutSeconds = options.stallTimeoutSeconds;
  // The primary context is the one that cuBLASLt and NCCL use.
  TESSERA_CU(cuDevicePrimaryCtxRetain(&shared->context, gpu));
  TESSERA_CU(cuCtxSetCurrent(shared->context));
  TESSERA_CU(cuStreamCreate(&transfers, CU_STREAM_NON_BLOCKING));
  return Status::ok();
}

CudaDevice::~CudaDevice() {
  if (!shared || !shared->context)
    return;
  shared->watchdog.stop();
  // After a failure the GPU may wait for ever, and so would what follows: the process ends, and the driver with it.
  if (shared->watchdog.hasFailed()) {
    static_cast<void>(shared.release());
    return;
  }
  cuCtxSetCurrent(shared->context);
  shared->dropGraphs();
  shared->collectives.reset();
  for (const std::vector<CUevent> *marks : {&shared->marks, &shared->graphMarks})
    for (CUevent mark : *marks)
      cuEventDestroy(mark);
  for (CUlibrary library : libraries)
    cuLibraryUnload(library);
  for (CUdeviceptr memory : deviceMemory)
    cuMemFree(memory);
  for (void *memory : ncclMemory)
    freeForNccl(memory);
  for (void *memory : hostMemory)
    cuMemFreeHost(memory);
  if (transfers)
    cuStreamDestroy(transfers);
  shared.reset();
  cuDevicePrimaryCtxRelease(gpu);
}

Status CudaDevice::leaveRanks() {
  if (!shared->collectives)
    return Status::ok();
  shared->watchdog.stop();
  if (shared->watchdog.hasFailed())
    return shared->watchdog.failure();
  TESSERA_CU(cuCtxSetCurrent(shared->context));
  shared->dropGraphs(); // NCCL waits for graphs that hold its collectives
  return shared->collectives->leave();
}

/// A launcher may show each process a GPU of its own as the first one: only their numbers tell which are the same. What
/// is free is asked before any of them takes something.
Status CudaDevice::meetRanks(Communicator &communicator) {
  CUuuid uuid{};
  TESSERA_CU(cuDeviceGetUuid(&uuid, gpu));
  TESSERA_CU(cuMemGetInfo(&freeBytes, &totalBytes));
  std::string mine(uuid.bytes, sizeof(uuid.bytes));
  std::string blob = mine + std::to_string(freeBytes);
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all, communicator.gatherBlobs(blob, "comparison of GPUs"));
  ranksOnGpu = 0;
  for (const std::string &other : all)
    if (other.compare(0, mine.size(), mine) == 0) {
      ++ranksOnGpu;
      freeBytes = std::min(freeBytes, static_cast<size_t>(std::strtoull(other.c_str() + mine.size(), nullptr, 10)));
    }
  return Status::ok();
}

void CudaShared::dropGraphs() {
  // A launch under way that does not return is one that the driver holds; graphs are then left to the end of the
  // process.
  std::unique_lock<std::timed_mutex> lock(graphMutex, std::chrono::seconds(1));
  if (lock.owns_lock())
    for (Captured &each : programs)
      if (each.graph)
        cuGraphExecDestroy(std::exchange(each.graph, nullptr));
}

Status CudaDevice::checkMemory(const artifact::Package &package) const {
  auto [device, host] = plannedBytes(package);
  auto ranks = static_cast<uint64_t>(ranksOnGpu);
  if (device > freeBytes / ranks)
    return TESSERA_ERROR(Exhausted, "the plan needs " + std::to_string(device / mebibyte) +
                                        " MiB on the GPU for each of " + std::to_string(ranks) + " ranks, '" + gpuName +
                                        "' has " + std::to_string(freeBytes / mebibyte) + " MiB free of " +
                                        std::to_string(totalBytes / mebibyte) + " MiB");
  const uint64_t left = freeBytes / ranks - device;
  if (left < usualLibraryBytes && options.rankOnHost == 0)
    log::warn(
        "the plan leaves {} MiB of the GPU's memory to cuBLASLt, cuDNN and NCCL, which may need {} MiB: the first "
        "step may run out of memory",
        left / mebibyte, usualLibraryBytes / mebibyte);
  auto onHost = static_cast<uint64_t>(options.ranksInProcess);
  uint64_t available = hostMemoryPerRank(onHost);
  if (host > available)
    return TESSERA_ERROR(Exhausted, "the plan needs " + std::to_string(host / mebibyte) +
                                        " MiB of the host's memory for each of " + std::to_string(onHost) +
                                        " ranks, each may use " + std::to_string(available / mebibyte) + " MiB");
  return Status::ok();
}

Result<ArenaMemory> CudaDevice::allocate(const artifact::Arena &arena) {
  if (arena.bytes() == 0)
    return ArenaMemory{};
  if (arena.kind() == ArenaKind::Host) {
    void *memory = nullptr;
    TESSERA_CU(cuMemHostAlloc(&memory, arena.bytes(), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    hostMemory.push_back(memory);
    std::fill_n(static_cast<std::byte *>(memory), arena.bytes(), std::byte{0});
    // With unified addressing the GPU knows it by the same address.
    return ArenaMemory{static_cast<std::byte *>(memory), static_cast<std::byte *>(memory), arena.bytes()};
  }
  TESSERA_ASSIGN_OR_RETURN(ArenaMemory memory, allocateOnGpu(arena.bytes()));
  TESSERA_CU(cuMemsetD8Async(deviceAddress(memory.data), 0, arena.bytes(), transfers));
  TESSERA_CU(cuStreamSynchronize(transfers));
  return memory;
}

/// Collectives between GPUs read and write arenas in place where NCCL can map them, which takes memory of its own kind.
Result<ArenaMemory> CudaDevice::allocateOnGpu(size_t bytes) {
  if (numRanks > 1 && ranksOnGpu == 1) {
    TESSERA_ASSIGN_OR_RETURN(void *memory, allocateForNccl(bytes));
    ncclMemory.push_back(memory);
    CUdeviceptr base = 0;
    size_t size = 0;
    TESSERA_CU(cuMemGetAddressRange(&base, &size, deviceAddress(memory)));
    return ArenaMemory{static_cast<std::byte *>(memory), nullptr, size};
  }
  CUdeviceptr memory = 0;
  TESSERA_CU(cuMemAlloc(&memory, bytes));
  deviceMemory.push_back(memory);
  return ArenaMemory{std::bit_cast<std::byte *>(memory), nullptr, bytes};
}

Result<std::byte *> CudaDevice::allocateStaging(size_t bytes) {
  void *memory = nullptr;
  TESSERA_CU(cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE));
  hostMemory.push_back(memory);
  return static_cast<std::byte *>(memory);
}

/// With one wait.
Status CudaDevice::transfer(std::span<const HostCopy> all) {
  if (shared->watchdog.hasFailed())
    return shared->watchdog.failure();
  TESSERA_CU(cuCtxSetCurrent(shared->context));
  for (const HostCopy &each : all)
    TESSERA_CU(cuMemcpyAsync(deviceAddress(each.target), deviceAddress(each.source), each.bytes, transfers));
  TESSERA_CU(cuStreamSynchronize(transfers));
  return Status::ok();
}

Status CudaDevice::copyToDevice(void *target, const void *source, size_t bytes) {
  const HostCopy one{target, source, bytes};
  return transfer({&one, 1});
}

Status CudaDevice::copyToHost(void *target, const void *source, size_t bytes) {
  const HostCopy one{target, source, bytes};
  return transfer({&one, 1});
}

Status CudaDevice::prepare(RankContext &context) {
  shared->rank = &context;
  shared->programs.resize(context.artifact.numPrograms());
  shared->attentions.hasFastGradient = options.gpu.hasFastAttentionGradient;
  TESSERA_RETURN_IF_ERROR(shared->gemms.open());
  TESSERA_RETURN_IF_ERROR(shared->mover.load());
  TESSERA_RETURN_IF_ERROR(shared->progress.open(gpu, numInstructions(context.artifact.package())));
  TESSERA_RETURN_IF_ERROR(loadKernels(context.artifact.package()));
  TESSERA_ASSIGN_OR_RETURN(shared->collectives,
                           joinRanks({&context, gpu, &shared->mover, options.stallTimeoutSeconds, options.gpu}));
  if (shared->collectives->name() == "nccl") {
    shared->besideCollectives =
        productsBesideCollectives(context.artifact.package(), shared->collectives->gathersTakeMultiprocessors());
    int all = 0;
    TESSERA_CU(cuDeviceGetAttribute(&all, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu));
    shared->multiprocessorsBeside = std::max(all - collectiveMultiprocessors, 1);
  }
  if (options.gpu.autotune) {
    TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<GemmTuner> tuner,
                             GemmTuner::open(*options.gpu.autotune, gpuName, context.communicator));
    shared->gemms.tuneWith(std::move(tuner));
  }
  constexpr int mostThreads = 8; // each opens the library for itself
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  TESSERA_RETURN_IF_ERROR(planAhead(context, options.gpu.hasFastAttentionGradient, shared->cudnn,
                                    std::clamp(cores / std::max(options.ranksInProcess, 1), 1, mostThreads)));
  shared->watchdog.start();
  return Status::ok();
}

/// The driver copies as many arguments as the code has parameters, of the sizes that these have.
static Result<size_t> countBuffers(CUfunction function, const std::string &symbol) {
  for (size_t number = 0;; ++number) {
    size_t offset = 0, bytes = 0;
    CUresult asked = cuFuncGetParamInfo(function, number, &offset, &bytes);
    if (asked == CUDA_ERROR_INVALID_VALUE)
      return number;
    if (asked != CUDA_SUCCESS)
      return driverError("cuFuncGetParamInfo", asked).withContext("kernel '" + symbol + "'");
    if (bytes != sizeof(void *))
      return TESSERA_ERROR(DataLoss, "kernel '" + symbol + "': parameter " + std::to_string(number) + " has " +
                                         std::to_string(bytes) + " bytes, so it is no buffer");
  }
}

/// Machine code runs on GPUs of its own generation, PTX on all later ones.
Status CudaDevice::loadKernels(const artifact::Package &package) {
  int target = std::atoi(package.target()->c_str() + 3);
  bool runsMachineCode = target / 10 == capability / 10;
  std::vector<CUlibrary> loaded(package.code_objects() ? package.code_objects()->size() : 0, nullptr);
  for (uint32_t index = 0; package.kernels() && index < package.kernels()->size(); ++index) {
    const artifact::Kernel &kernel = *package.kernels()->Get(index);
    bool isPtx = package.code_objects()->Get(kernel.code_object())->format() == artifact::CodeFormat::Ptx;
    if (!isPtx && !runsMachineCode && kernel.ptx() < 0)
      return TESSERA_ERROR(Unsupported, "kernel '" + kernel.symbol()->str() + "' is machine code for sm_" +
                                            std::to_string(target) + ", the GPU '" + gpuName + "' is an sm_" +
                                            std::to_string(capability));
    uint32_t object = isPtx || runsMachineCode ? kernel.code_object() : static_cast<uint32_t>(kernel.ptx());
    if (!loaded[object]) {
      TESSERA_CU(cuLibraryLoadData(&loaded[object], package.code_objects()->Get(object)->data()->data(), nullptr,
                                   nullptr, 0, nullptr, nullptr, 0));
      libraries.push_back(loaded[object]);
    }
    CUkernel found = nullptr;
    CUfunction function = nullptr;
    CUresult looked = cuLibraryGetKernel(&found, loaded[object], kernel.symbol()->c_str());
    if (looked == CUDA_ERROR_NOT_FOUND)
      return TESSERA_ERROR(DataLoss, "the kernels have no symbol '" + kernel.symbol()->str() + "'");
    if (looked != CUDA_SUCCESS)
      return driverError("cuLibraryGetKernel", looked).withContext("kernel '" + kernel.symbol()->str() + "'");
    TESSERA_CU(cuKernelGetFunction(&function, found));
    TESSERA_ASSIGN_OR_RETURN(size_t numBuffers, countBuffers(function, kernel.symbol()->str()));
    shared->kernels.push_back({function, numBuffers});
  }
  return Status::ok();
}

Result<std::unique_ptr<Command>> CudaDevice::compile(const artifact::Instruction &instruction) {
  return makeCommand(instruction, *shared);
}

Result<std::unique_ptr<DeviceStream>> CudaDevice::createStream(int number) {
  auto made = std::make_unique<CudaStream>(*shared, number);
  TESSERA_RETURN_IF_ERROR(made->open());
  return std::unique_ptr<DeviceStream>(std::move(made));
}

Result<std::unique_ptr<DeviceEvent>> CudaDevice::createEvent() {
  auto made = std::make_unique<CudaEvent>();
  TESSERA_CU(cuEventCreate(&made->event, CU_EVENT_DISABLE_TIMING));
  return std::unique_ptr<DeviceEvent>(std::move(made));
}

static int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<StepMode> CudaDevice::beginStep(size_t number, bool observed) {
  if (shared->watchdog.hasFailed())
    return shared->watchdog.failure();
  TESSERA_CU(cuCtxSetCurrent(shared->context));
  program = number;
  isObserved = observed;
  shared->isReplay = false;
  ++shared->step;
  CudaShared::Captured &captured = shared->programs[program];
  ++captured.steps;
  shared->progress.reset();
  shared->watchdog.beginStep();
  // Nothing runs now: the first mark is at this time of the host. The second one is the end of the step.
  shared->numMarks = 0;
  shared->streams[0]->mark();
  beganAt = now();
  if (shared->marks.size() < 2) {
    shared->marks.emplace_back();
    TESSERA_CU(cuEventCreate(&shared->marks.back(), CU_EVENT_DEFAULT));
  }
  shared->numMarks = 2;
  if (isObserved || !options.gpu.usesGraphs || !shared->collectives->canBeCaptured())
    return StepMode::Issue;
  if (captured.graph) {
    shared->isReplay = true;
    TESSERA_RETURN_IF_ERROR(launchGraph());
    return StepMode::Replay;
  }
  // The first step lets libraries load what they need, which must not happen in a capture.
  if (captured.steps > 1)
    TESSERA_RETURN_IF_ERROR(beginCapture());
  return StepMode::Issue;
}

/// All streams follow stream 0 into the capture.
Status CudaDevice::beginCapture() {
  CUstream first = shared->streams[0]->handle;
  TESSERA_CU(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  shared->isCapturing = true;
  CUevent fork = nullptr;
  TESSERA_CU(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  TESSERA_CU(cuEventRecord(fork, first));
  for (size_t stream = 1; stream < shared->streams.size(); ++stream)
    TESSERA_CU(cuStreamWaitEvent(shared->streams[stream]->handle, fork, CU_EVENT_WAIT_DEFAULT));
  TESSERA_CU(cuEventDestroy(fork));
  return Status::ok();
}

/// Stream 0 waits for what was issued to all others.
Status CudaDevice::joinStreams() {
  for (size_t stream = 1; stream < shared->streams.size(); ++stream) {
    CUevent join = nullptr;
    TESSERA_CU(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    TESSERA_CU(cuEventRecord(join, shared->streams[stream]->handle));
    TESSERA_CU(cuStreamWaitEvent(shared->streams[0]->handle, join, CU_EVENT_WAIT_DEFAULT));
    TESSERA_CU(cuEventDestroy(join));
  }
  return Status::ok();
}

Status CudaDevice::endCapture() {
  Status joined = joinStreams();
  CUgraph captured = nullptr;
  CUresult ended = cuStreamEndCapture(shared->streams[0]->handle, &captured);
  shared->isCapturing = false;
  if (!joined.isOk() && captured)
    cuGraphDestroy(captured);
  TESSERA_RETURN_IF_ERROR(joined);
  if (ended != CUDA_SUCCESS)
    return driverError("the step cannot be captured as a graph (--no-graph runs it without)", ended);
  // The rest of a step that failed must not run: other ranks would wait for what is missing.
  if (shared->watchdog.hasFailed()) {
    cuGraphDestroy(captured);
    return shared->watchdog.failure();
  }
  // Without the flag the priorities of the streams that were captured would not count.
  CUresult made = [&] {
    std::lock_guard<std::timed_mutex> lock(shared->graphMutex);
    return cuGraphInstantiate(&shared->programs[program].graph, captured,
                              CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
  }();
  cuGraphDestroy(captured);
  if (made != CUDA_SUCCESS)
    return driverError("the graph of the step cannot be made (--no-graph runs it without)", made);
  return launchGraph();
}

Status CudaDevice::launchGraph() {
  std::lock_guard<std::timed_mutex> lock(shared->graphMutex);
  if (shared->watchdog.hasFailed())
    return shared->watchdog.failure();
  CUresult launched = cuGraphLaunch(shared->programs[program].graph, shared->streams[0]->handle);
  if (launched == CUDA_SUCCESS)
    return Status::ok();
  Status failure = driverError("cuGraphLaunch", launched);
  shared->watchdog.setFailed(failure);
  return failure;
}

Status CudaDevice::endIssue() {
  if (shared->isCapturing) {
    TESSERA_RETURN_IF_ERROR(endCapture());
    shared->isReplay = true;
  } else if (!shared->isReplay) {
    TESSERA_RETURN_IF_ERROR(joinStreams());
  }
  TESSERA_CU(cuEventRecord(shared->marks[1], shared->streams[0]->handle));
  return Status::ok();
}

Status CudaDevice::endStep() {
  if (Status issued = endIssue(); !issued.isOk()) {
    issued = shared->streams[0]->blame(issued);
    shared->watchdog.setFailed(issued);
    return issued;
  }
  TESSERA_RETURN_IF_ERROR(shared->streams[0]->synchronise());
  shared->watchdog.endStep();
  return Status::ok();
}

int64_t CudaDevice::timeOf(TimeMark mark) const {
  float milliseconds = 0;
  auto index = static_cast<size_t>(mark);
  if (mark <= 0)
    return beganAt;
  CUevent event = index < CudaShared::firstGraphMark ? shared->marks[index]
                                                     : shared->graphMarks[index - CudaShared::firstGraphMark];
  if (CUresult result = cuEventElapsedTime(&milliseconds, shared->marks[0], event); result != CUDA_SUCCESS) {
    if (!std::exchange(hasWarned, true))
      log::warn("times of steps are not known: {}", driverError("cuEventElapsedTime", result).message());
    return beganAt;
  }
  return beganAt + static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
}

} // namespace tessera::cuda

extern "C" __attribute__((visibility("default"))) const tessera::CudaPlugin *tesseraCudaPlugin() {
  static const tessera::CudaPlugin plugin = {TESSERA_VERSION, tessera::cuda::checkGpus,
                                             tessera::cuda::CudaDevice::open};
  return &plugin;
}
