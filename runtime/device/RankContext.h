//===- RankContext.h - what the commands of one rank share -----------------===//

#ifndef TESSERA_RUNTIME_DEVICE_RANKCONTEXT_H
#define TESSERA_RUNTIME_DEVICE_RANKCONTEXT_H

#include "runtime/artifact/Reader.h"
#include "runtime/artifact/TensorView.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Command.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

/// An arena in the memory of a device.
struct ArenaMemory {
  std::byte *data = nullptr; ///< for the device
  std::byte *host = nullptr; ///< the same memory for this process; null: it is reached by transfers only
  uint64_t allocatedBytes = 0;
};

/// Resolves buffers of one rank to addresses.
class BufferMap {
public:
  BufferMap(const Artifact &artifact, int rank, std::vector<ArenaMemory> arenas)
      : artifact(artifact), rank(rank), memory(std::move(arenas)) {}
  /// The view in the first iterations, with an address for the device.
  TensorView view(uint32_t buffer) const;
  /// The same with an address for this process; null if the buffer is reached by transfers only.
  TensorView hostView(uint32_t buffer) const;
  /// Bytes to add per iteration of each loop, outermost first.
  std::array<int64_t, artifact::maxRepeatDepth> iterationStrides(uint32_t buffer) const;
  const std::vector<ArenaMemory> &arenas() const { return memory; }

private:
  TensorView viewAt(uint32_t buffer, std::byte *ArenaMemory::*base) const;

  const Artifact &artifact;
  int rank;
  std::vector<ArenaMemory> memory;
};

struct RankContext {
  RankContext(const Artifact &artifact, BufferMap buffers, Communicator &communicator);
  /// What a collective does in every iteration: all but the addresses and its place in the run.
  CollectiveCall callOf(const artifact::Collective &collective, int channel) const;

  const Artifact &artifact;
  BufferMap buffers;
  Communicator &communicator;
  std::vector<std::vector<int>> groups; ///< members, by index in Package.groups
  int64_t step = 0;                     ///< changes only between steps, when all streams are idle
};

/// An operand whose address moves with the iteration.
struct Operand {
  Operand() = default;
  Operand(const RankContext &context, uint32_t buffer)
      : view(context.buffers.view(buffer)), strides(context.buffers.iterationStrides(buffer)) {}
  void *at(const Iteration &iteration) const {
    int64_t offset = 0;
    for (size_t loop = 0; loop < strides.size(); ++loop)
      offset += iteration.of[loop] * strides[loop];
    return view.as<std::byte>() + offset;
  }
  /// A multiple of what all addresses differ by is a multiple of the lowest bit in it.
  int64_t strideBits() const {
    int64_t bits = 0;
    for (int64_t stride : strides)
      bits |= stride;
    return bits;
  }
  TensorView viewAt(const Iteration &iteration) const {
    TensorView moved = view;
    moved.data = at(iteration);
    return moved;
  }

  TensorView view;
  std::array<int64_t, artifact::maxRepeatDepth> strides{}; ///< bytes per iteration of each loop, outermost first
};

} // namespace tessera

#endif // TESSERA_RUNTIME_DEVICE_RANKCONTEXT_H
