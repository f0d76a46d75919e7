//===- NcclEnvironment.h - what NCCL reads of its environment ---------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_NCCLENVIRONMENT_H
#define TESSERA_RUNTIME_DEVICE_CUDA_NCCLENVIRONMENT_H

#include "runtime/device/GpuOptions.h"

namespace tessera::cuda {

/// Sets what the environment does not say. Before ranks are threads and the driver has any: glibc's getenv must not run
/// beside setenv.
void setNcclEnvironment(const GpuOptions &options);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_NCCLENVIRONMENT_H
