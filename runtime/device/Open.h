//===- Open.h - the device that an artifact is for --------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_OPEN_H
#define TESSERA_RUNTIME_DEVICE_OPEN_H

#include "runtime/device/Device.h"
#include "runtime/device/GpuOptions.h"

#include <functional>
#include <memory>

namespace tessera {

using DeviceOpener = std::function<Result<std::unique_ptr<Device>>(const Artifact &, const DeviceOptions &)>;

/// Whether this machine has such a device at all, before anything is opened or taken. Sets what the device's libraries
/// read of the environment, so that ranks must not be threads yet.
Status checkDevice(const Artifact &artifact, const GpuOptions &options);

/// Fails if this machine has no such device. The calling thread becomes the rank's.
Result<std::unique_ptr<Device>> openDevice(const Artifact &artifact, const DeviceOptions &options);

} // namespace tessera

#endif // TESSERA_RUNTIME_DEVICE_OPEN_H
