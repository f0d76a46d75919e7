//===- LaunchBuffers.h - what a launch gives to its kernel ------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_LAUNCHBUFFERS_H
#define TESSERA_RUNTIME_DEVICE_LAUNCHBUFFERS_H

#include "runtime/artifact/artifact_generated.h"
#include "runtime/base/Status.h"

#include <cstddef>
#include <string>

namespace tessera {

/// How many buffers a kernel takes is known from its code alone; beyond those of the launch it would read anything.
inline Status checkNumBuffers(const artifact::Launch &launch, const artifact::Kernel &kernel, size_t taken) {
  const size_t given = launch.buffers() ? launch.buffers()->size() : 0;
  if (given == taken)
    return Status::ok();
  return TESSERA_ERROR(DataLoss, "kernel '" + kernel.symbol()->str() + "' takes " + std::to_string(taken) +
                                     (taken == 1 ? " buffer" : " buffers") + ", its launch gives " +
                                     std::to_string(given));
}

} // namespace tessera

#endif // TESSERA_RUNTIME_DEVICE_LAUNCHBUFFERS_H
