//===- GemmTuner.h - the fastest of the ways to do a product -----------------===//
//
// With --autotune: rank 0 looks a product up in the cache or times its candidates, which are cuBLASLt's algorithms or
// who does its epilogue, and all ranks take its choice, so that they add up in the same way.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_GEMMTUNER_H
#define TESSERA_RUNTIME_DEVICE_CUDA_GEMMTUNER_H

#include "runtime/comm/Communicator.h"
#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/GemmCache.h"

#include <functional>
#include <span>
#include <string>

namespace tessera::cuda {

class GemmTuner {
public:
  /// One way to do a product.
  struct Candidate {
    std::string choice; ///< as the cache keeps it
    std::string title;  ///< for log lines
  };

  /// `path`: of the cache; empty: the user's. `gpu` is its name.
  static Result<std::unique_ptr<GemmTuner>> open(const std::string &path, const std::string &gpu, Communicator &ranks);
  ~GemmTuner();

  /// Does a product once, in the way of a candidate's number, on a stream.
  using Run = std::function<Status(size_t candidate, CUstream stream)>;
  /// The number of the fastest candidate; the first one where there is no memory to time them. All ranks call it for
  /// the same products in the same order. Unsupported if rank 0 has chosen what is not among this rank's candidates.
  Result<size_t> choose(const std::string &product, std::span<const Candidate> candidates, const Run &run);

private:
  explicit GemmTuner(Communicator &ranks) : ranks(ranks) {}
  Result<std::string> find(const std::string &product, std::span<const Candidate> candidates, const Run &run);
  Result<float> milliseconds(size_t candidate, const Run &run);

  Communicator &ranks;
  std::string path, gpu;
  GemmCache cache;
  bool hasFailedToWrite = false;
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_GEMMTUNER_H
