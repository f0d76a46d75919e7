//===- OpenDevice.cpp - the device that an artifact is for ------------------===//

#include "runtime/base/Plugin.h"
#include "runtime/device/Open.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CudaPlugin.h"

#include <string>

namespace tessera {

/// The plugin is loaded by the first artifact for a GPU, so that tessera-run starts where there is no CUDA.
static Result<std::unique_ptr<Device>> openCudaDevice(const Artifact &artifact, const DeviceOptions &options) {
  std::string what = "artifact '" + artifact.path() + "' is for " + artifact.program().target()->str();
  Result<void *> found = loadPlugin("libtessera-cuda.so", "tesseraCudaPlugin", /*isGlobal=*/false);
  if (!found.isOk()) {
    std::string advice = found.status().code() == StatusCode::NotFound
                             ? " (it is built where CMake finds CUDA; TESSERA_PLUGINS names another folder)"
                             : "";
    return TESSERA_ERROR(Unsupported,
                         what + "; this tessera-run has no CUDA backend: " + found.status().message() + advice);
  }
  const CudaPlugin &plugin = *reinterpret_cast<decltype(&tesseraCudaPlugin)>(*found)();
  if (std::string(plugin.version) != TESSERA_VERSION)
    return TESSERA_ERROR(Unsupported, what + "; libtessera-cuda.so is of version " + plugin.version +
                                          ", this tessera-run of " + TESSERA_VERSION);
  Result<std::unique_ptr<Device>> device = plugin.open(artifact, options);
  return device.isOk() ? std::move(device) : Result<std::unique_ptr<Device>>(device.status().withContext(what));
}

Result<std::unique_ptr<Device>> openDevice(const Artifact &artifact, const DeviceOptions &options) {
  std::string target = artifact.program().target()->str();
  return target.compare(0, 3, "sm_") == 0 ? openCudaDevice(artifact, options) : cpu::CpuDevice::create(target, options);
}

} // namespace tessera
