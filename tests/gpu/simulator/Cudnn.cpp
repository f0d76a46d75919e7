//===- Cudnn.cpp - the graphs of cuDNN, simulated ------------------------------===//
//
// Graphs of pointwise operations, reductions, products, reshapes and convolutions are evaluated literally. Of each
// graph two engines are offered; the first one does not give the same bits every time, and must not be used.
//
//===----------------------------------------------------------------------===//

#include "CudnnProgram.h"

#include <algorithm>
#include <cstring>

using namespace tessera::sim;

#define TESSERA_DNN extern "C" TESSERA_SIM_API

static Simulator &sim() { return Simulator::get(); }

namespace {

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool isFinal = false;
  std::map<int, std::vector<std::byte>> values;
  std::shared_ptr<Program> program; ///< of a graph, and of what is made of it
  int engine = 0;

  template <typename T> std::vector<T> list(int attribute) const {
    auto found = values.find(attribute);
    std::vector<T> made(found == values.end() ? 0 : found->second.size() / sizeof(T));
    if (!made.empty())
      std::memcpy(made.data(), found->second.data(), made.size() * sizeof(T));
    return made;
  }
  template <typename T> T get(int attribute, T otherwise = T()) const {
    std::vector<T> all = list<T>(attribute);
    return all.empty() ? otherwise : all[0];
  }
};

std::map<const void *, std::unique_ptr<Descriptor>> descriptors;
struct Handle {
  CUstream stream = nullptr;
};
std::set<Handle *> handles;
thread_local std::string lastError;

Descriptor *find(const void *handle, const char *call) {
  auto found = descriptors.find(handle);
  if (found != descriptors.end())
    return found->second.get();
  sim().report(std::string(call) + ": the descriptor does not exist");
  return nullptr;
}

cudnnStatus_t refuse(cudnnStatus_t status, const std::string &why) {
  lastError = why;
  return status;
}

size_t widthOf(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_DOUBLE:
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

GraphTensor tensorOf(const Descriptor &descriptor) {
  GraphTensor made;
  made.id = descriptor.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  made.type = descriptor.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  made.dims = descriptor.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  made.strides = descriptor.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  made.alignment = descriptor.get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  made.isVirtual = descriptor.get<uint8_t>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
  made.isByValue = descriptor.get<uint8_t>(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
  return made;
}

/// Throws std::runtime_error where the graph is not one that is simulated.
class Reader {
public:
  explicit Reader(Program &program) : program(program) {}

  void read(const Descriptor &from) {
    using Kind = GraphOperation::Kind;
    GraphOperation made{Kind::Pointwise, {}, {}, -1, {}, 0, {}, {}, {}, {}};
    switch (from.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
      const Descriptor &how = part(from, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
      made.mode = how.get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
      made.axis = how.get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
      for (int input : {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                        CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
        if (from.values.count(input))
          made.inputs.push_back(tensor(from, input));
      made.output = tensor(from, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
      break;
    }
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      made.kind = Kind::Reduce;
      made.reduction =
          part(from, CUDNN_ATTR_OPERATION_REDUCTION_DESC).get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
      made.inputs = {tensor(from, CUDNN_ATTR_OPERATION_REDUCTION_XDESC)};
      made.output = tensor(from, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
      break;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      made.kind = Kind::Multiply;
      made.inputs = {tensor(from, CUDNN_ATTR_OPERATION_MATMUL_ADESC), tensor(from, CUDNN_ATTR_OPERATION_MATMUL_BDESC)};
      made.output = tensor(from, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
      break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      made.kind = Kind::Reshape;
      made.inputs = {tensor(from, CUDNN_ATTR_OPERATION_RESHAPE_XDESC)};
      made.output = tensor(from, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      made.kind = Kind::Convolve;
      convolution(part(from, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC), made);
      made.inputs = {tensor(from, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
                     tensor(from, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W)};
      made.output = tensor(from, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      made.kind = Kind::ConvolveInputGrad;
      convolution(part(from, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC), made);
      made.inputs = {tensor(from, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY),
                     tensor(from, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W)};
      made.output = tensor(from, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      made.kind = Kind::ConvolveWeightGrad;
      convolution(part(from, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC), made);
      made.inputs = {tensor(from, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
                     tensor(from, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY)};
      made.output = tensor(from, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
      break;
    default:
      throw std::runtime_error("an operation that is not simulated");
    }
    program.operations.push_back(std::move(made));
  }

private:
  static const Descriptor &part(const Descriptor &of, int attribute) {
    auto found = descriptors.find(of.get<void *>(attribute));
    if (found == descriptors.end() || !found->second->isFinal)
      throw std::runtime_error("a part of the graph is missing, or not finalized");
    return *found->second;
  }
  int64_t tensor(const Descriptor &of, int attribute) {
    GraphTensor read = tensorOf(part(of, attribute));
    if (read.dims.empty() || read.dims.size() != read.strides.size())
      throw std::runtime_error("a tensor without dimensions");
    program.tensors[read.id] = read;
    return read.id;
  }
  static void convolution(const Descriptor &from, GraphOperation &made) {
    made.strides = from.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    made.dilations = from.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    made.before = from.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    made.after = from.list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    if (from.get<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != 2 || made.strides.size() != 2)
      throw std::runtime_error("a convolution that is not over two dimensions");
  }

  Program &program;
};

constexpr int64_t workspaceBytes = 4096;

} // namespace

TESSERA_DNN size_t cudnnGetVersion() { return CUDNN_VERSION; }
TESSERA_DNN const char *cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS           ? "CUDNN_STATUS_SUCCESS"
         : status == CUDNN_STATUS_NOT_SUPPORTED   ? "CUDNN_STATUS_NOT_SUPPORTED"
         : status == CUDNN_STATUS_NOT_INITIALIZED ? "CUDNN_STATUS_NOT_INITIALIZED"
                                                  : "CUDNN_STATUS_BAD_PARAM";
}
TESSERA_DNN void cudnnGetLastErrorString(char *text, size_t bytes) {
  std::snprintf(text, bytes, "%s", lastError.c_str());
}

TESSERA_DNN cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  Lock lock(sim().mutex);
  if (!sim().current())
    return CUDNN_STATUS_NOT_INITIALIZED;
  auto *made = new Handle;
  handles.insert(made);
  ++sim().handles["cuDNN handle"];
  *handle = reinterpret_cast<cudnnHandle_t>(made);
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  Lock lock(sim().mutex);
  if (!handles.erase(reinterpret_cast<Handle *>(handle)))
    return CUDNN_STATUS_BAD_PARAM;
  --sim().handles["cuDNN handle"];
  delete reinterpret_cast<Handle *>(handle);
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  Lock lock(sim().mutex);
  if (!handles.count(reinterpret_cast<Handle *>(handle)))
    return CUDNN_STATUS_BAD_PARAM;
  reinterpret_cast<Handle *>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

TESSERA_DNN cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                       cudnnBackendDescriptor_t *made) {
  Lock lock(sim().mutex);
  auto descriptor = std::make_unique<Descriptor>();
  descriptor->type = type;
  *made = descriptor.get();
  ++sim().handles["cuDNN descriptor"];
  descriptors[*made] = std::move(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  Lock lock(sim().mutex);
  if (!find(descriptor, "cudnnBackendDestroyDescriptor"))
    return CUDNN_STATUS_BAD_PARAM;
  --sim().handles["cuDNN descriptor"];
  descriptors.erase(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t type, int64_t count,
                                                   const void *values) {
  Lock lock(sim().mutex);
  Descriptor *descriptor = find(handle, "cudnnBackendSetAttribute");
  if (!descriptor || descriptor->isFinal || count < 0)
    return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized");
  auto *bytes = static_cast<const std::byte *>(values);
  descriptor->values[name].assign(bytes, bytes + static_cast<size_t>(count) * widthOf(type));
  return CUDNN_STATUS_SUCCESS;
}

TESSERA_DNN cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t, int64_t wanted, int64_t *found,
                                                   void *values) {
  Lock lock(sim().mutex);
  Descriptor *descriptor = find(handle, "cudnnBackendGetAttribute");
  if (!descriptor)
    return CUDNN_STATUS_BAD_PARAM;
  auto *made = static_cast<cudnnBackendDescriptor_t *>(values);
  switch (name) {
  case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    *found = wanted == 0 ? 2 : std::min<int64_t>(2, wanted);
    for (int64_t index = 0; index < wanted && index < 2; ++index) {
      Descriptor *configuration = find(made[index], "cudnnBackendGetAttribute");
      if (!configuration || configuration->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
        return CUDNN_STATUS_BAD_PARAM;
      configuration->program = descriptor->program;
      configuration->engine = static_cast<int>(index);
      configuration->isFinal = true;
    }
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_ENGINECFG_ENGINE: {
    Descriptor *engine = find(*made, "cudnnBackendGetAttribute");
    if (!engine || engine->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
      return CUDNN_STATUS_BAD_PARAM;
    engine->engine = descriptor->engine;
    *found = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
    *found = descriptor->engine == 0 ? 1 : 0;
    if (*found && wanted > 0)
      *static_cast<cudnnBackendNumericalNote_t *>(values) = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    *found = 1;
    *static_cast<int64_t *>(values) = workspaceBytes;
    return CUDNN_STATUS_SUCCESS;
  default:
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "an attribute that is not simulated");
  }
}

TESSERA_DNN cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  Lock lock(sim().mutex);
  Descriptor *descriptor = find(handle, "cudnnBackendFinalize");
  if (!descriptor)
    return CUDNN_STATUS_BAD_PARAM;
  auto from = [&](int attribute) { return find(descriptor->get<void *>(attribute), "cudnnBackendFinalize"); };
  if (descriptor->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    if (sim().failureAt("cudnn"))
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no graph is supported, as asked for");
    descriptor->program = std::make_shared<Program>();
    Reader reader(*descriptor->program);
    try {
      for (void *operation : descriptor->list<void *>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
        Descriptor *one = find(operation, "cudnnBackendFinalize");
        if (!one || !one->isFinal)
          return refuse(CUDNN_STATUS_BAD_PARAM, "an operation is missing");
        reader.read(*one);
      }
    } catch (const std::runtime_error &error) {
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, error.what());
    }
  } else if (descriptor->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
    Descriptor *graph = from(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    if (!graph || !graph->isFinal)
      return CUDNN_STATUS_BAD_PARAM;
    descriptor->program = graph->program;
  } else if (descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    Descriptor *configuration = from(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (!configuration || !configuration->program)
      return CUDNN_STATUS_BAD_PARAM;
    if (configuration->engine == 0)
      sim().report("cuDNN: a plan of an engine that does not give the same bits every time");
    descriptor->program = configuration->program;
  }
  descriptor->isFinal = true;
  return CUDNN_STATUS_SUCCESS;
}

TESSERA_DNN cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t planHandle,
                                              cudnnBackendDescriptor_t packHandle) {
  Lock lock(sim().mutex);
  Descriptor *plan = find(planHandle, "cudnnBackendExecute"), *pack = find(packHandle, "cudnnBackendExecute");
  if (!plan || !pack || !plan->isFinal || !pack->isFinal || !handles.count(reinterpret_cast<Handle *>(handle)))
    return refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor is not finalized");
  Stream *stream = sim().stream(reinterpret_cast<Handle *>(handle)->stream, "cudnnBackendExecute");
  std::vector<int64_t> ids = pack->list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto addresses = pack->list<uint64_t>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto workspace = pack->get<uint64_t>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (!stream || ids.size() != addresses.size() || workspace % 16 != 0)
    return refuse(CUDNN_STATUS_BAD_PARAM, "pointers that do not fit, or a workspace that is not aligned");
  std::map<int64_t, uint64_t> pointers;
  std::map<int64_t, float> values;
  for (size_t index = 0; index < ids.size(); ++index) {
    auto found = plan->program->tensors.find(ids[index]);
    if (found != plan->program->tensors.end() && found->second.isByValue)
      std::memcpy(&values[ids[index]], reinterpret_cast<void *>(addresses[index]), sizeof(float));
    else
      pointers[ids[index]] = addresses[index];
  }
  sim().count("cuDNN graphs");
  CUresult result = sim().submit(*stream, [=, program = plan->program](Gpu &gpu) {
    std::memset(gpu.resolve(workspace, workspaceBytes, "the workspace of cuDNN"), 0x7f, workspaceBytes);
    evaluate(*program, pointers, values, gpu);
  });
  return result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
