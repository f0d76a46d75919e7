//===- GemmCache.h - what was chosen for products that were timed -----------===//
//
// A JSON file that outlives runs: by GPU, driver and version of cuBLASLt, then by product. Pure logic, built and tested
// without CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_GEMMCACHE_H
#define TESSERA_RUNTIME_DEVICE_CUDA_GEMMCACHE_H

#include "runtime/artifact/artifact_generated.h"
#include "runtime/device/cuda/GemmLayout.h"

#include <map>
#include <string>

namespace tessera::cuda {

class GemmCache {
public:
  /// Bytes of an algorithm, which is cuBLASLt's secret; two hexadecimal digits each in the file.
  static constexpr size_t algorithmBytes = 64;
  /// Who does a product's epilogue: cuBLASLt with the product, or our own kernels behind it.
  static constexpr std::string_view together = "together", apart = "apart";

  /// The file's content, or nothing if there is no such file. DataLoss if it is damaged.
  static Result<GemmCache> read(const std::string &path);
  /// `name` is that of the file, for errors.
  static Result<GemmCache> parse(std::string_view text, const std::string &name);
  std::string serialise() const;
  /// Adds what this run has found to what the file holds by now. Atomic; makes the folder.
  Status write(const std::string &path) const;

  /// Digits of an algorithm, `together` or `apart`; empty if nothing was chosen.
  std::string find(const std::string &gpu, const std::string &product) const;
  void put(const std::string &gpu, const std::string &product, const std::string &choice);

private:
  std::map<std::string, std::map<std::string, std::string>> entries; ///< by GPU and product
};

std::string toDigits(const void *bytes, size_t count);

/// How the operands of a product of 8-bit floats are scaled; None for other types.
struct GemmScaling {
  artifact::ScaleMode a = artifact::ScaleMode::None, b = artifact::ScaleMode::None;
  bool accumulatesFast = false;

  bool isNone() const { return a == artifact::ScaleMode::None; }
};

/// What decides about a product's algorithm besides GPU and library.
struct GemmProblem {
  const GemmLayout &layout;
  artifact::DataType a, b, output;
  artifact::Epilogue epilogue;
  GemmScaling scaling;
  bool adds;              ///< beta is not 0
  uint32_t alignments[3]; ///< bytes, of the library's operands and of its result
  size_t workspace;       ///< bytes
  int multiprocessors;    ///< that it may count on; 0: all
};
std::string keyOf(const GemmProblem &problem);

/// $XDG_CACHE_HOME/tessera/gemm.json, else ~/.cache/tessera/gemm.json; an error if neither variable is set.
Result<std::string> defaultGemmCache();

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_GEMMCACHE_H
