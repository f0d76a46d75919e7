//===- CudaPlugin.h - the border between the runtime and libtessera-cuda.so --===//
//
// The runtime must start where no CUDA is installed, so that only the plugin links it. Plugin and runtime are built
// together, by one compiler; the version says so.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDAPLUGIN_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDAPLUGIN_H

#include "runtime/device/Open.h"

namespace tessera {

struct CudaPlugin {
  const char *version;
  Status (*check)(const Artifact &artifact, const GpuOptions &options);
  Result<std::unique_ptr<Device>> (*open)(const Artifact &artifact, const DeviceOptions &options);
};

extern "C" const CudaPlugin *tesseraCudaPlugin();

} // namespace tessera

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDAPLUGIN_H
