//===- Verify.cpp - checks a package's meaning -----------------------------===//
//
// Memory, code and the interface of the programs; instructions are checked in VerifyInstructions.cpp. Values are
// checked before they enter any arithmetic, and arithmetic is 128 bits wide.
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Verify.h"

#include "runtime/artifact/LearningRate.h"

#include "runtime/artifact/VerifyContext.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

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
  for (uint32_t group = 0; group < sizeOf(package.groups()); ++group) {
    std::vector<std::string> axes;
    for (const flatbuffers::String *axis : *package.groups()->Get(group)->axes()) {
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

WideInt iterationBytes(const artifact::Buffer &buffer, LoopCounts loops) {
  WideInt bytes = 0;
  for (size_t depth = 0; depth < std::min<size_t>(loops.size(), sizeOf(buffer.iteration_strides())); ++depth)
    bytes += WideInt(loops[depth] - 1) * buffer.iteration_strides()->Get(static_cast<uint32_t>(depth));
  return bytes;
}

/// Bytes from the buffer's first element to the end of its last, with the farthest rank and the last iterations.
static WideInt spanBytes(const artifact::Buffer &buffer, int64_t groupSize, LoopCounts loops) {
  WideInt last = 0, width = static_cast<WideInt>(byteWidth(buffer.dtype()));
  for (uint32_t dim = 0; dim < sizeOf(buffer.shape()); ++dim)
    last += WideInt(buffer.shape()->Get(dim) - 1) * buffer.strides()->Get(dim);
  return (last + 1) * width + WideInt(groupSize - 1) * buffer.rank_stride() + iterationBytes(buffer, loops);
}

Status VerifyContext::verifyBuffer(uint32_t index) const {
  const artifact::Buffer &buffer = *package.buffers()->Get(index);
  std::string what = "buffer " + std::to_string(index);
  if (buffer.arena() >= sizeOf(package.arenas()))
    return bad(what, "arena " + std::to_string(buffer.arena()) + " of " + std::to_string(sizeOf(package.arenas())));
  if (!isKnown(buffer.dtype()))
    return bad(what, "unknown type " + std::to_string(static_cast<int>(buffer.dtype())));
  if (!isAligned(buffer.shape()) || !isAligned(buffer.strides()) || !isAligned(buffer.iteration_strides()))
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
  if (sizeOf(buffer.iteration_strides()) > artifact::maxRepeatDepth)
    return bad(what, std::to_string(sizeOf(buffer.iteration_strides())) + " strides between iterations");
  std::vector<int64_t> steps = {buffer.rank_stride()};
  if (buffer.iteration_strides())
    steps.insert(steps.end(), buffer.iteration_strides()->begin(), buffer.iteration_strides()->end());
  for (int64_t stride : steps)
    if (stride < 0 || stride > maxElements || stride % width != 0)
      return bad(what, "stride of " + std::to_string(stride) + " bytes between iterations or ranks");
  if (buffer.offset() % width != 0)
    return bad(what, "offset " + std::to_string(buffer.offset()) + " is not a multiple of the element's " +
                         std::to_string(width) + " bytes");
  uint64_t arenaBytes = package.arenas()->Get(buffer.arena())->bytes();
  if (WideInt(buffer.offset()) + spanBytes(buffer, groupSize(buffer.rank_group()), {}) > WideInt(arenaBytes))
    return bad(what, "reaches beyond its arena of " + std::to_string(arenaBytes) + " bytes");
  return Status::ok();
}

Status VerifyContext::useBuffer(uint32_t index, const std::string &what, LoopCounts loops) const {
  if (index >= sizeOf(package.buffers()))
    return bad(what, "buffer " + std::to_string(index) + " of " + std::to_string(sizeOf(package.buffers())));
  const artifact::Buffer &buffer = *package.buffers()->Get(index);
  uint64_t arenaBytes = package.arenas()->Get(buffer.arena())->bytes();
  if (WideInt(buffer.offset()) + spanBytes(buffer, groupSize(buffer.rank_group()), loops) > WideInt(arenaBytes)) {
    std::string times;
    for (int64_t count : loops)
      times += (times.empty() ? "" : " x ") + std::to_string(count);
    return bad(what, "buffer " + std::to_string(index) + " leaves its arena within " + times + " iterations");
  }
  return Status::ok();
}

TensorView VerifyContext::view(uint32_t index) const { return viewOf(*package.buffers()->Get(index)); }

static Status verifyMemory(const VerifyContext &context) {
  const artifact::Package &package = context.package;
  constexpr uint64_t maxArenaBytes = uint64_t{1} << 46;
  for (uint32_t index = 0; index < sizeOf(package.arenas()); ++index) {
    const artifact::Arena &arena = *package.arenas()->Get(index);
    std::string what = "arena " + std::to_string(index);
    if (arena.bytes() > maxArenaBytes)
      return bad(what, "size " + std::to_string(arena.bytes()) + " bytes");
    if (!isKnown(arena.kind()))
      return bad(what, "unknown kind " + std::to_string(static_cast<int>(arena.kind())));
  }
  for (uint32_t index = 0; index < sizeOf(package.buffers()); ++index)
    TESSERA_RETURN_IF_ERROR(context.verifyBuffer(index));
  return Status::ok();
}

static Status verifySlots(const artifact::Package &package, const artifact::Program &program) {
  for (uint32_t index = 0; index < sizeOf(program.slots()); ++index) {
    const artifact::Slot &slot = *program.slots()->Get(index);
    std::string what = "slot " + std::to_string(index);
    if (slot.arena() >= sizeOf(package.arenas()))
      return bad(what, "arena " + std::to_string(slot.arena()) + " of " + std::to_string(sizeOf(package.arenas())));
    if (WideInt(slot.offset()) + slot.bytes() > WideInt(package.arenas()->Get(slot.arena())->bytes()))
      return bad(what, "reaches beyond its arena");
    if (!isKnown(slot.memory_class()))
      return bad(what, "unknown class " + std::to_string(static_cast<int>(slot.memory_class())));
    if (slot.first_instruction() > slot.last_instruction())
      return bad(what, "its life ends before it begins");
  }
  return Status::ok();
}

static Status verifyStreams(const VerifyContext &context) {
  const artifact::Package &package = context.package;
  constexpr uint32_t maxStreams = 16;
  if (sizeOf(package.streams()) > maxStreams)
    return bad("streams", std::to_string(sizeOf(package.streams())) + " of at most " + std::to_string(maxStreams));
  for (uint32_t index = 0; index < sizeOf(package.streams()); ++index) {
    const artifact::Stream &stream = *package.streams()->Get(index);
    std::string what = "stream " + std::to_string(index);
    if (!isKnown(stream.kind()))
      return bad(what, "unknown kind");
    if ((stream.kind() == artifact::StreamKind::Compute) != (index == 0))
      return bad(what, std::string("is of kind ") + artifact::EnumNameStreamKind(stream.kind()) +
                           "; the first stream computes, and no other");
    TESSERA_RETURN_IF_ERROR(context.checkGroup(stream.group(), what));
  }
  return Status::ok();
}

/// A kernel for a GPU has a size of its launch, one for the CPU has none.
static Status verifyKernel(const artifact::Package &package, const artifact::Kernel &kernel, bool isGpu) {
  std::string what = "kernel '" + kernel.symbol()->str() + "'";
  if (kernel.code_object() >= sizeOf(package.code_objects()))
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
  if (kernel.ptx() < -1 || kernel.ptx() >= static_cast<int64_t>(sizeOf(package.code_objects())))
    return bad(what, "its PTX does not exist");
  if (kernel.ptx() >= 0 && package.code_objects()->Get(kernel.ptx())->format() != artifact::CodeFormat::Ptx)
    return bad(what, "its PTX is none");
  return Status::ok();
}

static Status verifyCode(const artifact::Package &package) {
  std::string target = package.target()->str();
  bool isGpu = target.compare(0, 3, "sm_") == 0;
  for (uint32_t index = 0; index < sizeOf(package.code_objects()); ++index) {
    const artifact::CodeObject &object = *package.code_objects()->Get(index);
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
  for (uint32_t index = 0; index < sizeOf(package.kernels()); ++index)
    TESSERA_RETURN_IF_ERROR(verifyKernel(package, *package.kernels()->Get(index), isGpu));
  return Status::ok();
}

/// Checks that the buffer holds `elements` elements of a type, row-major.
static Status expectDense(const VerifyContext &context, uint32_t buffer, DataType dtype, WideInt elements,
                          const std::string &what) {
  TESSERA_RETURN_IF_ERROR(context.useBuffer(buffer, what));
  TensorView view = context.view(buffer);
  if (view.dtype != dtype)
    return bad(what, std::string("its buffer is of type ") + artifact::EnumNameDataType(view.dtype) + ", expected " +
                         artifact::EnumNameDataType(dtype));
  if (WideInt(view.numElements()) != elements || !view.isContiguous())
    return bad(what, "its buffer of shape " + toString(view.shape) + " does not hold this rank's part");
  return Status::ok();
}

/// Of a-z, 0-9 and _, and none of the roles: names and roles are told apart by their text in checkpoints.
static bool isStateName(const flatbuffers::String *name) {
  const std::string_view text = name ? name->string_view() : std::string_view();
  for (std::string_view role : {"parameter", "frozen", "average"})
    if (text == role)
      return false;
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

static Status verifyState(const VerifyContext &context) {
  const artifact::Package &package = context.package;
  for (uint32_t index = 0; index < sizeOf(package.state()); ++index) {
    const artifact::StateTensor &state = *package.state()->Get(index);
    std::string what = "state '" + state.name()->str() + "'";
    if (!isKnown(state.dtype()) || !isKnown(state.role()))
      return bad(what, "unknown type or role");
    if ((state.role() == artifact::StateRole::Optimizer) != isStateName(state.state()))
      return bad(what, "is an optimizer's without a name there, or has a name and is none");
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
  const artifact::Package &package = context.package;
  for (uint32_t index = 0; index < sizeOf(package.derived()); ++index) {
    const artifact::DerivedTensor &derived = *package.derived()->Get(index);
    std::string what = "derived tensor " + std::to_string(index);
    if (derived.state() >= sizeOf(package.state()))
      return bad(what, "state " + std::to_string(derived.state()) + " does not exist");
    const artifact::StateTensor &state = *package.state()->Get(derived.state());
    if (state.dtype() != DataType::F32)
      return bad(what, std::string("is made from ") + artifact::EnumNameDataType(state.dtype()) + ", expected F32");
    int64_t elements = state.elements() / context.groupSize(state.shard_group());
    TESSERA_RETURN_IF_ERROR(expectDense(context, derived.buffer(), DataType::BF16, elements, what));
  }
  return Status::ok();
}

/// Each adapter is of a frozen matrix and of two trained ones that fit it.
static Status verifyAdapters(const VerifyContext &context) {
  const artifact::Package &package = context.package;
  std::map<std::string_view, std::pair<const artifact::StateTensor *, const artifact::Segment *>> segments;
  for (uint32_t index = 0; index < sizeOf(package.state()); ++index)
    for (uint32_t number = 0; number < sizeOf(package.state()->Get(index)->segments()); ++number) {
      const artifact::StateTensor *state = package.state()->Get(index);
      if (state->role() == artifact::StateRole::Parameter || state->role() == artifact::StateRole::Frozen)
        segments.emplace(state->segments()->Get(number)->name()->string_view(),
                         std::pair(state, state->segments()->Get(number)));
    }
  for (uint32_t index = 0; index < sizeOf(package.adapters()); ++index) {
    const artifact::Adapter &adapter = *package.adapters()->Get(index);
    const std::string what = "adapter of '" + adapter.parameter()->str() + "'";
    if (adapter.rank() < 1 || adapter.input_dim() < 0 || adapter.input_dim() > 1 || !std::isfinite(adapter.scale()))
      return bad(what, "its rank, input dimension or scale is impossible");
    auto check = [&](const flatbuffers::String &name, artifact::StateRole role, int64_t rows, int64_t columns) {
      const auto found = segments.find(name.string_view());
      if (found == segments.end() || found->second.first->role() != role)
        return bad(what, "there is no " + std::string(artifact::EnumNameStateRole(role)) + " '" + name.str() + "'");
      const artifact::Segment &segment = *found->second.second;
      if (sizeOf(segment.shape()) != 2 || (rows > 0 && segment.shape()->Get(0) != rows) ||
          (columns > 0 && segment.shape()->Get(1) != columns))
        return bad(what, "'" + name.str() + "' is of another shape");
      return Status::ok();
    };
    TESSERA_RETURN_IF_ERROR(check(*adapter.parameter(), artifact::StateRole::Frozen, 0, 0));
    const auto &shape = *segments.find(adapter.parameter()->string_view())->second.second->shape();
    const auto inputDim = static_cast<uint32_t>(adapter.input_dim());
    TESSERA_RETURN_IF_ERROR(check(*adapter.a(), artifact::StateRole::Parameter, adapter.rank(), shape.Get(inputDim)));
    TESSERA_RETURN_IF_ERROR(
        check(*adapter.b(), artifact::StateRole::Parameter, shape.Get(1 - inputDim), adapter.rank()));
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

static Status verifyBatch(const VerifyContext &context, const artifact::Program &program) {
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
    for (uint32_t dim = 0; dim < rank; ++dim) // a scalar has no shape
      if (const int64_t size = entry.global_shape()->Get(dim);
          size < 1 || size > maxElements || (elements *= size) > maxElements)
        return bad(what, "a dimension of size " + std::to_string(size));
    TESSERA_ASSIGN_OR_RETURN(int64_t parts, verifySplits(context, entry, what));
    TESSERA_RETURN_IF_ERROR(expectDense(context, entry.buffer(), entry.dtype(), elements / parts, what));
  }
  return Status::ok();
}

static Status verifyScalars(const VerifyContext &context, const artifact::Program &program, uint32_t numInstructions) {
  const artifact::Package &package = context.package;
  for (uint32_t index = 0; index < sizeOf(program.hyper()); ++index) {
    const artifact::HyperScalar &hyper = *program.hyper()->Get(index);
    std::string what = "scalar '" + hyper.name()->str() + "'";
    if (!isKnown(hyper.kind()))
      return bad(what, "unknown kind " + std::to_string(static_cast<int>(hyper.kind())));
    if (hyper.kind() == artifact::HyperKind::BiasCorrection && !(hyper.beta() >= 0 && hyper.beta() < 1))
      return bad(what, "its beta is " + std::to_string(hyper.beta()));
    if (hyper.kind() == artifact::HyperKind::LearningRate && !package.learning_rate())
      return bad(what, "there is no schedule of the learning rate");
    DataType type = hyper.kind() == artifact::HyperKind::Seed ? DataType::I64 : DataType::F32;
    TESSERA_RETURN_IF_ERROR(expectDense(context, hyper.buffer(), type, 1, what));
  }
  if (const artifact::LearningRate *rate = package.learning_rate())
    if (std::string problem = checkLearningRate(*std::unique_ptr<artifact::LearningRateT>(rate->UnPack()));
        !problem.empty())
      return bad("schedule of the learning rate", problem);
  for (uint32_t index = 0; index < sizeOf(program.results()); ++index) {
    const artifact::ResultTensor &result = *program.results()->Get(index);
    std::string what = "result '" + result.name()->str() + "'";
    if (!isKnown(result.role()))
      return bad(what, "unknown role");
    TESSERA_RETURN_IF_ERROR(context.useBuffer(result.buffer(), what));
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
    if (probe.state() >= sizeOf(package.state()))
      return bad(what, "state " + std::to_string(probe.state()) + " does not exist");
    if (probe.instruction() >= numInstructions)
      return bad(what, "instruction " + std::to_string(probe.instruction()) + " of " + std::to_string(numInstructions));
    if (!std::isfinite(probe.scale()))
      return bad(what, "its scale is no number");
    TESSERA_RETURN_IF_ERROR(context.checkGroup(probe.shard_group(), what));
    const artifact::StateTensor &state = *package.state()->Get(probe.state());
    int64_t parts = context.groupSize(probe.shard_group());
    if (state.elements() % parts != 0)
      return bad(what, "the gradient does not divide by " + std::to_string(parts));
    TESSERA_RETURN_IF_ERROR(context.useBuffer(probe.buffer(), what));
    const DataType dtype = context.view(probe.buffer()).dtype;
    if (dtype != DataType::F32 && dtype != DataType::F64 && dtype != DataType::F16 && dtype != DataType::BF16)
      return bad(what, std::string("its buffer is of type ") + artifact::EnumNameDataType(dtype) +
                           ", expected a floating-point type");
    TESSERA_RETURN_IF_ERROR(expectDense(context, probe.buffer(), dtype, state.elements() / parts, what));
  }
  return Status::ok();
}

/// A program of evaluation must say what its loss is made of.
static Status verifyRoles(const artifact::Program &program) {
  int sums = 0, counts = 0;
  for (uint32_t index = 0; index < sizeOf(program.results()); ++index) {
    sums += program.results()->Get(index)->role() == artifact::ResultRole::LossSum;
    counts += program.results()->Get(index)->role() == artifact::ResultRole::LossCount;
  }
  const int expected = program.kind() == artifact::ProgramKind::Evaluate ? 1 : 0;
  if (sums != expected || counts != expected)
    return bad("results", std::to_string(sums) + " sums and " + std::to_string(counts) +
                              " counts of a loss, expected " + std::to_string(expected) + " of each");
  return Status::ok();
}

static Status verifyProgram(const VerifyContext &context, const artifact::Program &program) {
  TESSERA_RETURN_IF_ERROR(verifySlots(context.package, program));
  TESSERA_ASSIGN_OR_RETURN(uint32_t numInstructions, verifyInstructions(context, program));
  TESSERA_RETURN_IF_ERROR(verifyBatch(context, program));
  TESSERA_RETURN_IF_ERROR(verifyScalars(context, program, numInstructions));
  return verifyRoles(program);
}

/// Programs are few, and what they are for is known.
static Status verifyPrograms(const VerifyContext &context) {
  const auto *programs = context.package.programs();
  constexpr uint32_t maxPrograms = 64;
  if (sizeOf(programs) < 1 || sizeOf(programs) > maxPrograms)
    return bad("programs", "there are " + std::to_string(sizeOf(programs)));
  for (uint32_t index = 0; index < programs->size(); ++index) {
    const artifact::Program &program = *programs->Get(index);
    std::string what = "program '" + program.name()->str() + "'";
    if (!isKnown(program.kind()) || (program.kind() == artifact::ProgramKind::Train) != (index == 0))
      return bad(what, "the first program trains, and no other");
    for (uint32_t other = 0; other < index; ++other)
      if (programs->Get(other)->kind() == program.kind() ||
          programs->Get(other)->name()->str() == program.name()->str())
        return bad(what, "there is another one of its kind or name");
    Status status = verifyProgram(context, program);
    TESSERA_RETURN_IF_ERROR(index == 0 ? status : status.withContext(what));
  }
  return Status::ok();
}

Status verifyPackage(const artifact::Package &package, const Mesh &mesh) {
  VerifyContext context(package, mesh);
  TESSERA_RETURN_IF_ERROR(context.verifyGroups());
  TESSERA_RETURN_IF_ERROR(verifyStreams(context));
  TESSERA_RETURN_IF_ERROR(verifyMemory(context));
  TESSERA_RETURN_IF_ERROR(verifyCode(package));
  TESSERA_RETURN_IF_ERROR(verifyState(context));
  TESSERA_RETURN_IF_ERROR(verifyDerived(context));
  TESSERA_RETURN_IF_ERROR(verifyAdapters(context));
  return verifyPrograms(context);
}

} // namespace tessera
