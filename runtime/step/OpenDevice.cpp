//===- OpenDevice.cpp - the device that an artifact is for ------------------===//

#include "runtime/base/Plugin.h"
#include "runtime/device/Open.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CudaPlugin.h"

#include <string>

namespace tessera {

static std::string describe(const Artifact &artifact) {
  return "artifact '" + artifact.path() + "' is for " + artifact.package().target()->str();
}

static bool isForGpu(const Artifact &artifact) { return artifact.package().target()->str().compare(0, 3, "sm_") == 0; }

/// What a message of the dynamic linker means.
static std::string adviceFor(const std::string &message) {
  auto names = [&](const char *text) { return message.find(text) != std::string::npos; };
  if (names("libcuda.so") && names("cannot open"))
    return ": no NVIDIA driver is installed";
  if (names("undefined symbol: cu"))
    return ": the NVIDIA driver or a library of CUDA is too old";
  if (names("undefined symbol: nccl"))
    return ": the installed NCCL is too old";
  for (const char *library : {"libnccl", "libcublasLt", "libcudnn"})
    if (names(library) && names("cannot open"))
      return std::string(": ") + library +
             " is not installed, or not where the dynamic linker looks (LD_LIBRARY_PATH; beside the "
             "Python package: its extra cuda13)";
  return "";
}

/// The plugin is loaded by the first artifact for a GPU, so that tessera-run starts where there is no CUDA.
static Result<const CudaPlugin *> loadCudaPlugin(const Artifact &artifact) {
  std::string what = describe(artifact);
  Result<void *> found = loadPlugin("libtessera-cuda.so", "tesseraCudaPlugin", /*isGlobal=*/false);
  if (!found.isOk() && found.status().code() == StatusCode::NotFound)
    return TESSERA_ERROR(Unsupported, what + "; this tessera-run has no CUDA backend: " + found.status().message() +
                                          " (it is built where CMake finds CUDA; TESSERA_PLUGINS names another "
                                          "folder)");
  if (!found.isOk())
    return TESSERA_ERROR(Unsupported, what + "; " + found.status().message() + adviceFor(found.status().message()));
  const CudaPlugin *plugin = reinterpret_cast<decltype(&tesseraCudaPlugin)>(*found)();
  if (std::string(plugin->version) != TESSERA_VERSION)
    return TESSERA_ERROR(Unsupported, what + "; libtessera-cuda.so is of version " + plugin->version +
                                          ", this tessera-run of " + TESSERA_VERSION);
  return plugin;
}

Status checkDevice(const Artifact &artifact, const GpuOptions &options) {
  if (!isForGpu(artifact))
    return Status::ok();
  TESSERA_ASSIGN_OR_RETURN(const CudaPlugin *plugin, loadCudaPlugin(artifact));
  Status status = plugin->check(artifact, options);
  return status.isOk() ? status : status.withContext(describe(artifact));
}

Result<std::unique_ptr<Device>> openDevice(const Artifact &artifact, const DeviceOptions &options) {
  if (!isForGpu(artifact))
    return cpu::CpuDevice::create(artifact.package().target()->str(), options);
  TESSERA_ASSIGN_OR_RETURN(const CudaPlugin *plugin, loadCudaPlugin(artifact));
  Result<std::unique_ptr<Device>> device = plugin->open(artifact, options);
  return device.isOk() ? std::move(device)
                       : Result<std::unique_ptr<Device>>(device.status().withContext(describe(artifact)));
}

} // namespace tessera
