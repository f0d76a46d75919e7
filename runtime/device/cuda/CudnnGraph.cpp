//===- CudnnGraph.cpp - cuDNN's graph API with owners and errors as values --===//

#include "runtime/device/cuda/CudnnGraph.h"

#include <algorithm>

namespace tessera::cuda {

using artifact::ConvKind;
using artifact::DataType;

Status cudnnCheck(const char *what, cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS)
    return Status::ok();
  char text[512] = "";
  cudnnGetLastErrorString(text, sizeof(text));
  StatusCode code = StatusCode::IoError;
  // The hundreds of a status are its category, and 3 is "not supported"; a shape that no graph may have is told as a
  // bad parameter.
  if (status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000 || status / 1000 == CUDNN_STATUS_BAD_PARAM / 1000)
    code = StatusCode::Unsupported;
  if (status == CUDNN_STATUS_ALLOC_FAILED)
    code = StatusCode::Exhausted;
  return Status(code, std::string("cuDNN ") + what + ": " + cudnnGetErrorString(status) +
                          (text[0] ? std::string(" (") + text + ")" : std::string()));
}

static cudnnDataType_t cudnnTypeOf(DataType dtype) {
  switch (dtype) {
  case DataType::BF16:
    return CUDNN_DATA_BFLOAT16;
  case DataType::F16:
    return CUDNN_DATA_HALF;
  case DataType::I32:
    return CUDNN_DATA_INT32;
  case DataType::Bool:
    return CUDNN_DATA_BOOLEAN;
  default:
    return CUDNN_DATA_FLOAT;
  }
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  state = cudnnCheck("descriptor", cudnnBackendCreateDescriptor(type, &descriptor));
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor &&other) noexcept
    : descriptor(std::exchange(other.descriptor, nullptr)), state(std::move(other.state)) {}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor)
    cudnnBackendDestroyDescriptor(descriptor);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                          const void *values) {
  if (state.isOk())
    state = cudnnCheck("attribute", cudnnBackendSetAttribute(descriptor, name, type, count, values));
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor &value) {
  if (state.isOk())
    state = value.status();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
}

Status CudnnDescriptor::finalize() {
  if (state.isOk())
    state = cudnnCheck("graph", cudnnBackendFinalize(descriptor));
  return state;
}

Status CudnnPlan::start(const std::vector<void *> &addresses, void *workspace, CUstream stream) {
  std::vector<int64_t> numbers = operands;
  std::vector<void *> pointers = addresses;
  for (auto [number, place] : scratchTensors) {
    numbers.push_back(number);
    pointers.push_back(static_cast<std::byte *>(workspace) + place);
  }
  for (auto &[number, value] : constants) {
    numbers.push_back(number);
    pointers.push_back(&value);
  }
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  void *library = static_cast<std::byte *>(workspace) + scratch;
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(pointers.size()),
           pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, library);
  TESSERA_RETURN_IF_ERROR(pack.finalize());
  TESSERA_RETURN_IF_ERROR(cudnnCheck("stream", cudnnSetStream(handle, stream)));
  return cudnnCheck("execute", cudnnBackendExecute(handle, plan.get(), pack.get()));
}

void CudnnGraph::note(const Status &status) {
  if (state.isOk())
    state = status;
}

CudnnGraph::Tensor CudnnGraph::add(const CudnnTensor &tensor, bool isVirtual, bool isByValue) {
  CudnnDescriptor &made = tensors.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, cudnnTypeOf(tensor.dtype));
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.dims);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, static_cast<int64_t>(tensors.size()));
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, tensor.alignment);
  made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, isVirtual);
  made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, isByValue);
  note(made.finalize());
  return tensors.size() - 1;
}

CudnnGraph::Tensor CudnnGraph::operand(const CudnnTensor &tensor) {
  Tensor made = add(tensor, false, false);
  operands.push_back(static_cast<int64_t>(made) + 1);
  return made;
}

CudnnGraph::Tensor CudnnGraph::temporary(const CudnnTensor &tensor) { return add(tensor, true, false); }

CudnnGraph::Tensor CudnnGraph::scratch(const CudnnTensor &tensor) {
  Tensor made = add(tensor, false, false);
  scratchTensors.emplace_back(static_cast<int64_t>(made) + 1, scratchEnd);
  scratchEnd += scratchBytes(tensor);
  return made;
}

CudnnGraph::Tensor CudnnGraph::constant(float value, size_t rank) {
  Tensor made = add(denseTensor(std::vector<int64_t>(rank, 1)), false, true);
  constants.emplace_back(static_cast<int64_t>(made) + 1, value);
  return made;
}

CudnnDescriptor &CudnnGraph::begin(cudnnBackendDescriptorType_t type) { return operations.emplace_back(type); }

void CudnnGraph::end(CudnnDescriptor &operation) { note(operation.finalize()); }

void CudnnGraph::pointwise(const Pointwise &operation, Tensor y) {
  CudnnDescriptor &kind = parts.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, operation.mode);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, operation.precision);
  if (operation.axis)
    kind.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, *operation.axis);
  note(kind.finalize());
  CudnnDescriptor &made = begin(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(operation.x));
  if (operation.b)
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(*operation.b));
  if (operation.predicate)
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, at(*operation.predicate));
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(y));
  end(made);
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t mode, Tensor x, Tensor y) {
  CudnnDescriptor &kind = parts.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode);
  kind.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  note(kind.finalize());
  CudnnDescriptor &made = begin(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(x));
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(y));
  end(made);
}

void CudnnGraph::multiply(Tensor a, Tensor b, Tensor c) {
  CudnnDescriptor &kind = parts.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  note(kind.finalize());
  CudnnDescriptor &made = begin(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(a));
  made.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(b));
  made.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(c));
  end(made);
}

void CudnnGraph::reshape(Tensor x, Tensor y) {
  CudnnDescriptor &made = begin(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(x));
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(y));
  end(made);
}

namespace {

/// The attributes of one kind of convolution.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t description, x, w, y, alpha, beta;
};

ConvolutionNames namesOf(ConvKind kind) {
  if (kind == ConvKind::Forward)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  if (kind == ConvKind::InputGrad)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

} // namespace

void CudnnGraph::convolution(const Convolution &operation) {
  CudnnDescriptor &description = parts.emplace_back(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  description.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  description.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  description.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
                  static_cast<int64_t>(operation.strides.size()));
  description.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, operation.strides);
  description.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, operation.dilations);
  description.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, operation.paddingBefore);
  description.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, operation.paddingAfter);
  note(description.finalize());
  ConvolutionNames names = namesOf(operation.kind);
  CudnnDescriptor &made = begin(names.operation);
  made.set(names.description, description);
  made.set(names.x, at(operation.x));
  made.set(names.w, at(operation.w));
  made.set(names.y, at(operation.y));
  made.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
  made.set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
  end(made);
}

/// Whether an engine computes what we ask: the same bits every time, and f32 as f32.
static bool isWanted(const CudnnDescriptor &configuration, bool isF32) {
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t found = 0;
  if (!engine.status().isOk() ||
      cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                               &found, &raw) != CUDNN_STATUS_SUCCESS)
    return false;
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  if (cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &found, notes) != CUDNN_STATUS_SUCCESS)
    return false;
  return std::none_of(notes, notes + found, [isF32](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC || note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           (isF32 && (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
  });
}

Result<std::unique_ptr<CudnnPlan>> CudnnGraph::plan(bool isF32) && {
  TESSERA_RETURN_IF_ERROR(state);
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> list;
  for (const CudnnDescriptor &operation : operations)
    list.push_back(operation.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(list.size()),
            list.data());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  TESSERA_RETURN_IF_ERROR(graph.finalize());
  std::string reason = "cuDNN has no kernel for it that gives the same bits every time";
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    int64_t count = 0;
    if (!heuristics.finalize().isOk() ||
        cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                 &count, nullptr) != CUDNN_STATUS_SUCCESS)
      continue;
    std::vector<CudnnDescriptor> configurations;
    std::vector<cudnnBackendDescriptor_t> handles;
    for (int64_t index = 0; index < count; ++index)
      handles.push_back(configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
    if (cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                 &count, handles.data()) != CUDNN_STATUS_SUCCESS)
      continue;
    for (size_t index = 0; index < static_cast<size_t>(count); ++index) {
      if (!isWanted(configurations[index], isF32))
        continue;
      CudnnDescriptor chosen(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      chosen.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
      chosen.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configurations[index]);
      int64_t bytes = 0, found = 0;
      if (Status made = chosen.finalize(); !made.isOk()) {
        reason = made.message();
        continue;
      }
      TESSERA_RETURN_IF_ERROR(
          cudnnCheck("workspace", cudnnBackendGetAttribute(chosen.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                           CUDNN_TYPE_INT64, 1, &found, &bytes)));
      std::unique_ptr<CudnnPlan> made(new CudnnPlan(std::move(chosen), handle));
      made->scratch = scratchEnd;
      made->libraryBytes = static_cast<size_t>(bytes);
      made->operands = operands;
      made->scratchTensors = scratchTensors;
      made->constants = constants;
      for (std::vector<CudnnDescriptor> *list : {&tensors, &parts, &operations, &configurations})
        for (CudnnDescriptor &part : *list)
          made->parts.push_back(std::move(part));
      made->parts.push_back(std::move(graph));
      return made;
    }
  }
  return TESSERA_ERROR(Unsupported, reason);
}

} // namespace tessera::cuda
