//===- DriverQueries.cpp - events of graphs, modules, and questions to the simulated driver -===//

#include "Simulator.h"

using namespace tessera::sim;

#define TESSERA_DRIVER extern "C" TESSERA_SIM_API CUresult CUDAAPI

TESSERA_DRIVER cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  Lock lock(sim().mutex);
  if (!sim().isInitialised || device < 0 || static_cast<size_t>(device) >= sim().gpus.size())
    return CUDA_ERROR_INVALID_DEVICE;
  *bytes = sim().gpus[static_cast<size_t>(device)]->bytes;
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuCtxGetCurrent(CUcontext *context) {
  *context = reinterpret_cast<CUcontext>(sim().current());
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
  Lock lock(sim().mutex);
  Gpu *gpu = sim().current();
  if (!gpu)
    return CUDA_ERROR_INVALID_CONTEXT;
  auto after = gpu->memory.upper_bound(address);
  if (after == gpu->memory.begin() || address >= std::prev(after)->first + std::prev(after)->second.bytes)
    return CUDA_ERROR_NOT_FOUND;
  *base = std::prev(after)->first;
  *size = std::prev(after)->second.bytes;
  return CUDA_SUCCESS;
}

/// With CU_EVENT_RECORD_EXTERNAL a record in a capture becomes a node, and every launch records the event anew.
TESSERA_DRIVER cuEventRecordWithFlags(CUevent handle, CUstream streamHandle, unsigned flags) {
  Lock lock(sim().mutex);
  Stream *stream = sim().stream(streamHandle, "cuEventRecordWithFlags");
  if (!stream || flags > CU_EVENT_RECORD_EXTERNAL)
    return CUDA_ERROR_INVALID_VALUE;
  if (!stream->capture || flags == CU_EVENT_RECORD_DEFAULT)
    return cuEventRecord(handle, streamHandle);
  auto found = sim().events.find(handle);
  if (found == sim().events.end() || !found->second->hasTiming || found->second->gpu != stream->gpu) {
    sim().report("cuEventRecordWithFlags: not an event with times of this GPU");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  sim().count("event nodes");
  auto ticket = std::make_shared<Ticket>();
  found->second->capture = nullptr;
  found->second->ticket = ticket;
  return sim().submit(*stream, [ticket](Gpu &) {
    ticket->isDone = true;
    ticket->time = std::chrono::steady_clock::now();
  });
}

TESSERA_DRIVER cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *bytes) {
  Lock lock(sim().mutex);
  if (!sim().functions.count(handle))
    return CUDA_ERROR_INVALID_HANDLE;
  const std::vector<Parameter> &parameters = reinterpret_cast<Function *>(handle)->kernel->parameters;
  if (index >= parameters.size() || !offset)
    return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].offset;
  if (bytes)
    *bytes = parameters[index].bytes;
  return CUDA_SUCCESS;
}

// --- What the tests of single kernels call ----------------------------------------

/// A module is a library whose kernels are functions of the current context.
TESSERA_DRIVER cuModuleLoadData(CUmodule *module, const void *code) {
  return cuLibraryLoadData(reinterpret_cast<CUlibrary *>(module), code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

TESSERA_DRIVER cuModuleUnload(CUmodule module) { return cuLibraryUnload(reinterpret_cast<CUlibrary>(module)); }

TESSERA_DRIVER cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  CUkernel kernel = nullptr;
  CUresult found = cuLibraryGetKernel(&kernel, reinterpret_cast<CUlibrary>(module), name);
  return found == CUDA_SUCCESS ? cuKernelGetFunction(function, kernel) : found;
}

TESSERA_DRIVER cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t bytes) {
  CUresult given = cuMemcpyAsync(target, reinterpret_cast<CUdeviceptr>(source), bytes, nullptr);
  return given == CUDA_SUCCESS ? cuStreamSynchronize(nullptr) : given;
}

TESSERA_DRIVER cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t bytes) {
  CUresult given = cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(target), source, bytes, nullptr);
  return given == CUDA_SUCCESS ? cuStreamSynchronize(nullptr) : given;
}
