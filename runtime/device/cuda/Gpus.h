//===- Gpus.h - the GPUs of this machine ------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_GPUS_H
#define TESSERA_RUNTIME_DEVICE_CUDA_GPUS_H

#include "runtime/artifact/Reader.h"
#include "runtime/device/Device.h"
#include "runtime/device/GpuOptions.h"
#include "runtime/device/cuda/Cuda.h"

#include <string>
#include <vector>

namespace tessera::cuda {

struct Gpu {
  CUdevice device = 0;
  std::string name;
  int capability = 0; ///< 90 for sm_90
  size_t bytes = 0;   ///< of memory
};

/// At least one; no driver, one that is too old and no GPU are errors.
Result<std::vector<Gpu>> findGpus();
/// Whether code for `target` ("sm_90") runs on the GPU.
Status checkGeneration(const Gpu &gpu, const std::string &target);
/// Device and host bytes of the plan.
std::pair<uint64_t, uint64_t> plannedBytes(const artifact::Package &package);
/// Whether one of the GPUs runs the artifact and is large enough; takes no memory. Sets the
/// environment of NCCL for several ranks.
Status checkGpus(const Artifact &artifact, const GpuOptions &options);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_GPUS_H
