//===- Cudnn.cpp - a cuDNN that supports no graph -----------------------------===//
//
// Descriptors are made and destroyed, so that leaks are found; no graph of operations is supported, so that the backend
// takes its own kernels for attention.
//
//===----------------------------------------------------------------------===//

#include "Simulator.h"

#include <cudnn.h>

#include <cstring>

using namespace tessera::sim;

#define TESSERA_DNN extern "C" TESSERA_SIM_API

static Simulator &sim() { return Simulator::get(); }
static std::map<void *, cudnnBackendDescriptorType_t> descriptors;

TESSERA_DNN size_t cudnnGetVersion() { return CUDNN_VERSION; }
TESSERA_DNN const char *cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS         ? "CUDNN_STATUS_SUCCESS"
         : status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                : "CUDNN_STATUS_BAD_PARAM";
}
TESSERA_DNN void cudnnGetLastErrorString(char *text, size_t bytes) {
  std::strncpy(text, "the simulator has no graphs", bytes);
}

TESSERA_DNN cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  Lock lock(sim().mutex);
  if (!sim().current())
    return CUDNN_STATUS_NOT_INITIALIZED;
  ++sim().handles["cuDNN handle"];
  *handle = reinterpret_cast<cudnnHandle_t>(new int);
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  Lock lock(sim().mutex);
  --sim().handles["cuDNN handle"];
  delete reinterpret_cast<int *>(handle);
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }

TESSERA_DNN cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                       cudnnBackendDescriptor_t *made) {
  Lock lock(sim().mutex);
  ++sim().handles["cuDNN descriptor"];
  *made = new int;
  descriptors[*made] = type;
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  Lock lock(sim().mutex);
  if (!descriptors.erase(descriptor)) {
    sim().report("cudnnBackendDestroyDescriptor: not a descriptor");
    return CUDNN_STATUS_BAD_PARAM;
  }
  --sim().handles["cuDNN descriptor"];
  delete static_cast<int *>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                                   cudnnBackendAttributeType_t, int64_t, const void *) {
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                                   cudnnBackendAttributeType_t, int64_t, int64_t *, void *) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
TESSERA_DNN cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Lock lock(sim().mutex);
  return descriptors[descriptor] == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR ? CUDNN_STATUS_NOT_SUPPORTED
                                                                            : CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
