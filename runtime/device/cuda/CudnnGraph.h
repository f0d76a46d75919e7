//===- CudnnGraph.h - cuDNN's graph API with owners and errors as values --===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDNNGRAPH_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDNNGRAPH_H

#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/CudnnLayout.h"

#include <cudnn.h>

#include <memory>
#include <optional>
#include <vector>

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

/// What of a graph is executed. Operands are given in the order in which the graph got them.
class CudnnPlan {
public:
  Status start(const std::vector<void *> &operands, void *workspace, CUstream stream);
  size_t workspaceBytes() const { return scratch + libraryBytes; }

private:
  friend class CudnnGraph;
  CudnnPlan(CudnnDescriptor plan, cudnnHandle_t handle) : plan(std::move(plan)), handle(handle) {}

  std::vector<CudnnDescriptor> parts; ///< what the plan was made of
  CudnnDescriptor plan;
  cudnnHandle_t handle;
  size_t scratch = 0, libraryBytes = 0;
  std::vector<int64_t> operands;                          ///< their numbers
  std::vector<std::pair<int64_t, size_t>> scratchTensors; ///< number and place in the workspace
  std::vector<std::pair<int64_t, float>> constants;
};

/// Built once, call by call; an error sticks and is that of `plan`.
class CudnnGraph {
public:
  using Tensor = size_t;
  explicit CudnnGraph(cudnnHandle_t handle) : handle(handle) {}

  Tensor operand(const CudnnTensor &tensor);
  /// Lives in registers only.
  Tensor temporary(const CudnnTensor &tensor);
  /// Lives in the workspace.
  Tensor scratch(const CudnnTensor &tensor);
  Tensor constant(float value, size_t rank);

  struct Pointwise {
    cudnnPointwiseMode_t mode;
    Tensor x;
    std::optional<Tensor> b = {}, predicate = {};
    std::optional<int64_t> axis = {};
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  };
  void pointwise(const Pointwise &operation, Tensor y);
  void reduce(cudnnReduceTensorOp_t mode, Tensor x, Tensor y);
  void multiply(Tensor a, Tensor b, Tensor c);
  void reshape(Tensor x, Tensor y);

  struct Convolution {
    artifact::ConvKind kind;
    std::vector<int64_t> strides, paddingBefore, paddingAfter, dilations;
    Tensor x, w, y;
  };
  void convolution(const Convolution &operation);

  /// The library's first choice among plans that give the same bits every time. f32 is computed in f32, without
  /// TF32. Unsupported if there is none.
  Result<std::unique_ptr<CudnnPlan>> plan(bool isF32) &&;

private:
  Tensor add(const CudnnTensor &tensor, bool isVirtual, bool isByValue);
  CudnnDescriptor &begin(cudnnBackendDescriptorType_t type);
  void end(CudnnDescriptor &operation);
  void note(const Status &status);
  const CudnnDescriptor &at(Tensor tensor) const { return tensors[tensor]; }

  cudnnHandle_t handle;
  Status state;
  std::vector<CudnnDescriptor> tensors, parts, operations;
  size_t scratchEnd = 0;
  std::vector<int64_t> operands;
  std::vector<std::pair<int64_t, size_t>> scratchTensors;
  std::vector<std::pair<int64_t, float>> constants;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDNNGRAPH_H
