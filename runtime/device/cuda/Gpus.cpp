//===- Gpus.cpp - the GPUs of this machine ----------------------------------===//

#include "runtime/device/cuda/Gpus.h"

#include "runtime/device/cuda/CudaGemm.h"
#include "runtime/device/cuda/NcclEnvironment.h"

#include <cstdlib>

namespace tessera::cuda {

Result<std::vector<Gpu>> findGpus() {
  CUresult started = cuInit(0);
  const char *none = "this machine has no NVIDIA GPU, or CUDA_VISIBLE_DEVICES hides it";
  if (started == CUDA_ERROR_NO_DEVICE)
    return TESSERA_ERROR(Unsupported, none);
  if (started != CUDA_SUCCESS)
    return Status(StatusCode::Unsupported, driverError("cuInit", started).message());
  int driver = 0, count = 0;
  TESSERA_CU(cuDriverGetVersion(&driver));
  constexpr int oldest = CUDA_VERSION / 1000 * 1000;
  if (driver < oldest)
    return TESSERA_ERROR(Unsupported, "the driver is for CUDA " + std::to_string(driver / 1000) + "." +
                                          std::to_string(driver % 1000 / 10) +
                                          ", this tessera-run needs one for CUDA " + std::to_string(oldest / 1000));
  TESSERA_CU(cuDeviceGetCount(&count));
  if (count == 0)
    return TESSERA_ERROR(Unsupported, none);
  std::vector<Gpu> gpus(static_cast<size_t>(count));
  for (int index = 0; index < count; ++index) {
    Gpu &gpu = gpus[index];
    TESSERA_CU(cuDeviceGet(&gpu.device, index));
    char text[256] = "";
    TESSERA_CU(cuDeviceGetName(text, sizeof(text), gpu.device));
    gpu.name = text;
    int major = 0, minor = 0;
    TESSERA_CU(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.device));
    TESSERA_CU(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu.device));
    gpu.capability = major * 10 + minor;
    TESSERA_CU(cuDeviceTotalMem(&gpu.bytes, gpu.device));
  }
  return gpus;
}

Status checkGeneration(const Gpu &gpu, const std::string &target) {
  if (std::atoi(target.c_str() + 3) <= gpu.capability)
    return Status::ok();
  return TESSERA_ERROR(Unsupported, "the GPU '" + gpu.name + "' is an sm_" + std::to_string(gpu.capability) +
                                        "; compile the model with --target sm_" +
                                        std::to_string(gpu.capability / 10 * 10));
}

std::pair<uint64_t, uint64_t> plannedBytes(const artifact::Package &package) {
  uint64_t device = GemmPlanner::workspaceBytes, host = 0;
  if (package.arenas())
    for (const artifact::Arena *arena : *package.arenas())
      (arena->kind() == artifact::ArenaKind::Host ? host : device) += arena->bytes();
  return {device, host};
}

Status checkGpus(const Artifact &artifact, const GpuOptions &options) {
  if (artifact.numRanks() > 1)
    setNcclEnvironment(options);
  TESSERA_ASSIGN_OR_RETURN(std::vector<Gpu> gpus, findGpus());
  uint64_t needed = plannedBytes(artifact.package()).first;
  Status first = Status::ok();
  for (const Gpu &gpu : gpus) {
    Status status = checkGeneration(gpu, artifact.package().target()->str());
    if (status.isOk() && gpu.bytes < needed)
      status = TESSERA_ERROR(Exhausted, "the plan needs " + std::to_string(needed >> 20) +
                                            " MiB on the GPU for each rank, '" + gpu.name + "' has " +
                                            std::to_string(gpu.bytes >> 20) + " MiB");
    if (status.isOk())
      return status;
    if (first.isOk())
      first = status;
  }
  return first;
}

} // namespace tessera::cuda
