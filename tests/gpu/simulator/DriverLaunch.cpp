//===- DriverLaunch.cpp - copies and launches of the simulated driver -----===//

#include "Simulator.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>
#include <utility>

using namespace tessera::sim;

#define TESSERA_DRIVER extern "C" TESSERA_SIM_API CUresult CUDAAPI

/// Returns where the handle is not a stream, or its GPU has failed.
#define TESSERA_STREAM(name, handle)                                                                                   \
  std::unique_lock<std::recursive_mutex> lock(sim().mutex);                                                            \
  Stream *name = sim().stream(handle, __func__);                                                                       \
  if (!name)                                                                                                           \
    return CUDA_ERROR_INVALID_HANDLE;                                                                                  \
  if (name->gpu->error != CUDA_SUCCESS)                                                                                \
  return name->gpu->error

// --- Copies -----------------------------------------------------------------------

/// The GPU whose memory an address is, or null for the host's; false where it was memory of a GPU once.
static bool ownerOf(CUdeviceptr address, size_t bytes, Gpu *&owner) {
  owner = nullptr;
  for (auto &gpu : sim().gpus) {
    if (address < gpu->base || address >= gpu->nextFree)
      continue;
    Window window = gpu->find(address);
    owner = gpu.get();
    return address >= window.begin && address + bytes <= window.end;
  }
  return true;
}

static bool isPinned(CUdeviceptr address) {
  auto after = sim().pinned.upper_bound(address);
  return after != sim().pinned.begin() && address < std::prev(after)->first + std::prev(after)->second;
}

static std::byte *placeOf(CUdeviceptr address, size_t bytes, const char *what) {
  Gpu *owner = nullptr;
  if (!ownerOf(address, bytes, owner))
    throw KernelFault(CUDA_ERROR_ILLEGAL_ADDRESS, std::string(what) + ": not memory of a GPU any more");
  return owner ? owner->resolve(address, bytes, what) : reinterpret_cast<std::byte *>(address);
}

TESSERA_DRIVER cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream handle) {
  TESSERA_STREAM(stream, handle);
  if (bytes == 0)
    return CUDA_SUCCESS;
  Gpu *from = nullptr, *to = nullptr;
  if (!ownerOf(target, bytes, to) || !ownerOf(source, bytes, from)) {
    sim().report("cuMemcpyAsync: not inside of an allocation");
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool isFromPageable = !from && !isPinned(source), isToPageable = !to && !isPinned(target);
  if (stream->capture && (isFromPageable || isToPageable))
    return sim().invalidate(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                            "cuMemcpyAsync of pageable memory in a capture");
  // What is not pinned is read before the call returns, and written before it returns.
  std::shared_ptr<std::vector<std::byte>> staged;
  if (isFromPageable)
    staged = std::make_shared<std::vector<std::byte>>(reinterpret_cast<std::byte *>(source),
                                                      reinterpret_cast<std::byte *>(source) + bytes);
  sim().count("copies");
  CUresult result = sim().submit(*stream, [=](Gpu &) {
    std::byte *place = placeOf(target, bytes, "cuMemcpyAsync");
    std::memmove(place, staged ? staged->data() : placeOf(source, bytes, "cuMemcpyAsync"), bytes);
  });
  lock.unlock();
  return result == CUDA_SUCCESS && isToPageable ? cuStreamSynchronize(handle) : result;
}

TESSERA_DRIVER cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream handle) {
  {
    Lock lock(sim().mutex);
    Gpu *from = nullptr, *to = nullptr;
    if (!ownerOf(target, bytes, to) || !ownerOf(source, bytes, from) || (!to && !isPinned(target)) ||
        (!from && !isPinned(source))) {
      sim().report("cuMemcpyDtoDAsync: not memory of a GPU");
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return cuMemcpyAsync(target, source, bytes, handle);
}

TESSERA_DRIVER cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t bytes, CUstream handle) {
  TESSERA_STREAM(stream, handle);
  Window window = stream->gpu->find(target);
  if (target < window.begin || target + bytes > window.end) {
    sim().report("cuMemsetD8Async: not inside of an allocation");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return sim().submit(*stream,
                      [=](Gpu &gpu) { std::memset(gpu.resolve(target, bytes, "cuMemsetD8Async"), value, bytes); });
}

TESSERA_DRIVER cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  TESSERA_STREAM(stream, handle);
  Window window = stream->gpu->find(address);
  if (flags != 0 || address % 4 != 0 || address < window.begin || address + 4 > window.end) {
    sim().report("cuStreamWriteValue32: the address is not one of the GPU's, or not aligned");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return sim().submit(*stream,
                      [=](Gpu &gpu) { std::memcpy(gpu.resolve(address, 4, "cuStreamWriteValue32"), &value, 4); });
}

// --- Launches ---------------------------------------------------------------------

namespace {
class KernelWork : public Work {
public:
  Outcome run(Gpu &gpu, std::shared_ptr<void> &) override {
    sim().count("kernels");
    if (sim().counts["kernels"] == sim().failureAt("exit"))
      ::_exit(9);
    if (sim().counts["kernels"] == sim().failureAt("launch"))
      throw KernelFault(CUDA_ERROR_LAUNCH_FAILED, "kernel " + launch.kernel->name + " fails, as asked for");
    runKernel(launch, gpu, sim().random);
    return Outcome::Done;
  }

  Launch launch;
  std::shared_ptr<Loaded> library; ///< stays while its kernels run
};
} // namespace

TESSERA_DRIVER cuLaunchKernel(CUfunction handle, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                              unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream streamHandle,
                              void **arguments, void **extra) {
  TESSERA_STREAM(stream, streamHandle);
  // The queues of a driver are finite: where one is full, a launch waits.
  while (sim().longestQueue > 0 && !stream->capture && stream->queue.size() >= sim().longestQueue &&
         stream->gpu->error == CUDA_SUCCESS) {
    if (sim().step())
      continue;
    sim().count("launches that waited");
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  if (!sim().functions.count(handle)) {
    sim().report("cuLaunchKernel: the function does not exist");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  auto &function = *reinterpret_cast<Function *>(handle);
  const Kernel &kernel = *function.kernel;
  auto refuse = [&](const std::string &what, CUresult error = CUDA_ERROR_INVALID_VALUE) {
    sim().report("cuLaunchKernel of " + kernel.name + ": " + what);
    return error;
  };
  if (function.gpu != stream->gpu || sim().current() != stream->gpu)
    return refuse("kernel, stream and thread are of two contexts", CUDA_ERROR_INVALID_HANDLE);
  uint64_t threads = uint64_t{blockX} * blockY * blockZ;
  if (gridX == 0 || gridY == 0 || gridZ == 0 || gridX > 0x7fffffff || gridY > 65535 || gridZ > 65535)
    return refuse("a grid of " + std::to_string(gridX) + " x " + std::to_string(gridY) + " x " + std::to_string(gridZ));
  if (threads == 0 || threads > 1024 || threads > kernel.maxThreads || blockZ > 64)
    return refuse(std::to_string(threads) + " threads, at most " + std::to_string(kernel.maxThreads));
  if (sharedBytes > function.mostDynamicShared ||
      (sharedBytes + kernel.sharedBytes > (48U << 10) && function.mostDynamicShared <= (48U << 10)))
    return refuse(std::to_string(sharedBytes) + " bytes of shared memory");
  if (extra || (!arguments && !kernel.parameters.empty()))
    return refuse("no arguments");
  auto work = std::make_shared<KernelWork>();
  Launch &launch = work->launch;
  launch.kernel = &kernel;
  launch.grid[0] = gridX, launch.grid[1] = gridY, launch.grid[2] = gridZ;
  launch.block[0] = blockX, launch.block[1] = blockY, launch.block[2] = blockZ;
  launch.dynamicShared = sharedBytes;
  launch.findsRaces = sim().findsRaces;
  launch.variableAddresses = function.library->variables[stream->gpu];
  launch.parameters.resize(kernel.parameterBytes);
  for (size_t index = 0; index < kernel.parameters.size(); ++index)
    std::memcpy(launch.parameters.data() + kernel.parameters[index].offset, arguments[index],
                kernel.parameters[index].bytes);
  work->library = function.library;
  return sim().submit(*stream, std::move(work));
}
