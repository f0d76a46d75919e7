//===- GemmTuner.h - the fastest of cuBLASLt's algorithms -------------------===//
//
// With --autotune: rank 0 looks a product up in the cache or times what the library proposes for it, and all ranks take
// its choice, so that they add up in the same way.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_GEMMTUNER_H
#define TESSERA_RUNTIME_DEVICE_CUDA_GEMMTUNER_H

#include "runtime/comm/Communicator.h"
#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/GemmCache.h"

#include <cublasLt.h>

#include <functional>
#include <span>

namespace tessera::cuda {

class GemmTuner {
public:
  /// Algorithms that are timed for each product, in the library's order.
  static constexpr int maxCandidates = 16;
  /// `path`: of the cache; empty: the user's. `gpu` is its name.
  static Result<std::unique_ptr<GemmTuner>> open(const std::string &path, const std::string &gpu, Communicator &ranks);
  ~GemmTuner();

  /// Runs a product with an algorithm on a stream.
  using Run = std::function<Status(const cublasLtMatmulAlgo_t &algorithm, CUstream stream)>;
  /// All ranks call it for the same products in the same order.
  Result<cublasLtMatmulAlgo_t> choose(const std::string &product,
                                      std::span<const cublasLtMatmulHeuristicResult_t> candidates, const Run &run);

private:
  explicit GemmTuner(Communicator &ranks) : ranks(ranks) {}
  Result<std::string> find(const std::string &product, std::span<const cublasLtMatmulHeuristicResult_t> candidates,
                           const Run &run);
  Result<float> milliseconds(const cublasLtMatmulAlgo_t &algorithm, const Run &run);

  Communicator &ranks;
  std::string path, gpu;
  GemmCache cache;
  bool hasFailedToWrite = false;
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_GEMMTUNER_H
