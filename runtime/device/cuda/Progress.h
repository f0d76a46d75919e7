//===- Progress.h - how far each stream of a GPU has come -------------------===//
//
// The GPU writes the number of an instruction into host memory before it begins it, and again when it is done. After an
// error, which CUDA reports much later and without a place, these say what was under way; so they do in a stall. One
// thread issues commands, another one watches.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_PROGRESS_H
#define TESSERA_RUNTIME_DEVICE_CUDA_PROGRESS_H

#include "runtime/artifact/Format.h"
#include "runtime/device/Command.h"
#include "runtime/device/cuda/Cuda.h"

#include <atomic>
#include <memory>
#include <vector>

namespace tessera::cuda {

class Progress {
public:
  ~Progress();
  /// `numInstructions`: of the flattened list.
  Status open(CUdevice device, size_t numInstructions);
  /// Before and after a command, in the order of its stream.
  Status begin(const Command &command, CUstream stream) {
    commands[command.number].store(&command, std::memory_order_release);
    return write(command, 2 * command.number + 1, stream);
  }
  Status end(const Command &command, CUstream stream) { return write(command, 2 * command.number + 2, stream); }
  void reset();
  /// What has begun and not ended, over all streams.
  std::vector<const Command *> underWay() const;
  /// "gemm of node '/h.0/attn' (instruction 7)", joined by commas; empty if nothing is known.
  static std::string describe(const std::vector<const Command *> &commands);
  /// Changes whenever a stream moves on.
  uint64_t fingerprint() const;

private:
  static constexpr int maxStreams = artifact::maxStreams;
  Status write(const Command &command, uint32_t value, CUstream stream);

  volatile uint32_t *words = nullptr; ///< by stream; pinned
  bool isSupported = false;
  size_t numCommands = 0;
  std::unique_ptr<std::atomic<const Command *>[]> commands; ///< by number
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_PROGRESS_H
