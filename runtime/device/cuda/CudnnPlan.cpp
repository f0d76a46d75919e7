//===- CudnnPlan.cpp - a graph of cuDNN's that can be run ----------------===//

#include "runtime/device/cuda/CudnnPlan.h"

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

namespace {

/// What the library calls a tensor.
int64_t numberOf(CudnnGraph::Id tensor) { return static_cast<int64_t>(tensor) + 1; }

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

/// The library's descriptors of a graph. An error sticks and is that of `status`.
class Descriptors {
public:
  explicit Descriptors(const CudnnGraph &graph) {
    for (const CudnnGraph::Tensor &tensor : graph.tensors)
      add(tensor);
    for (const CudnnGraph::Operation &operation : graph.operations)
      std::visit([this](const auto &each) { add(each); }, operation);
  }

  const Status &status() const { return state; }
  std::vector<CudnnDescriptor> tensors, parts, operations;

private:
  void note(const Status &status) {
    if (state.isOk())
      state = status;
  }
  CudnnDescriptor &begin(cudnnBackendDescriptorType_t type) { return operations.emplace_back(type); }
  void end(CudnnDescriptor &operation) { note(operation.finalize()); }
  const CudnnDescriptor &at(CudnnGraph::Id tensor) const { return tensors[tensor]; }

  void add(const CudnnGraph::Tensor &tensor) {
    const CudnnTensor &layout = tensor.layout;
    CudnnDescriptor &made = tensors.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, cudnnTypeOf(layout.dtype));
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, layout.dims);
    made.set(CUDNN_ATTR_TENSOR_STRIDES, layout.strides);
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, numberOf(tensors.size() - 1));
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, layout.alignment);
    made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, tensor.place == CudnnGraph::Place::Registers);
    made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, tensor.place == CudnnGraph::Place::Constant);
    note(made.finalize());
  }

  void add(const CudnnGraph::Pointwise &operation) {
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
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(operation.y));
    end(made);
  }

  void add(const CudnnGraph::Reduction &operation) {
    CudnnDescriptor &kind = parts.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, operation.mode);
    kind.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    note(kind.finalize());
    CudnnDescriptor &made = begin(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
    made.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(operation.x));
    made.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(operation.y));
    end(made);
  }

  void add(const CudnnGraph::Product &operation) {
    CudnnDescriptor &kind = parts.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    note(kind.finalize());
    CudnnDescriptor &made = begin(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
    made.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(operation.a));
    made.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(operation.b));
    made.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(operation.c));
    end(made);
  }

  void add(const CudnnGraph::Reshape &operation) {
    CudnnDescriptor &made = begin(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(operation.x));
    made.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(operation.y));
    end(made);
  }

  void add(const CudnnGraph::Convolution &operation) {
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

  Status state;
};

/// Whether an engine computes as the graph asks: the same bits every time, and f32 as f32.
bool isWanted(const CudnnDescriptor &configuration, const CudnnGraph &asked) {
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
  return std::none_of(notes, notes + found, [&](cudnnBackendNumericalNote_t note) {
    return (asked.isDeterministic && note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           (asked.isF32 &&
            (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
  });
}

} // namespace

void CudnnPlan::place(const CudnnGraph &graph) {
  for (size_t tensor = 0; tensor < graph.tensors.size(); ++tensor) {
    const CudnnGraph::Tensor &each = graph.tensors[tensor];
    const int64_t number = numberOf(tensor);
    switch (each.place) {
    case CudnnGraph::Place::Operand:
      operands.push_back(number);
      break;
    case CudnnGraph::Place::Workspace:
      scratchTensors.emplace_back(number, scratch);
      scratch += scratchBytes(each.layout);
      break;
    case CudnnGraph::Place::Constant:
      constants.emplace_back(number, each.value);
      break;
    case CudnnGraph::Place::Registers:
      break;
    }
  }
}

Result<std::unique_ptr<CudnnPlan>> CudnnPlan::make(const CudnnGraph &asked, cudnnHandle_t handle) {
  Descriptors made(asked);
  TESSERA_RETURN_IF_ERROR(made.status());
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> list;
  for (const CudnnDescriptor &operation : made.operations)
    list.push_back(operation.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(list.size()),
            list.data());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  TESSERA_RETURN_IF_ERROR(graph.finalize());
  std::string reason =
      std::string("cuDNN has no kernel for it") + (asked.isDeterministic ? " that gives the same bits every time" : "");
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
      if (!isWanted(configurations[index], asked))
        continue;
      CudnnDescriptor chosen(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      chosen.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
      chosen.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configurations[index]);
      int64_t bytes = 0, found = 0;
      if (Status finalized = chosen.finalize(); !finalized.isOk()) {
        reason = finalized.message();
        continue;
      }
      TESSERA_RETURN_IF_ERROR(
          cudnnCheck("workspace", cudnnBackendGetAttribute(chosen.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                           CUDNN_TYPE_INT64, 1, &found, &bytes)));
      std::unique_ptr<CudnnPlan> plan(new CudnnPlan(std::move(chosen), handle));
      plan->libraryBytes = static_cast<size_t>(bytes);
      plan->place(asked);
      for (std::vector<CudnnDescriptor> *list : {&made.tensors, &made.parts, &made.operations, &configurations})
        for (CudnnDescriptor &part : *list)
          plan->parts.push_back(std::move(part));
      plan->parts.push_back(std::move(graph));
      return plan;
    }
  }
  return TESSERA_ERROR(Unsupported, reason);
}

} // namespace tessera::cuda
