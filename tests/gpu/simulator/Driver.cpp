//===- Driver.cpp - devices, memory and modules of the simulated driver ------===//

#include "Simulator.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

using namespace tessera::sim;

#define TESSERA_DRIVER extern "C" TESSERA_SIM_API CUresult CUDAAPI

static thread_local Gpu *currentGpu = nullptr;

Gpu *Simulator::current() { return currentGpu; }

/// Returns where there is no context, or its error.
#define TESSERA_CURRENT(gpu)                                                                                           \
  Lock lock(sim().mutex);                                                                                              \
  Gpu *gpu = currentGpu;                                                                                               \
  if (!sim().isInitialised)                                                                                            \
    return CUDA_ERROR_NOT_INITIALIZED;                                                                                 \
  if (!gpu)                                                                                                            \
    return CUDA_ERROR_INVALID_CONTEXT;                                                                                 \
  if (gpu->error != CUDA_SUCCESS)                                                                                      \
  return gpu->error

// --- Errors and devices -----------------------------------------------------------

static const struct {
  CUresult code;
  const char *name, *text;
} known[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would result in a merge of separate capture sequences"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"}};

TESSERA_DRIVER cuGetErrorName(CUresult error, const char **name) {
  for (const auto &entry : known)
    if (entry.code == error) {
      *name = entry.name;
      return CUDA_SUCCESS;
    }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

TESSERA_DRIVER cuGetErrorString(CUresult error, const char **text) {
  for (const auto &entry : known)
    if (entry.code == error) {
      *text = entry.text;
      return CUDA_SUCCESS;
    }
  *text = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

TESSERA_DRIVER cuInit(unsigned flags) {
  Lock lock(sim().mutex);
  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (sim().gpus.empty())
    return CUDA_ERROR_NO_DEVICE;
  sim().isInitialised = true;
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuDriverGetVersion(int *version) {
  *version = sim().driver;
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuDeviceGetCount(int *count) {
  if (!sim().isInitialised)
    return CUDA_ERROR_NOT_INITIALIZED;
  *count = static_cast<int>(sim().gpus.size());
  return CUDA_SUCCESS;
}

static Gpu *gpuOf(CUdevice device) {
  return sim().isInitialised && device >= 0 && static_cast<size_t>(device) < sim().gpus.size()
             ? sim().gpus[device].get()
             : nullptr;
}

TESSERA_DRIVER cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return gpuOf(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

TESSERA_DRIVER cuDeviceGetName(char *name, int length, CUdevice device) {
  if (!gpuOf(device) || length <= 0)
    return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(length), "simulated GPU");
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  if (!gpuOf(device))
    return CUDA_ERROR_INVALID_DEVICE;
  std::memset(uuid->bytes, 0, sizeof(uuid->bytes));
  uuid->bytes[0] = 't';
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  if (!gpuOf(device))
    return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = sim().capability / 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = sim().capability % 10;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    *value = 1;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 132;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = 227 << 10;
    return CUDA_SUCCESS;
  default:
    sim().report("cuDeviceGetAttribute: attribute " + std::to_string(attribute) + " is not simulated");
    return CUDA_ERROR_INVALID_VALUE;
  }
}

// --- Contexts ---------------------------------------------------------------------

TESSERA_DRIVER cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  Lock lock(sim().mutex);
  Gpu *gpu = gpuOf(device);
  if (!gpu)
    return CUDA_ERROR_INVALID_DEVICE;
  ++gpu->retained;
  *context = reinterpret_cast<CUcontext>(gpu);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Lock lock(sim().mutex);
  Gpu *gpu = gpuOf(device);
  if (!gpu || gpu->retained == 0) {
    sim().report("cuDevicePrimaryCtxRelease: not retained");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  --gpu->retained;
  sim().writeReport();
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuCtxSetCurrent(CUcontext context) {
  Lock lock(sim().mutex);
  auto *gpu = reinterpret_cast<Gpu *>(context);
  if (gpu && gpu->retained == 0) {
    sim().report("cuCtxSetCurrent: the context is not retained");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  currentGpu = gpu;
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  TESSERA_CURRENT(gpu);
  *least = leastPriority;
  *greatest = greatestPriority;
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuCtxSynchronize() {
  TESSERA_CURRENT(gpu);
  if (CUresult refused = sim().refuseInCapture("cuCtxSynchronize"); refused != CUDA_SUCCESS)
    return refused;
  while (sim().step())
    continue;
  return gpu->error;
}

// --- Memory -----------------------------------------------------------------------

TESSERA_DRIVER cuMemGetInfo_v2(size_t *free, size_t *total) {
  TESSERA_CURRENT(gpu);
  *free = gpu->bytes - gpu->used;
  *total = gpu->bytes;
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  TESSERA_CURRENT(gpu);
  if (CUresult refused = sim().refuseInCapture("cuMemAlloc"); refused != CUDA_SUCCESS)
    return refused;
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  sim().count("allocations");
  if (sim().counts["allocations"] == sim().failureAt("alloc"))
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = gpu->allocate(bytes, true);
  return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

TESSERA_DRIVER cuMemFree_v2(CUdeviceptr address) {
  Lock lock(sim().mutex);
  if (!currentGpu)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (CUresult refused = sim().refuseInCapture("cuMemFree"); refused != CUDA_SUCCESS)
    return refused;
  // The driver waits for all that was given to the GPU.
  auto isBusy = [](auto &entry) { return entry.second->gpu == currentGpu && !entry.second->queue.empty(); };
  auto &streams = sim().streams;
  while (std::any_of(streams.begin(), streams.end(), isBusy))
    if (!sim().step()) {
      sim().report("cuMemFree waits for work that does not end");
      break;
    }
  if (address == 0 || currentGpu->release(address))
    return currentGpu->error;
  sim().report("cuMemFree: not the begin of an allocation of this GPU");
  return CUDA_ERROR_INVALID_VALUE;
}

TESSERA_DRIVER cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  TESSERA_CURRENT(gpu);
  if (CUresult refused = sim().refuseInCapture("cuMemHostAlloc"); refused != CUDA_SUCCESS)
    return refused;
  if (bytes == 0 || (flags & ~7U) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*memory)
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(*memory, 0xff, bytes);
  sim().pinned[reinterpret_cast<uint64_t>(*memory)] = bytes;
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuMemFreeHost(void *memory) {
  Lock lock(sim().mutex);
  if (sim().pinned.erase(reinterpret_cast<uint64_t>(memory)) == 0) {
    sim().report("cuMemFreeHost: not the begin of pinned memory");
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::free(memory);
  return CUDA_SUCCESS;
}

// --- Modules ----------------------------------------------------------------------

TESSERA_DRIVER cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *, void **, unsigned numOptions,
                                 CUlibraryOption *, void **, unsigned numLibraryOptions) {
  TESSERA_CURRENT(gpu);
  if (CUresult refused = sim().refuseInCapture("cuLibraryLoadData"); refused != CUDA_SUCCESS)
    return refused;
  if (!library || !code || numOptions != 0 || numLibraryOptions != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const char *text = static_cast<const char *>(code);
  if (std::memcmp(text,
                  "\x7f"
                  "ELF",
                  4) == 0) {
    sim().report("cuLibraryLoadData: machine code cannot be interpreted; TESSERA_SIM_CAPABILITY=" +
                 std::to_string(sim().capability) + " must not be of its generation");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  auto loaded = std::make_shared<Loaded>();
  try {
    loaded->module = parsePtx(text);
  } catch (const std::exception &error) {
    sim().report(std::string("cuLibraryLoadData: ") + error.what());
    return CUDA_ERROR_INVALID_PTX;
  }
  if (std::atoi(loaded->module.target.c_str() + 3) > sim().capability)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  *library = reinterpret_cast<CUlibrary>(loaded.get());
  sim().libraries[loaded.get()] = std::move(loaded);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuLibraryUnload(CUlibrary library) {
  Lock lock(sim().mutex);
  auto found = sim().libraries.find(library);
  if (found == sim().libraries.end()) {
    sim().report("cuLibraryUnload: not loaded");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  std::erase_if(sim().kernels, [&](auto &entry) {
    if (entry.second->library != found->second)
      return false;
    for (auto &[gpu, function] : entry.second->functions)
      sim().functions.erase(function.get());
    return true;
  });
  for (auto &[gpu, addresses] : found->second->variables)
    for (uint64_t address : addresses)
      gpu->release(address);
  sim().libraries.erase(found);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  Lock lock(sim().mutex);
  auto found = sim().libraries.find(library);
  if (found == sim().libraries.end())
    return CUDA_ERROR_INVALID_HANDLE;
  auto named = found->second->module.kernels.find(name);
  if (named == found->second->module.kernels.end())
    return CUDA_ERROR_NOT_FOUND;
  auto made = std::make_unique<KernelHandle>();
  made->library = found->second;
  made->kernel = &named->second;
  *kernel = reinterpret_cast<CUkernel>(made.get());
  sim().kernels[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  TESSERA_CURRENT(gpu);
  auto found = sim().kernels.find(kernel);
  if (found == sim().kernels.end())
    return CUDA_ERROR_INVALID_HANDLE;
  KernelHandle &handle = *found->second;
  std::unique_ptr<Function> &made = handle.functions[gpu];
  if (!made) {
    made = std::make_unique<Function>();
    made->gpu = gpu;
    made->library = handle.library;
    made->kernel = handle.kernel;
    sim().functions.insert(made.get());
    auto [variables, isNew] = handle.library->variables.try_emplace(gpu);
    if (isNew)
      for (const Variable &variable : handle.library->module.variables) {
        uint64_t address = gpu->allocate(std::max(1U, variable.bytes), false);
        auto *bytes = reinterpret_cast<std::byte *>(address + static_cast<uint64_t>(gpu->shift));
        std::memset(bytes, 0, variable.bytes);
        std::memcpy(bytes, variable.data.data(), variable.data.size());
        variables->second.push_back(address);
      }
  }
  *function = reinterpret_cast<CUfunction>(made.get());
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  TESSERA_CURRENT(gpu);
  if (!sim().functions.count(function))
    return CUDA_ERROR_INVALID_HANDLE;
  auto &made = *reinterpret_cast<Function *>(function);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      static_cast<uint32_t>(value) + made.kernel->sharedBytes > (227U << 10))
    return CUDA_ERROR_INVALID_VALUE;
  made.mostDynamicShared = static_cast<uint32_t>(value);
  return CUDA_SUCCESS;
}
