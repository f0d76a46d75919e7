//===- CudnnDescriptor.cpp - which attributes the descriptors of cuDNN have ------===//

#include "CudnnDescriptor.h"

#include <algorithm>

namespace tessera::sim {
namespace {

/// An attribute, and how many values it has. `isNeeded`: without it a descriptor cannot be finalized here.
struct Attribute {
  int name;
  cudnnBackendAttributeType_t type;
  int64_t most = 1;
  bool isNeeded = true;
};

constexpr int64_t mostDims = 8, many = 1 << 20;
constexpr auto part = CUDNN_TYPE_BACKEND_DESCRIPTOR;

const std::map<int, std::vector<Attribute>> &attributes() {
  static const std::map<int, std::vector<Attribute>> all = {
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
       {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, mostDims},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, mostDims},
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, false},
        {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, false}}},
      {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, false}}},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, part},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, part},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, part, 1, false},
        {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, part, 1, false},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, part}}},
      {CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
       {{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE},
        {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}}},
      {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, part},
        {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, part},
        {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, part}}},
      {CUDNN_BACKEND_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}}},
      {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_MATMUL_DESC, part},
        {CUDNN_ATTR_OPERATION_MATMUL_ADESC, part},
        {CUDNN_ATTR_OPERATION_MATMUL_BDESC, part},
        {CUDNN_ATTR_OPERATION_MATMUL_CDESC, part}}},
      {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, part}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, part}}},
      {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
       {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, mostDims},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, mostDims},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, mostDims},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, mostDims}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, part},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT}}},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATIONGRAPH_OPS, part, many}, {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE}}},
      {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
       {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, part}, {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE}}},
      {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {}},
      {CUDNN_BACKEND_ENGINE_DESCRIPTOR, {}},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
       {{CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE}, {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, part}}},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
       {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, many},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, many},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR}}},
  };
  return all;
}

void checkTensor(const Descriptor &tensor) {
  auto dims = tensor.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
       strides = tensor.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  auto alignment = tensor.get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  auto type = tensor.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  bool isVirtual = tensor.flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL), isValue = tensor.flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  require(dims.size() == strides.size(), "a tensor has not as many strides as dimensions");
  require(std::all_of(dims.begin(), dims.end(), [](int64_t size) { return size > 0; }),
          "a tensor's size is not positive");
  require(std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride >= 0; }),
          "a tensor's stride is negative");
  if (type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN
          ? !isVirtual
          : type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_HALF && type != CUDNN_DATA_BFLOAT16)
    lack("a tensor of type " + std::to_string(type) + (isVirtual ? "" : " in memory"));
  int64_t width = type == CUDNN_DATA_BOOLEAN ? 1 : type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2 : 4;
  require(alignment > 0 && alignment % width == 0, "a tensor's alignment is not a multiple of its elements'");
  if (isValue) {
    require(!isVirtual, "a value is virtual");
    require(std::all_of(dims.begin(), dims.end(), [](int64_t size) { return size == 1; }),
            "a value has several elements");
    if (type != CUDNN_DATA_FLOAT)
      lack("a value that is not f32");
  }
}

void checkConvolution(const Descriptor &made) {
  auto rank = static_cast<size_t>(made.get<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  for (int name : {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS,
                   CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS}) {
    auto list = made.list<int64_t>(name);
    int64_t least = name == CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES || name == CUDNN_ATTR_CONVOLUTION_DILATIONS ? 1 : 0;
    require(list.size() == rank, "a convolution's lists are not as long as it has dimensions");
    require(std::all_of(list.begin(), list.end(), [least](int64_t value) { return value >= least; }),
            "a convolution's stride, dilation or padding is too small");
  }
  if (rank != 2)
    lack("a convolution that is not over two dimensions");
  if (made.get<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    lack("a convolution with a turned filter");
}

} // namespace

size_t checkAttribute(cudnnBackendDescriptorType_t of, int name, cudnnBackendAttributeType_t type, int64_t count) {
  auto found = attributes().find(of);
  if (found == attributes().end())
    lack("a descriptor of type " + std::to_string(of));
  for (const Attribute &one : found->second) {
    if (one.name != name)
      continue;
    require(one.type == type, "an attribute has another type");
    require(count >= 1 && count <= one.most, "an attribute has another number of values");
    switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:
      return 4;
    }
  }
  refuse("a descriptor of type " + std::to_string(of) + " has no attribute " + std::to_string(name));
}

void checkDescriptor(const Descriptor &descriptor, const Descriptors &all) {
  require(!descriptor.isFinal, "the descriptor is finalized");
  for (const Attribute &one : attributes().at(descriptor.type)) {
    if (one.isNeeded && !descriptor.values.count(one.name))
      refuse("a descriptor of type " + std::to_string(descriptor.type) + " is finalized without attribute " +
             std::to_string(one.name));
    if (one.type == part)
      for (void *handle : descriptor.list<void *>(one.name)) {
        auto found = all.find(handle);
        require(found != all.end() && found->second->isFinal, "a part is missing, or not finalized");
      }
  }
  switch (descriptor.type) {
  case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
    return checkTensor(descriptor);
  case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
    return checkConvolution(descriptor);
  case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
    return require(descriptor.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size() ==
                       descriptor.list<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size(),
                   "a pack has not as many pointers as numbers");
  default:
    return;
  }
}

} // namespace tessera::sim
