//===- NcclMemory.cpp - memory of NCCL, registered or not ---------------------===//
//
// TESSERA_SIM_FAIL: "nccl-windows" no windows on these GPUs, "nccl-buffers" neither buffers, "nccl-register:n" the n-th
// window of the process cannot be registered, and the other ranks wait until that one goes, "nccl-register-buffers" nor
// can buffers.
//
//===----------------------------------------------------------------------===//

#include "NcclRing.h"

#include <nccl.h>

#include <algorithm>

using namespace tessera::sim;

#define TESSERA_NCCL extern "C" TESSERA_SIM_API

namespace {
struct Registered {
  ncclComm_t communicator;
  uint64_t address;
};
std::set<Registered *> registered;
struct Allocated {
  CUdeviceptr base;
  size_t bytes;
};
std::map<uint64_t, Allocated> allocated; ///< by address
} // namespace

TESSERA_NCCL ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

TESSERA_NCCL ncclResult_t ncclMemAlloc(void **memory, size_t bytes) {
  CUdeviceptr base = 0;
  if (cuMemAlloc(&base, bytes + NCCL_WIN_REQUIRED_ALIGNMENT) != CUDA_SUCCESS)
    return ncclUnhandledCudaError;
  Lock lock(sim().mutex);
  uint64_t address =
      (base + NCCL_WIN_REQUIRED_ALIGNMENT - 1) / NCCL_WIN_REQUIRED_ALIGNMENT * NCCL_WIN_REQUIRED_ALIGNMENT;
  allocated[address] = {base, bytes};
  *memory = reinterpret_cast<void *>(address);
  return ncclSuccess;
}

TESSERA_NCCL ncclResult_t ncclMemFree(void *memory) {
  CUdeviceptr base = 0;
  {
    Lock lock(sim().mutex);
    auto found = allocated.find(reinterpret_cast<uint64_t>(memory));
    if (found == allocated.end()) {
      sim().report("ncclMemFree: not memory of ncclMemAlloc");
      return ncclInvalidArgument;
    }
    for (Registered *each : registered)
      if (each->address == found->first)
        sim().report("ncclMemFree: the memory is still registered");
    base = found->second.base;
    allocated.erase(found);
  }
  return cuMemFree(base) == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

/// Whether [memory, +bytes) is the begin of what ncclMemAlloc gave on the current GPU.
static bool canRegister(void *memory, size_t bytes, const char *call) {
  auto found = allocated.find(reinterpret_cast<uint64_t>(memory));
  Gpu *gpu = sim().current();
  bool isKnown =
      found != allocated.end() && bytes <= found->second.bytes && gpu && gpu->memory.count(found->second.base) != 0;
  if (!isKnown)
    sim().report(std::string(call) + ": not memory of ncclMemAlloc of this GPU");
  return isKnown;
}

namespace tessera::sim {

bool hasRegistered(ncclComm_t communicator) {
  return std::any_of(registered.begin(), registered.end(),
                     [&](const Registered *each) { return each->communicator == communicator; });
}

void dropRegistered(ncclComm_t communicator) {
  for (auto each = registered.begin(); each != registered.end();) {
    auto current = each++;
    if ((*current)->communicator != communicator)
      continue;
    delete *current;
    registered.erase(current);
    --Simulator::get().handles["NCCL registration"];
  }
}

} // namespace tessera::sim

static void *makeRegistered(ncclComm_t communicator, void *memory) {
  auto *made = new Registered{communicator, reinterpret_cast<uint64_t>(memory)};
  registered.insert(made);
  ++sim().handles["NCCL registration"];
  return made;
}

static ncclResult_t endRegistered(ncclComm_t communicator, void *handle, const char *call) {
  auto *ended = static_cast<Registered *>(handle);
  if (!registered.count(ended) || ended->communicator != communicator) {
    sim().report(std::string(call) + ": not registered with this communicator");
    return ncclInvalidArgument;
  }
  registered.erase(ended);
  delete ended;
  --sim().handles["NCCL registration"];
  return ncclSuccess;
}

TESSERA_NCCL ncclResult_t ncclCommWindowRegister(ncclComm_t communicator, void *memory, size_t bytes,
                                                 ncclWindow_t *window, int) {
  Lock lock(sim().mutex);
  *window = nullptr;
  if (sim().failureAt("nccl-windows") || sim().failureAt("nccl-buffers"))
    return ncclSuccess;
  if (!canRegister(memory, bytes, "ncclCommWindowRegister"))
    return ncclInvalidArgument;
  sim().count("windows");
  auto *member = reinterpret_cast<Member *>(communicator);
  if (sim().counts["windows"] == sim().failureAt("nccl-register")) {
    member->ring->failsRegistration = true;
    return ncclSystemError;
  }
  if (member->ring->failsRegistration) {
    member->waitsForLost = true;
    return ncclInProgress;
  }
  *window = static_cast<ncclWindow_t>(makeRegistered(communicator, memory));
  return ncclSuccess;
}

TESSERA_NCCL ncclResult_t ncclCommWindowDeregister(ncclComm_t communicator, ncclWindow_t window) {
  Lock lock(sim().mutex);
  return endRegistered(communicator, window, "ncclCommWindowDeregister");
}

TESSERA_NCCL ncclResult_t ncclCommRegister(ncclComm_t communicator, void *memory, size_t bytes, void **handle) {
  Lock lock(sim().mutex);
  *handle = nullptr;
  if (sim().failureAt("nccl-buffers"))
    return ncclSuccess;
  if (!canRegister(memory, bytes, "ncclCommRegister"))
    return ncclInvalidArgument;
  if (sim().failureAt("nccl-register-buffers"))
    return ncclSystemError;
  sim().count("buffers");
  *handle = makeRegistered(communicator, memory);
  return ncclSuccess;
}

TESSERA_NCCL ncclResult_t ncclCommDeregister(ncclComm_t communicator, void *handle) {
  Lock lock(sim().mutex);
  return endRegistered(communicator, handle, "ncclCommDeregister");
}

TESSERA_NCCL ncclResult_t ncclCommDestroy(ncclComm_t communicator) { return ncclCommAbort(communicator); }
