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

  bool operator==(const GraphTensor &) const = default;
  int64_t elements() const;
  int64_t width() const;
  /// From its first to behind its last element.
  int64_t bytes() const;
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

  bool isConvolution() const;
  /// A product whose parts are added to f32 sums in memory, which are then converted: in any order.
  bool addsInAnyOrder(const GraphOperation &product) const;
  bool isUnordered() const;
  /// All that is in memory is f32.
  bool isF32() const;
  /// Not 0, and another one for other shapes.
  int64_t workspaceBytes() const;
};

/// By id: what tensors are in memory, and values.
struct Bindings {
  std::map<int64_t, uint64_t> pointers;
  std::map<int64_t, float> values;
  uint64_t workspace = 0;
};

/// Each tensor is rounded to its type. The workspace is overwritten. Throws KernelFault where addresses are not aligned
/// or outside of memory, or where what is written overlaps anything else.
void evaluate(const Program &program, const Bindings &bound, const Gpu &gpu);

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_CUDNNPROGRAM_H
