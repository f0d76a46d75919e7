//===- Progress.h - how far each stream of a GPU has come -------------------===//
//
// The GPU writes the number of an instruction into host memory before it begins it, and again when it is done. After an
// error, which CUDA reports much later and without a place, these say what was under way; so they do in a stall.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_PROGRESS_H
#define TESSERA_RUNTIME_DEVICE_CUDA_PROGRESS_H

#include "runtime/device/Command.h"
#include "runtime/device/cuda/Cuda.h"

#include <map>
#include <vector>

namespace tessera::cuda {

class Progress {
public:
  ~Progress();
  Status open(CUdevice device);
  /// Before and after a command, in the order of its stream.
  Status begin(const Command &command, CUstream stream) {
    commands[command.number] = &command;
    return write(command, 2 * command.number + 1, stream);
  }
  Status end(const Command &command, CUstream stream) { return write(command, 2 * command.number + 2, stream); }
  void reset();
  /// What has begun and not ended, over all streams.
  std::vector<const Command *> underWay() const;
  /// "gemm of node '/h.0/attn'", joined by commas; empty if nothing is known.
  std::string describe() const;
  /// Changes whenever a stream moves on.
  uint64_t fingerprint() const;

private:
  static constexpr int maxStreams = 16;
  Status write(const Command &command, uint32_t value, CUstream stream);

  volatile uint32_t *words = nullptr; ///< by stream; pinned
  bool isSupported = false;
  std::map<uint32_t, const Command *> commands; ///< by number
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_PROGRESS_H
