//===- CudnnPlan.h - a graph of cuDNN's that can be run ------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDNNPLAN_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDNNPLAN_H

#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/CudnnGraph.h"

#include <memory>

namespace tessera::cuda {

/// "cuDNN execute: CUDNN_STATUS_… (what the library says)"; Unsupported where the library only lacks a kernel.
Status cudnnCheck(const char *what, cudnnStatus_t status);

/// Owns a descriptor of the backend. Its first error sticks, and makes all later calls do nothing.
class CudnnDescriptor {
public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor &&other) noexcept;
  CudnnDescriptor &operator=(CudnnDescriptor &&) = delete;
  ~CudnnDescriptor();

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void *values);
  template <typename T> void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<int64_t> &values) {
    set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor &value);
  Status finalize();
  const Status &status() const { return state; }
  cudnnBackendDescriptor_t get() const { return descriptor; }

private:
  cudnnBackendDescriptor_t descriptor = nullptr;
  Status state;
};

class CudnnPlan {
public:
  /// The library's first choice among the plans that compute as the graph asks; Unsupported if there is none. The
  /// handle is the plan's from then on: both are used by one thread at a time.
  static Result<std::unique_ptr<CudnnPlan>> make(const CudnnGraph &graph, cudnnHandle_t handle);

  /// `operands`: addresses, in the order in which the graph got them.
  Status start(const std::vector<void *> &operands, void *workspace, CUstream stream);
  size_t workspaceBytes() const { return scratch + libraryBytes; }

private:
  CudnnPlan(CudnnDescriptor plan, cudnnHandle_t handle) : plan(std::move(plan)), handle(handle) {}

  /// Notes what is where while the graph runs.
  void place(const CudnnGraph &graph);

  std::vector<CudnnDescriptor> parts; ///< what the plan was made of
  CudnnDescriptor plan;
  cudnnHandle_t handle;
  size_t scratch = 0, libraryBytes = 0;
  std::vector<int64_t> operands;                          ///< their numbers
  std::vector<std::pair<int64_t, size_t>> scratchTensors; ///< number and place in the workspace
  std::vector<std::pair<int64_t, float>> constants;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDNNPLAN_H
