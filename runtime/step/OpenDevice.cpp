//===- OpenDevice.cpp - the device that an artifact is for ------------------===//

#include "runtime/device/Open.h"
#include "runtime/device/cpu/CpuDevice.h"

namespace tessera {

Result<std::unique_ptr<Device>> openDevice(const Artifact &artifact, const DeviceOptions &options) {
  return cpu::CpuDevice::create(artifact.program().target()->str(), options);
}

} // namespace tessera
