//===- CudnnGraph.h - what cuDNN is asked to compute ---------------------===//
//
// A graph of cuDNN's operations as a value: nothing of the library is called while it is made, and equal graphs have
// equal plans (CudnnPlans.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDNNGRAPH_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDNNGRAPH_H

#include "runtime/device/cuda/CudnnLayout.h"

#include <cudnn.h>

#include <compare>
#include <optional>
#include <variant>
#include <vector>

namespace tessera::cuda {

class CudnnGraph {
public:
  using Id = size_t; ///< of a tensor, from 0 in the order in which they are made

  /// Where a tensor is while the graph runs.
  enum class Place {
    Operand,   ///< memory that is given to each run, in the order in which operands are made
    Registers, ///< nowhere else
    Workspace, ///< scratch memory
    Constant,  ///< one number, part of the graph
  };
  struct Tensor {
    CudnnTensor layout;
    Place place = Place::Operand;
    float value = 0; ///< of a constant
    auto operator<=>(const Tensor &) const = default;
  };

  struct Pointwise {
    cudnnPointwiseMode_t mode;
    Id x;
    std::optional<Id> b = {}, predicate = {};
    std::optional<int64_t> axis = {};
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    Id y = 0;
    auto operator<=>(const Pointwise &) const = default;
  };
  struct Reduction {
    cudnnReduceTensorOp_t mode;
    Id x, y;
    auto operator<=>(const Reduction &) const = default;
  };
  struct Product {
    Id a, b, c;
    auto operator<=>(const Product &) const = default;
  };
  struct Reshape {
    Id x, y;
    auto operator<=>(const Reshape &) const = default;
  };
  struct Convolution {
    artifact::ConvKind kind;
    std::vector<int64_t> strides, paddingBefore, paddingAfter, dilations;
    Id x, w, y;
    auto operator<=>(const Convolution &) const = default;
  };
  using Operation = std::variant<Pointwise, Reduction, Product, Reshape, Convolution>;

  Id operand(const CudnnTensor &layout) { return add({layout, Place::Operand}); }
  Id temporary(const CudnnTensor &layout) { return add({layout, Place::Registers}); }
  Id scratch(const CudnnTensor &layout) { return add({layout, Place::Workspace}); }
  Id constant(float value, size_t rank) {
    return add({denseTensor(std::vector<int64_t>(rank, 1)), Place::Constant, value});
  }
  void pointwise(Pointwise operation, Id y) {
    operation.y = y;
    operations.emplace_back(operation);
  }
  void reduce(cudnnReduceTensorOp_t mode, Id x, Id y) { operations.emplace_back(Reduction{mode, x, y}); }
  void multiply(Id a, Id b, Id c) { operations.emplace_back(Product{a, b, c}); }
  void reshape(Id x, Id y) { operations.emplace_back(Reshape{x, y}); }
  void convolution(Convolution operation) { operations.emplace_back(std::move(operation)); }

  std::vector<Tensor> tensors;
  std::vector<Operation> operations;
  bool isF32 = false;          ///< computed in f32, without TF32
  bool isDeterministic = true; ///< the same bits every time

  auto operator<=>(const CudnnGraph &) const = default;

private:
  Id add(Tensor tensor) {
    tensors.push_back(std::move(tensor));
    return tensors.size() - 1;
  }
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDNNGRAPH_H
