//===- RankContext.cpp - what the commands of one rank share ---------------===//

#include "runtime/device/RankContext.h"

#include <algorithm>
#include <utility>

namespace tessera {

TensorView BufferMap::viewAt(uint32_t index, std::byte *ArenaMemory::*base) const {
  const artifact::Buffer &buffer = *artifact.package().buffers()->Get(index);
  TensorView view = viewOf(buffer);
  int64_t offset = static_cast<int64_t>(buffer.offset());
  if (buffer.rank_group() >= 0)
    offset += artifact.positionInGroup(buffer.rank_group(), rank) * buffer.rank_stride();
  std::byte *start = memory[buffer.arena()].*base;
  view.data = start ? start + offset : nullptr;
  return view;
}

TensorView BufferMap::view(uint32_t buffer) const { return viewAt(buffer, &ArenaMemory::data); }
TensorView BufferMap::hostView(uint32_t buffer) const { return viewAt(buffer, &ArenaMemory::host); }

std::array<int64_t, artifact::maxRepeatDepth> BufferMap::iterationStrides(uint32_t buffer) const {
  std::array<int64_t, artifact::maxRepeatDepth> strides{};
  if (const auto *table = artifact.package().buffers()->Get(buffer)->iteration_strides())
    std::copy(table->begin(), table->end(), strides.begin());
  return strides;
}

RankContext::RankContext(const Artifact &artifact, BufferMap buffers, Communicator &communicator)
    : artifact(artifact), buffers(std::move(buffers)), communicator(communicator) {
  if (const auto *table = artifact.package().groups())
    for (uint32_t group = 0; group < table->size(); ++group)
      groups.push_back(artifact.groupMembers(group, communicator.rank()));
}

CollectiveCall RankContext::callOf(const artifact::Collective &collective, int channel) const {
  const TensorView input = buffers.view(collective.input());
  CollectiveCall call;
  call.kind = collective.kind();
  call.reduction = collective.reduction();
  call.dtype = input.dtype;
  call.group = &groups[collective.group()];
  call.elements = input.numElements();
  call.shift = collective.shift();
  call.channel = channel;
  return call;
}

} // namespace tessera
