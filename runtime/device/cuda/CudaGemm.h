//===- CudaGemm.h - matrix products by cuBLASLt -----------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDAGEMM_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDAGEMM_H

#include "runtime/device/RankContext.h"
#include "runtime/device/cuda/Cuda.h"
#include "runtime/device/cuda/GemmTuner.h"

#include <cublasLt.h>

#include <map>
#include <memory>
#include <string>

namespace tessera::cuda {

/// Where a product is read and written; input and output are those of its epilogue, scales those of 8-bit floats.
struct GemmAddresses {
  const void *a = nullptr, *b = nullptr;
  void *c = nullptr;
  const void *input = nullptr;
  void *output = nullptr;
  const void *aScales = nullptr, *bScales = nullptr;
};

/// The operands of a product, and what else it does.
struct GemmOperands {
  Operand a, b, c, input, output, aScales, bScales;
  float alpha = 1, beta = 0;
  artifact::Epilogue epilogue = artifact::Epilogue::None;
  GemmScaling scaling;
  int multiprocessors = 0; ///< that the product may count on; 0: all

  GemmAddresses at(const Iteration &iteration) const {
    return {a.at(iteration),      b.at(iteration),       c.at(iteration),      input.at(iteration),
            output.at(iteration), aScales.at(iteration), bScales.at(iteration)};
  }
};

/// A product of fixed shapes, strides and alignments, with its epilogue. How it is done is the library's first choice,
/// or the fastest way.
class GemmPlan {
public:
  virtual ~GemmPlan() = default;
  virtual Status start(const GemmAddresses &at, CUstream stream) = 0;
};

class EpilogueKernels;

/// Makes the plans of one rank; they share one workspace, so that they run on one stream.
class GemmPlanner {
public:
  GemmPlanner();
  ~GemmPlanner();
  Status open();
  /// From now on algorithms are timed. All ranks make the same plans in the same order.
  void tuneWith(std::unique_ptr<GemmTuner> made) { tuner = std::move(made); }
  /// An epilogue that the library has no algorithm for, or that takes longer with the product than after it, is done by
  /// kernels of our own after the product; a log line says so. `node` names the product in errors.
  Result<std::unique_ptr<GemmPlan>> plan(const GemmOperands &operands, std::string_view node);
  static constexpr size_t workspaceBytes = size_t{32} << 20;

  /// What was chosen for products, by what decides about it: layers share the library's answer.
  using Algorithms = std::map<std::string, Result<cublasLtMatmulAlgo_t>>;
  /// Algorithms that are timed for each product, in the library's order.
  static constexpr int maxCandidates = 16;

private:
  Result<std::unique_ptr<GemmPlan>> planApart(const GemmOperands &operands, std::string_view node);

  cublasLtHandle_t handle = nullptr;
  CUdeviceptr workspace = 0;
  Algorithms known;
  std::map<std::string, size_t> knownWays; ///< of products with epilogues that were timed: 0 together, 1 apart
  std::unique_ptr<GemmTuner> tuner;
  std::unique_ptr<EpilogueKernels> epilogues;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDAGEMM_H
