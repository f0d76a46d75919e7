//===- Workspace.h - scratch of library calls on a GPU -------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_WORKSPACE_H
#define TESSERA_RUNTIME_DEVICE_CUDA_WORKSPACE_H

#include "runtime/device/cuda/Cuda.h"

#include <bit>

namespace tessera::cuda {

/// Shared by commands of one stream. It grows while commands are made and keeps its address from then on.
class Workspace {
public:
  Workspace() = default;
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;
  ~Workspace() {
    if (memory)
      cuMemFree(memory);
  }

  Status require(size_t wanted) {
    if (wanted <= size)
      return Status::ok();
    size_t free = 0, total = 0;
    TESSERA_CU(cuMemGetInfo(&free, &total));
    if (wanted > free + size)
      return TESSERA_ERROR(Exhausted, "its workspace is " + std::to_string(wanted >> 20) + " MiB, the GPU has " +
                                          std::to_string((free + size) >> 20) + " MiB left for it");
    if (memory)
      TESSERA_CU(cuMemFree(std::exchange(memory, 0)));
    size = 0;
    TESSERA_CU(cuMemAlloc(&memory, wanted));
    size = wanted;
    return Status::ok();
  }
  void *data() const { return std::bit_cast<void *>(memory); }
  size_t bytes() const { return size; }

private:
  CUdeviceptr memory = 0;
  size_t size = 0;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_WORKSPACE_H
