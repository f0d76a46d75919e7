//===- CudnnProgram.h - a graph of operations of cuDNN, evaluated literally ------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_CUDNNPROGRAM_H
#define TESSERA_TESTS_GPU_SIMULATOR_CUDNNPROGRAM_H

#include "Simulator.h"

#include <cudnn.h>

namespace tessera::sim {

struct GraphTensor {
  int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> dims, strides;
  int64_t alignment = 16;
  bool isVirtual = false, isByValue = false;

  int64_t elements() const;
  int64_t width() const;
};

struct GraphOperation {
  enum class Kind { Pointwise, Reduce, Multiply, Reshape, Convolve, ConvolveInputGrad, ConvolveWeightGrad } kind;
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
  int64_t axis = -1;
  std::vector<int64_t> inputs; ///< ids; of a convolution: x (or dy), w; of its gradients: what it is of
  int64_t output = 0;
  std::vector<int64_t> strides, dilations, before, after;
};

struct Program {
  std::map<int64_t, GraphTensor> tensors;
  std::vector<GraphOperation> operations;
};

/// Pointers by id, of GPU memory, or of this process's for values. Each tensor is rounded to its type.
void evaluate(const Program &program, const std::map<int64_t, uint64_t> &pointers,
              const std::map<int64_t, float> &values, const Gpu &gpu);

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_CUDNNPROGRAM_H
