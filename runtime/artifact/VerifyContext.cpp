//===- VerifyContext.cpp - groups, buffers and spans of a package ----------===//
//
// Values are checked before they enter any arithmetic, and arithmetic is 128 bits wide.
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/VerifyContext.h"

#include <algorithm>

namespace tessera {

using artifact::DataType;

std::string toString(const std::vector<int64_t> &values) {
  std::string text = "[";
  for (size_t index = 0; index < values.size(); ++index)
    text += (index ? ", " : "") + std::to_string(values[index]);
  return text + "]";
}

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

/// Checks that the buffer holds `elements` elements of a type, row-major.
Status expectDense(const VerifyContext &context, uint32_t buffer, DataType dtype, WideInt elements,
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

} // namespace tessera
