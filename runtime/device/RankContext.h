//===- RankContext.h - what the commands of one rank share -----------------===//

#ifndef TESSERA_RUNTIME_DEVICE_RANKCONTEXT_H
#define TESSERA_RUNTIME_DEVICE_RANKCONTEXT_H

#include "runtime/artifact/Reader.h"
#include "runtime/artifact/TensorView.h"
#include "runtime/comm/Communicator.h"

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
  /// The view in iteration 0, with an address for the device.
  TensorView view(uint32_t buffer) const;
  /// The same with an address for this process; null if the buffer is reached by transfers only.
  TensorView hostView(uint32_t buffer) const;
  /// Bytes to add per iteration.
  int64_t iterationStride(uint32_t buffer) const;
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
  std::vector<std::vector<int>> groups; ///< members, by index in Program.groups
  int64_t step = 0;                     ///< changes only between steps, when all streams are idle
};

/// An operand whose address moves with the iteration.
struct Operand {
  Operand() = default;
  Operand(const RankContext &context, uint32_t buffer)
      : view(context.buffers.view(buffer)), stride(context.buffers.iterationStride(buffer)) {}
  void *at(int64_t iteration) const { return view.as<std::byte>() + iteration * stride; }
  TensorView viewAt(int64_t iteration) const {
    TensorView moved = view;
    moved.data = at(iteration);
    return moved;
  }

  TensorView view;
  int64_t stride = 0;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_DEVICE_RANKCONTEXT_H
