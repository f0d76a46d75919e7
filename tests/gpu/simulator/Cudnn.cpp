//===- Cudnn.cpp - the graphs of cuDNN, simulated ------------------------------===//
//
// Graphs of pointwise operations, reductions, products, reshapes and convolutions are evaluated literally. Whatever is
// refused is told on stderr, and an error of the run: the backend asks only for what cuDNN takes. Of each graph several
// engines are offered, most of which must not be used.
//
//===----------------------------------------------------------------------===//

#include "CudnnDescriptor.h"

#include <algorithm>

using namespace tessera::sim;

#define TESSERA_DNN extern "C" TESSERA_SIM_API

namespace {

Descriptors descriptors;
struct Handle {
  Gpu *gpu = nullptr;
  CUstream stream = nullptr;
};
std::set<Handle *> handles;
thread_local std::string lastError;

Handle *known(void *handle) {
  auto found = handles.find(static_cast<Handle *>(handle));
  return found == handles.end() ? nullptr : *found;
}

Descriptor *find(const void *handle, const char *call) {
  auto found = descriptors.find(handle);
  if (found != descriptors.end())
    return found->second.get();
  sim().report(std::string(call) + ": the descriptor does not exist");
  return nullptr;
}

cudnnStatus_t refuse(cudnnStatus_t status, const std::string &why) {
  lastError = why;
  sim().report("cuDNN: " + why);
  return status;
}

/// Engines in the order in which heuristics name them; the backend must take the first that is as good as it asked for.
enum Engine { Unordered, ReducedSums, TensorCores, Unavailable, Plain };
/// What each mode of the heuristics offers. Convolutions have plain kernels only where a fallback is asked for.
std::vector<Engine> enginesOf(const Program &program, cudnnBackendHeurMode_t mode) {
  if (mode == CUDNN_HEUR_MODE_FALLBACK)
    return {Unordered, Plain};
  if (program.isConvolution())
    return {Unordered, ReducedSums, TensorCores};
  return {Unordered, ReducedSums, Unavailable, TensorCores, Plain};
}
std::vector<cudnnBackendNumericalNote_t> notesOf(const Program &program, int engine) {
  if (program.isUnordered())
    return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  switch (engine) {
  case Unordered:
    return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  case ReducedSums:
    return {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
  case TensorCores:
    return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
  default:
    return {};
  }
}

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
  auto *made = new Handle{sim().current(), nullptr};
  handles.insert(made);
  ++sim().handles["cuDNN handle"];
  *handle = reinterpret_cast<cudnnHandle_t>(made);
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  Lock lock(sim().mutex);
  Handle *made = known(handle);
  if (!made)
    return refuse(CUDNN_STATUS_BAD_PARAM, "a handle does not exist");
  handles.erase(made);
  --sim().handles["cuDNN handle"];
  delete made;
  return CUDNN_STATUS_SUCCESS;
}
TESSERA_DNN cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  Lock lock(sim().mutex);
  Handle *made = known(handle);
  Stream *given = sim().stream(stream, "cudnnSetStream");
  if (!made || !given || given->gpu != made->gpu)
    return refuse(CUDNN_STATUS_BAD_PARAM, "a handle does not exist, or its stream is of another GPU");
  made->stream = stream;
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
  if (!descriptor || descriptor->isFinal || !values)
    return refuse(CUDNN_STATUS_BAD_PARAM, "an attribute is set of a descriptor that is finalized, or to nothing");
  try {
    size_t width = checkAttribute(descriptor->type, name, type, count);
    auto *bytes = static_cast<const std::byte *>(values);
    descriptor->values[name].assign(bytes, bytes + static_cast<size_t>(count) * width);
  } catch (const Refusal &refusal) {
    return refuse(refusal.status, refusal.why);
  }
  return CUDNN_STATUS_SUCCESS;
}

TESSERA_DNN cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t type, int64_t wanted, int64_t *found,
                                                   void *values) {
  Lock lock(sim().mutex);
  Descriptor *descriptor = find(handle, "cudnnBackendGetAttribute");
  if (!descriptor || !descriptor->isFinal)
    return refuse(CUDNN_STATUS_BAD_PARAM, "an attribute is asked of a descriptor that is not finalized");
  auto isAsked = [&](cudnnBackendDescriptorType_t of, int attribute, cudnnBackendAttributeType_t as) {
    return descriptor->type == of && name == attribute && type == as && (wanted == 0 || values);
  };
  /// Makes a descriptor of the caller's an engine, or a configuration of it.
  auto describe = [&](size_t at, cudnnBackendDescriptorType_t as, int engine) {
    Descriptor *made = find(static_cast<cudnnBackendDescriptor_t *>(values)[at], "cudnnBackendGetAttribute");
    if (!made || made->type != as)
      return false;
    made->program = descriptor->program;
    made->engine = engine;
    made->isFinal = true;
    return true;
  };
  if (isAsked(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR)) {
    std::vector<Engine> engines = enginesOf(
        *descriptor->program, descriptor->get<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A));
    auto count = static_cast<int64_t>(engines.size());
    *found = wanted == 0 ? count : std::min(count, wanted);
    for (int64_t index = 0; index < wanted && index < count; ++index)
      if (!describe(static_cast<size_t>(index), CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, engines[index]))
        return refuse(CUDNN_STATUS_BAD_PARAM, "results of heuristics are no configurations of engines");
    return CUDNN_STATUS_SUCCESS;
  }
  if (isAsked(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR)) {
    *found = 1;
    return wanted == 0 || describe(0, CUDNN_BACKEND_ENGINE_DESCRIPTOR, descriptor->engine)
               ? CUDNN_STATUS_SUCCESS
               : refuse(CUDNN_STATUS_BAD_PARAM, "what is asked for an engine is none");
  }
  if (isAsked(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE)) {
    std::vector<cudnnBackendNumericalNote_t> notes = notesOf(*descriptor->program, descriptor->engine);
    *found = static_cast<int64_t>(notes.size());
    std::copy_n(notes.begin(), std::min(*found, wanted), static_cast<cudnnBackendNumericalNote_t *>(values));
    return CUDNN_STATUS_SUCCESS;
  }
  if (isAsked(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64)) {
    *found = 1;
    if (wanted > 0)
      *static_cast<int64_t *>(values) = descriptor->program->workspaceBytes();
    return CUDNN_STATUS_SUCCESS;
  }
  return refuse(CUDNN_STATUS_NOT_SUPPORTED, "attribute " + std::to_string(name) + " is not simulated");
}

/// Of what is made of another descriptor.
static void finalize(Descriptor &descriptor) {
  switch (descriptor.type) {
  case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    if (!known(descriptor.get<void *>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE)))
      throw Refusal{CUDNN_STATUS_BAD_PARAM, "a graph's handle does not exist"};
    descriptor.program = std::make_shared<Program>(readGraph(descriptor, descriptors));
    return;
  case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    descriptor.program = descriptors.at(descriptor.get<void *>(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH))->program;
    return;
  case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
    const Descriptor &from = *descriptors.at(descriptor.get<void *>(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
    if (!known(descriptor.get<void *>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE)))
      throw Refusal{CUDNN_STATUS_BAD_PARAM, "a plan's handle does not exist"};
    if ((from.engine == Unordered && !from.program->isUnordered()) || from.engine == ReducedSums ||
        (from.engine == TensorCores && from.program->isF32()))
      throw Refusal{CUDNN_STATUS_BAD_PARAM, "a plan of an engine that does not give the same bits every time, or is "
                                            "not as exact as its operands"};
    descriptor.program = from.program;
    descriptor.engine = from.engine;
    return;
  }
  default:
    return;
  }
}

TESSERA_DNN cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  Lock lock(sim().mutex);
  Descriptor *descriptor = find(handle, "cudnnBackendFinalize");
  if (!descriptor)
    return CUDNN_STATUS_BAD_PARAM;
  try {
    checkDescriptor(*descriptor, descriptors);
    finalize(*descriptor);
  } catch (const Refusal &refusal) {
    return refuse(refusal.status, refusal.why);
  }
  // What a caller must be ready for is no error of the run.
  if (descriptor->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && sim().failureAt("cudnn")) {
    lastError = "no graph is supported, as asked for";
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && descriptor->engine == Unavailable) {
    lastError = "this engine has no kernel for the graph";
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  descriptor->isFinal = true;
  if (descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    sim().count("cuDNN plans");
  return CUDNN_STATUS_SUCCESS;
}

TESSERA_DNN cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t planHandle,
                                              cudnnBackendDescriptor_t packHandle) {
  Lock lock(sim().mutex);
  Descriptor *plan = find(planHandle, "cudnnBackendExecute"), *pack = find(packHandle, "cudnnBackendExecute");
  Handle *made = known(handle);
  if (!plan || !pack || !plan->isFinal || !pack->isFinal || plan->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
      pack->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || !made ||
      plan->get<void *>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != made)
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "a plan is executed that is not finalized, without a pack, or by another handle");
  if (sim().current() != made->gpu)
    return refuse(CUDNN_STATUS_BAD_PARAM, "a plan is executed while another GPU is current");
  Stream *stream = sim().stream(made->stream, "cudnnBackendExecute");
  if (!stream)
    return CUDNN_STATUS_BAD_PARAM;
  auto ids = pack->list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto addresses = pack->list<uint64_t>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  Bindings bound;
  bound.workspace = pack->get<uint64_t>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  for (size_t index = 0; index < ids.size(); ++index) {
    auto found = plan->program->tensors.find(ids[index]);
    if (found == plan->program->tensors.end() || found->second.isVirtual)
      return refuse(CUDNN_STATUS_BAD_PARAM, "a pointer for tensor " + std::to_string(ids[index]) + ", which has none");
    if (found->second.isByValue)
      std::memcpy(&bound.values[ids[index]], reinterpret_cast<void *>(addresses[index]), sizeof(float));
    else if (!bound.pointers.emplace(ids[index], addresses[index]).second)
      return refuse(CUDNN_STATUS_BAD_PARAM, "two pointers for tensor " + std::to_string(ids[index]));
  }
  for (const auto &[id, one] : plan->program->tensors)
    if (!one.isVirtual && !bound.pointers.count(id) && !bound.values.count(id))
      return refuse(CUDNN_STATUS_BAD_PARAM, "no pointer for tensor " + std::to_string(id));
  sim().count("cuDNN graphs");
  if (plan->program->isConvolution())
    sim().count("cuDNN convolutions");
  CUresult result = sim().submit(*stream, [=, program = plan->program](Gpu &gpu) { evaluate(*program, bound, gpu); });
  return result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
