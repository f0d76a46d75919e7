//===- Verify.cpp - checks a program's meaning -----------------------------===//
//
// Memory, code and the interface of the step; instructions are checked in VerifyInstructions.cpp. Values are checked
// before they enter any arithmetic, and arithmetic is 128 bits wide.
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Verify.h"

#include "runtime/artifact/VerifyContext.h"

#include <algorithm>
#include <cmath>

namespace tessera {

using artifact::DataType;

std::string toString(const std::vector<int64_t> &values) {
  std::string text = "[";
  for (size_t index = 0; index < values.size(); ++index)
    text += (index ? ", " : "") + std::to_string(values[index]);
  return text + "]";
}

static Status bad(const std::string &what, const std::string &why) {
  return TESSERA_ERROR(DataLoss, what + ": " + why);
}

template <typename Enum> static bool isKnown(Enum value) { return value >= Enum::MIN && value <= Enum::MAX; }

Status VerifyContext::verifyGroups() {
  for (uint32_t group = 0; group < sizeOf(program.groups()); ++group) {
    std::vector<std::string> axes;
    for (const flatbuffers::String *axis : *program.groups()->Get(group)->axes()) {
      std::string name = axis->str(), what = "group " + std::to_string(group);
      if (std::find(axes.begin(), axes.end(), name) != axes.end())
        return bad(what, "axis '" + name + "' occurs twice");
      if (std::none_of(mesh.axes.begin(), mesh.axes.end(), [&](const Mesh::Axis &known) { return known.name == name; }))
        return bad(what, "the mesh has no axis '" + name + "'");
      axes.push_back(name);
    }
    groupSizes.push_back(mesh.groupSize(axes));
  }
  return Status::ok();
}

Status VerifyContext::checkGroup(int64_t group, const std::string &what) const {
  if (group < -1 || group >= static_cast<int64_t>(groupSizes.size()))
    return bad(what, "group " + std::to_string(group) + " of " + std::to_string(groupSizes.size()));
  return Status::ok();
}

/// Bytes from the buffer's first element to the end of its last, with the farthest rank and iteration.
static WideInt spanBytes(const artifact::Buffer &buffer, int64_t groupSize, int64_t iterations) {
  WideInt last = 0, width = static_cast<WideInt>(byteWidth(buffer.dtype()));
  for (uint32_t dim = 0; dim < sizeOf(buffer.shape()); ++dim)
    last += WideInt(buffer.shape()->Get(dim) - 1) * buffer.strides()->Get(dim);
  return (last + 1) * width + WideInt(groupSize - 1) * buffer.rank_stride() +
         WideInt(iterations - 1) * buffer.iteration_stride();
}

Status VerifyContext::verifyBuffer(uint32_t index) const {
  const artifact::Buffer &buffer = *program.buffers()->Get(index);
  std::string what = "buffer " + std::to_string(index);
  if (buffer.arena() >= sizeOf(program.arenas()))
    return bad(what, "arena " + std::to_string(buffer.arena()) + " of " + std::to_string(sizeOf(program.arenas())));
  if (!isKnown(buffer.dtype()))
    return bad(what, "unknown type " + std::to_string(static_cast<int>(buffer.dtype())));
  if (!isAligned(buffer.shape()) || !isAligned(buffer.strides()))
    return bad(what, "misaligned shape or strides");
  uint32_t rank = sizeOf(buffer.shape());
  if (rank != sizeOf(buffer.strides()) || rank > maxDimensions)
    return bad(what, std::to_string(rank) + " dimensions and " + std::to_string(sizeOf(buffer.strides())) + " strides");
  WideInt elements = 1;
  for (uint32_t dim = 0; dim < rank; ++dim) {
    int64_t size = buffer.shape()->Get(dim), stride = buffer.strides()->Get(dim);
    if (size < 1 || size > maxElements || (elements *= size) > maxElements)
      return bad(what, "dimension " + std::to_string(dim) + " has size " + std::to_string(size));
    if (stride < 0 || stride > maxElements)
      return bad(what, "dimension " + std::to_string(dim) + " has stride " + std::to_string(stride));
  }
  TESSERA_RETURN_IF_ERROR(checkGroup(buffer.rank_group(), what));
  int64_t width = static_cast<int64_t>(byteWidth(buffer.dtype()));
  for (int64_t stride : {buffer.iteration_stride(), buffer.rank_stride()})
    if (stride < 0 || stride > maxElements || stride % width != 0)
      return bad(what, "stride of " + std::to_string(stride) + " bytes between iterations or ranks");
  if (buffer.offset() % width != 0)
    return bad(what, "offset " + std::to_string(buffer.offset()) + " is not a multiple of the element's " +
                         std::to_string(width) + " bytes");
  uint64_t arenaBytes = program.arenas()->Get(buffer.arena())->bytes();
  if (WideInt(buffer.offset()) + spanBytes(buffer, groupSize(buffer.rank_group()), 1) > WideInt(arenaBytes))
    return bad(what, "reaches beyond its arena of " + std::to_string(arenaBytes) + " bytes");
  return Status::ok();
}

Status VerifyContext::useBuffer(uint32_t index, const std::string &what, int64_t iterations) const {
  if (index >= sizeOf(program.buffers()))
    return bad(what, "buffer " + std::to_string(index) + " of " + std::to_string(sizeOf(program.buffers())));
  const artifact::Buffer &buffer = *program.buffers()->Get(index);
  uint64_t arenaBytes = program.arenas()->Get(buffer.arena())->bytes();
  if (WideInt(buffer.offset()) + spanBytes(buffer, groupSize(buffer.rank_group()), iterations) > WideInt(arenaBytes))
    return bad(what, "buffer " + std::to_string(index) + " leaves its arena within " + std::to_string(iterations) +
                         " iterations");
  return Status::ok();
}

TensorView VerifyContext::view(uint32_t index) const { return viewOf(*program.buffers()->Get(index)); }

static Status verifyMemory(const VerifyContext &context) {
  const artifact::Program &program = context.program;
  constexpr uint64_t maxArenaBytes = uint64_t{1} << 46;
  for (uint32_t index = 0; index < sizeOf(program.arenas()); ++index) {
    const artifact::Arena &arena = *program.arenas()->Get(index);
    std::string what = "arena " + std::to_string(index);
    if (arena.bytes() > maxArenaBytes)
      return bad(what, "size " + std::to_string(arena.bytes()) + " bytes");
    if (!isKnown(arena.kind()))
      return bad(what, "unknown kind " + std::to_string(static_cast<int>(arena.kind())));
  }
  for (uint32_t index = 0; index < sizeOf(program.slots()); ++index) {
    const artifact::Slot &slot = *program.slots()->Get(index);
    std::string what = "slot " + std::to_string(index);
    if (slot.arena() >= sizeOf(program.arenas()))
      return bad(what, "arena " + std::to_string(slot.arena()) + " of " + std::to_string(sizeOf(program.arenas())));
    if (WideInt(slot.offset()) + slot.bytes() > WideInt(program.arenas()->Get(slot.arena())->bytes()))
      return bad(what, "reaches beyond its arena");
    if (!isKnown(slot.memory_class()))
      return bad(what, "unknown class " + std::to_string(static_cast<int>(slot.memory_class())));
    if (slot.first_instruction() > slot.last_instruction())
      return bad(what, "its life ends before it begins");
  }
  for (uint32_t index = 0; index < sizeOf(program.buffers()); ++index)
    TESSERA_RETURN_IF_ERROR(context.verifyBuffer(index));
  return Status::ok();
}

/// A kernel for a GPU has a size of its launch, one for the CPU has none.
static Status verifyKernel(const artifact::Program &program, const artifact::Kernel &kernel, bool isGpu) {
  std::string what = "kernel '" + kernel.symbol()->str() + "'";
  if (kernel.code_object() >= sizeOf(program.code_objects()))
    return bad(what, "its code object does not exist");
  if (!isGpu) {
    if (kernel.blocks() || kernel.threads_x() || kernel.threads_y() || kernel.ptx() != -1)
      return bad(what, "has a launch size or PTX, but the target is a CPU");
    return Status::ok();
  }
  constexpr uint64_t maxBlocks = (uint64_t{1} << 31) - 1, maxThreads = 1024; // CUDA's own limits
  uint64_t threads = uint64_t{kernel.threads_x()} * kernel.threads_y();
  if (kernel.blocks() < 1 || kernel.blocks() > maxBlocks || threads < 1 || threads > maxThreads)
    return bad(what, "is launched as " + std::to_string(kernel.blocks()) + " blocks of " +
                         std::to_string(kernel.threads_x()) + " x " + std::to_string(kernel.threads_y()) + " threads");
  if (kernel.ptx() < -1 || kernel.ptx() >= static_cast<int64_t>(sizeOf(program.code_objects())))
    return bad(what, "its PTX does not exist");
  if (kernel.ptx() >= 0 && program.code_objects()->Get(kernel.ptx())->format() != artifact::CodeFormat::Ptx)
    return bad(what, "its PTX is none");
  return Status::ok();
}

static Status verifyCode(const artifact::Program &program) {
  std::string target = program.target()->str();
  bool isGpu = target.compare(0, 3, "sm_") == 0;
  for (uint32_t index = 0; index < sizeOf(program.code_objects()); ++index) {
    const artifact::CodeObject &object = *program.code_objects()->Get(index);
    std::string what = "code object " + std::to_string(index);
    if (!isKnown(object.format()))
      return bad(what, "unknown format");
    if (isGpu == (object.format() == artifact::CodeFormat::SharedObject))
      return bad(what, std::string("is ") + artifact::EnumNameCodeFormat(object.format()) + ", the target is '" +
                           target + "'");
    if (object.data()->size() == 0)
      return bad(what, "is empty");
    if (object.format() == artifact::CodeFormat::Ptx && object.data()->Get(object.data()->size() - 1) != 0)
      return bad(what, "is PTX without a zero at its end");
  }
  for (uint32_t index = 0; index < sizeOf(program.kernels()); ++index)
    TESSERA_RETURN_IF_ERROR(verifyKernel(program, *program.kernels()->Get(index), isGpu));
  return Status::ok();
}

/// Checks that the buffer holds `elements` elements of a type, row-major.
static Status expectDense(const VerifyContext &context, uint32_t buffer, DataType dtype, WideInt elements,
                          const std::string &what) {
  TESSERA_RETURN_IF_ERROR(context.useBuffer(buffer, what, 1));
  TensorView view = context.view(buffer);
  if (view.dtype != dtype)
    return bad(what, std::string("its buffer is of type ") + artifact::EnumNameDataType(view.dtype) + ", expected " +
                         artifact::EnumNameDataType(dtype));
  if (WideInt(view.numElements()) != elements || !view.isContiguous())
    return bad(what, "its buffer of shape " + toString(view.shape) + " does not hold this rank's part");
  return Status::ok();
}

static Status verifyState(const VerifyContext &context) {
  const artifact::Program &program = context.program;
  for (uint32_t index = 0; index < sizeOf(program.state()); ++index) {
    const artifact::StateTensor &state = *program.state()->Get(index);
    std::string what = "state '" + state.name()->str() + "'";
    if (!isKnown(state.dtype()) || !isKnown(state.role()))
      return bad(what, "unknown type or role");
    if (state.elements() < 1 || state.elements() > maxElements)
      return bad(what, std::to_string(state.elements()) + " elements");
    TESSERA_RETURN_IF_ERROR(context.checkGroup(state.shard_group(), what));
    int64_t parts = context.groupSize(state.shard_group());
    if (state.elements() % parts != 0)
      return bad(what, std::to_string(state.elements()) + " elements do not divide by " + std::to_string(parts));
    TESSERA_RETURN_IF_ERROR(expectDense(context, state.buffer(), state.dtype(), state.elements() / parts, what));
    for (uint32_t number = 0; number < sizeOf(state.segments()); ++number) {
      const artifact::Segment &segment = *state.segments()->Get(number);
      if (!isAligned(segment.shape()))
        return bad(what + ", parameter '" + segment.name()->str() + "'", "misaligned shape");
      WideInt elements = 1;
      for (uint32_t dim = 0; dim < sizeOf(segment.shape()); ++dim) {
        int64_t size = segment.shape()->Get(dim);
        if (size < 1 || size > maxElements || (elements *= size) > maxElements)
          return bad(what + ", parameter '" + segment.name()->str() + "'",
                     "a dimension of size " + std::to_string(size));
      }
      if (segment.offset() < 0 || WideInt(segment.offset()) + elements > WideInt(state.elements()))
        return bad(what + ", parameter '" + segment.name()->str() + "'", "reaches beyond the unit");
      if (segment.init() && !isKnown(segment.init()->kind()))
        return bad(what + ", parameter '" + segment.name()->str() + "'", "unknown initialiser");
    }
  }
  return Status::ok();
}

static Status verifyDerived(const VerifyContext &context) {
  const artifact::Program &program = context.program;
  for (uint32_t index = 0; index < sizeOf(program.derived()); ++index) {
    const artifact::DerivedTensor &derived = *program.derived()->Get(index);
    std::string what = "derived tensor " + std::to_string(index);
    if (derived.state() >= sizeOf(program.state()))
      return bad(what, "state " + std::to_string(derived.state()) + " does not exist");
    const artifact::StateTensor &state = *program.state()->Get(derived.state());
    if (state.dtype() != DataType::F32)
      return bad(what, std::string("is made from ") + artifact::EnumNameDataType(state.dtype()) + ", expected F32");
    int64_t elements = state.elements() / context.groupSize(state.shard_group());
    TESSERA_RETURN_IF_ERROR(expectDense(context, derived.buffer(), DataType::BF16, elements, what));
  }
  return Status::ok();
}

/// One role for each dimension; samples once at most, micro-batches of samples only and in front.
static Status verifyDims(const artifact::BatchTensor &entry, const std::string &what) {
  if (sizeOf(entry.dims()) != sizeOf(entry.global_shape()))
    return bad(what, std::to_string(sizeOf(entry.dims())) + " roles for " +
                         std::to_string(sizeOf(entry.global_shape())) + " dimensions");
  int64_t samples = 0, microBatches = 0;
  for (uint32_t dim = 0; dim < sizeOf(entry.dims()); ++dim) {
    const auto role = entry.dims()->GetEnum<artifact::DimRole>(dim);
    if (!isKnown(role) || (role == artifact::DimRole::MicroBatch && dim > 0))
      return bad(what, "dimension " + std::to_string(dim) + " has no role that it can have");
    samples += role == artifact::DimRole::Sample;
    microBatches += role == artifact::DimRole::MicroBatch;
  }
  if (samples > 1 || microBatches > samples)
    return bad(what, std::to_string(samples) + " dimensions count samples and " + std::to_string(microBatches) +
                         " micro-batches");
  return Status::ok();
}

/// Returns into how many parts the tensor is split.
static Result<int64_t> verifySplits(const VerifyContext &context, const artifact::BatchTensor &entry,
                                    const std::string &what) {
  WideInt parts = 1;
  std::vector<bool> isSplit(sizeOf(entry.dims()));
  for (uint32_t index = 0; index < sizeOf(entry.splits()); ++index) {
    const artifact::DimSplit &split = *entry.splits()->Get(index);
    if (split.dim() >= isSplit.size() || isSplit[split.dim()] ||
        entry.dims()->GetEnum<artifact::DimRole>(split.dim()) == artifact::DimRole::MicroBatch)
      return bad(what, "dimension " + std::to_string(split.dim()) + " cannot be split, or is already");
    isSplit[split.dim()] = true;
    TESSERA_RETURN_IF_ERROR(context.checkGroup(split.group(), what));
    const int64_t ranks = context.groupSize(split.group());
    if (entry.global_shape()->Get(split.dim()) % ranks != 0)
      return bad(what, "its dimension " + std::to_string(split.dim()) + " does not divide by " + std::to_string(ranks));
    parts *= ranks;
  }
  return static_cast<int64_t>(parts);
}

static Status verifyBatch(const VerifyContext &context) {
  const artifact::Program &program = context.program;
  for (uint32_t index = 0; index < sizeOf(program.batch()); ++index) {
    const artifact::BatchTensor &entry = *program.batch()->Get(index);
    std::string what = "batch entry '" + entry.name()->str() + "'";
    if (!isKnown(entry.dtype()) || !isKnown(entry.role()))
      return bad(what, "unknown type or role");
    if (!isAligned(entry.global_shape()))
      return bad(what, "misaligned shape");
    int64_t rank = sizeOf(entry.global_shape());
    if (rank > maxDimensions)
      return bad(what, std::to_string(rank) + " dimensions");
    TESSERA_RETURN_IF_ERROR(verifyDims(entry, what));
    WideInt elements = 1;
    for (int64_t size : *entry.global_shape())
      if (size < 1 || size > maxElements || (elements *= size) > maxElements)
        return bad(what, "a dimension of size " + std::to_string(size));
    TESSERA_ASSIGN_OR_RETURN(int64_t parts, verifySplits(context, entry, what));
    TESSERA_RETURN_IF_ERROR(expectDense(context, entry.buffer(), entry.dtype(), elements / parts, what));
  }
  return Status::ok();
}

static Status verifyScalars(const VerifyContext &context, uint32_t numInstructions) {
  const artifact::Program &program = context.program;
  for (uint32_t index = 0; index < sizeOf(program.hyper()); ++index) {
    const artifact::HyperScalar &hyper = *program.hyper()->Get(index);
    DataType type = hyper.name()->string_view() == "seed" ? DataType::I64 : DataType::F32;
    TESSERA_RETURN_IF_ERROR(expectDense(context, hyper.buffer(), type, 1, "scalar '" + hyper.name()->str() + "'"));
  }
  for (uint32_t index = 0; index < sizeOf(program.results()); ++index) {
    const artifact::ResultTensor &result = *program.results()->Get(index);
    std::string what = "result '" + result.name()->str() + "'";
    if (!isKnown(result.role()))
      return bad(what, "unknown role");
    TESSERA_RETURN_IF_ERROR(context.useBuffer(result.buffer(), what, 1));
    TensorView view = context.view(result.buffer());
    bool isNumber = view.dtype == DataType::F32 || view.dtype == DataType::F64 || view.dtype == DataType::I32 ||
                    view.dtype == DataType::I64;
    if (result.role() == artifact::ResultRole::IndexCheck) {
      if (view.dtype != DataType::I64 || !view.isContiguous() || !result.of())
        return bad(what, "is no list of indices of a table");
      continue;
    }
    if (result.role() != artifact::ResultRole::Output && (view.numElements() != 1 || !isNumber))
      return bad(what, "is not one number");
  }
  for (uint32_t index = 0; index < sizeOf(program.probes()); ++index) {
    const artifact::GradientProbe &probe = *program.probes()->Get(index);
    std::string what = "gradient probe " + std::to_string(index);
    if (probe.state() >= sizeOf(program.state()))
      return bad(what, "state " + std::to_string(probe.state()) + " does not exist");
    if (probe.instruction() >= numInstructions)
      return bad(what, "instruction " + std::to_string(probe.instruction()) + " of " + std::to_string(numInstructions));
    if (!std::isfinite(probe.scale()))
      return bad(what, "its scale is no number");
    TESSERA_RETURN_IF_ERROR(context.checkGroup(probe.shard_group(), what));
    const artifact::StateTensor &state = *program.state()->Get(probe.state());
    int64_t parts = context.groupSize(probe.shard_group());
    if (state.elements() % parts != 0)
      return bad(what, "the gradient does not divide by " + std::to_string(parts));
    TESSERA_RETURN_IF_ERROR(context.useBuffer(probe.buffer(), what, 1));
    const DataType dtype = context.view(probe.buffer()).dtype;
    if (dtype != DataType::F32 && dtype != DataType::F64 && dtype != DataType::F16 && dtype != DataType::BF16)
      return bad(what, std::string("its buffer is of type ") + artifact::EnumNameDataType(dtype) +
                           ", expected a floating-point type");
    TESSERA_RETURN_IF_ERROR(expectDense(context, probe.buffer(), dtype, state.elements() / parts, what));
  }
  return Status::ok();
}

Status verifyProgram(const artifact::Program &program, const Mesh &mesh) {
  VerifyContext context(program, mesh);
  TESSERA_RETURN_IF_ERROR(context.verifyGroups());
  TESSERA_RETURN_IF_ERROR(verifyMemory(context));
  TESSERA_RETURN_IF_ERROR(verifyCode(program));
  TESSERA_ASSIGN_OR_RETURN(uint32_t numInstructions, verifyInstructions(context));
  TESSERA_RETURN_IF_ERROR(verifyState(context));
  TESSERA_RETURN_IF_ERROR(verifyDerived(context));
  TESSERA_RETURN_IF_ERROR(verifyBatch(context));
  return verifyScalars(context, numInstructions);
}

} // namespace tessera
