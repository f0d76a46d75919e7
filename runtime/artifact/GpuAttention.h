//===- GpuAttention.h - which kernels compute attention on a GPU ---------===//
//
// What the plugin for NVIDIA GPUs chooses by and the compiler's reports predict by. Layouts in memory, which only the
// plugin knows, may still be refused.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_GPUATTENTION_H
#define TESSERA_RUNTIME_ARTIFACT_GPUATTENTION_H

#include <algorithm>
#include <cstdint>
#include <string>

namespace tessera {

/// An attention or its gradient: q [B, H, Tq, D], k [B, G, Tk, D], v [B, G, Tk, Dv].
struct GpuAttention {
  int64_t batch = 1, heads = 1, groups = 1, queries = 0, keys = 0, depth = 0, valueDepth = 0;
  int64_t window = 0; ///< keys that a causal query sees at most; 0: all
  float scale = 1;
  bool isBackward = false, isCausal = false, hasMask = false;
  bool hasRanges = false;      ///< each query sees a range of keys of its own
  bool isHalf = true;          ///< operands of bf16 or f16
  bool hasWideResults = false; ///< f32, where operands are not
};

/// The largest workspace that a deterministic gradient by cuDNN is given, in bytes. It keeps the gradient of all
/// scores, which our own kernels do not, at 7 instead of 5 products and, as predicted, less than half of the speed. So
/// cuDNN has what usual lengths take, 8.3 GiB for 8192 tokens and 64 heads, an eighth of a GPU of 80 GB, and not what
/// twice as many tokens take, 33 GiB.
inline constexpr int64_t mostAttentionWorkspace = int64_t{10} << 30;

/// Bytes that cuDNN keeps in a deterministic gradient: the gradient of the scores and, of grouped heads, of the keys
/// and values of all heads.
inline int64_t cudnnGradientBytes(const GpuAttention &a) {
  // Of sequences beyond any GPU's memory an int64_t does not hold the number.
  constexpr int64_t most = int64_t{1} << 60;
  if (static_cast<double>(a.batch) * static_cast<double>(a.heads) * static_cast<double>(a.queries) *
          static_cast<double>(a.keys) >=
      static_cast<double>(most))
    return most;
  int64_t elements = a.batch * a.heads * a.queries * a.keys;
  if (a.groups != a.heads)
    elements += a.batch * a.heads * a.keys * (a.depth + a.valueDepth);
  return 2 * elements;
}

/// Bytes that cuDNN keeps in a gradient whose parts are added in any order: the gradient of the queries in f32.
inline int64_t cudnnFastGradientBytes(const GpuAttention &a) { return 4 * a.batch * a.heads * a.queries * a.depth; }

/// Why our own kernels on tensor cores cannot compute it; empty if they can.
inline std::string tensorAttentionRefusal(const GpuAttention &a) {
  constexpr int64_t most = 128;
  if (!a.isHalf)
    return "operands are neither bf16 nor f16";
  if (a.hasMask)
    return "it has a mask";
  if (!(a.scale > 0))
    return "its scale is not positive";
  for (int64_t depth : {a.depth, a.valueDepth})
    if (depth % 8 != 0 || depth > most)
      return "heads of size " + std::to_string(depth) + " (they take multiples of 8 up to " + std::to_string(most) +
             ")";
  // Sums of positions are 32-bit numbers.
  if (std::max(a.queries, a.keys) > int64_t{1} << 29)
    return "a sequence is longer than 2^29";
  return "";
}

/// Why cuDNN's fused attention is not asked for it; empty if it is. `isDeterministic`: its gradient is to be.
inline std::string cudnnAttentionRefusal(const GpuAttention &a, bool isDeterministic) {
  if (!a.isHalf)
    return "operands are neither bf16 nor f16";
  if (a.hasWideResults)
    return "a result is f32 where its operands are not";
  if (a.hasRanges)
    return "each query sees a range of keys of its own";
  if (a.window > 0 && a.window < a.keys)
    return "each query sees a window of " + std::to_string(a.window) + " keys";
  if (a.hasMask)
    return "a mask may hide all keys of a query, which its softmax does not allow for";
  // Where there are fewer keys than queries, the first queries have none.
  if (a.isCausal && a.queries != a.keys)
    return "it is causal over " + std::to_string(a.queries) + " queries and " + std::to_string(a.keys) + " keys";
  const int64_t most = a.isBackward ? 128 : 256;
  for (int64_t depth : {a.depth, a.valueDepth})
    if (depth % 8 != 0 || depth > most)
      return "heads of size " + std::to_string(depth) + " (cuDNN takes multiples of 8 up to " + std::to_string(most) +
             ")";
  if (const int64_t bytes = cudnnGradientBytes(a);
      a.isBackward && isDeterministic && bytes > mostAttentionWorkspace && tensorAttentionRefusal(a).empty())
    return "its deterministic gradient would need a workspace of " + std::to_string(bytes >> 20) + " MiB (more than " +
           std::to_string(mostAttentionWorkspace >> 20) + ")";
  return "";
}

enum class AttentionUnits {
  Cudnn,
  Tensor, ///< our own kernels, by tensor cores
  Scalar  ///< our own kernels for everything, in f32
};

/// `isDeterministic`: its gradient is to be, which is the default.
inline AttentionUnits attentionUnits(const GpuAttention &a, bool isDeterministic = true) {
  return cudnnAttentionRefusal(a, isDeterministic).empty() ? AttentionUnits::Cudnn
         : tensorAttentionRefusal(a).empty()               ? AttentionUnits::Tensor
                                                           : AttentionUnits::Scalar;
}

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_GPUATTENTION_H
