//===- AttentionLayout.h - the arguments of our own attention kernels ----===//
//
// Pure logic, built and tested without CUDA; the structure is also the argument of the kernels.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONLAYOUT_H
#define TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONLAYOUT_H

#include <cstdint>

namespace tessera::cuda {

/// A tensor of up to four dimensions; strides in elements, 0 for broadcast ones.
struct StridedTensor {
  void *data = nullptr;
  int64_t strides[4] = {0, 0, 0, 0};
  bool isWide = false; ///< f32, whatever the operands are
};

enum class AttentionMask : int32_t { None, Boolean, Additive };

/// Shapes as train.attention: q [B,H,Tq,D], k [B,G,Tk,D], v [B,G,Tk,Dv], lse and delta [B,H,Tq]. lse, delta and an
/// additive mask are f32; out, dq, dk and dv may be, too.
struct AttentionLayout {
  int64_t batch = 0, heads = 0, groups = 0, queries = 0, keys = 0, depth = 0, valueDepth = 0;
  float scale = 1;
  bool causal = false;
  bool isPartial = false; ///< backward: out and lse are of an attention to more keys than these
  int64_t window = 0;     ///< keys that a causal query sees at most, no more than there are; 0: all
  const int64_t *begin = nullptr, *end = nullptr; ///< of the keys that a query sees: [B or 1, Tq], or null
  int64_t beginStride = 0, endStride = 0;         ///< between batches of these
  AttentionMask maskKind = AttentionMask::None;
  StridedTensor mask;
  StridedTensor q, k, v, out, lse;
  StridedTensor dout, dq, dk, dv; ///< backward only
  float *delta = nullptr; ///< backward only: [2, B, H, Tq], row sums of dout * out, then AttentionBody's logTotal
};

/// A block of threads computes `attentionTile` queries (or keys) of one head, and `attentionWidth` columns of the
/// result; more columns are more blocks, which compute the same scores again.
inline constexpr int attentionTile = 32, attentionWidth = 128, attentionThreads = 256;

/// What a block of threads shares.
struct AttentionScratch {
  static constexpr int pitch = attentionTile + 1; ///< no two rows begin in one bank
  float scores[attentionTile * pitch], dscores[attentionTile * pitch];
  float left[attentionTile * pitch], right[attentionTile * pitch];
  float largest[attentionTile], total[attentionTile], factor[attentionTile];
  float sums[2][attentionTile * attentionWidth];
};

struct AttentionGrid {
  int64_t blocks = 0;   ///< tiles of all heads
  int64_t sections = 0; ///< of `attentionWidth` columns
};

inline int64_t attentionParts(int64_t size, int64_t part) { return (size + part - 1) / part; }
inline AttentionGrid forwardGrid(const AttentionLayout &p) {
  return {p.batch * p.heads * attentionParts(p.queries, attentionTile), attentionParts(p.valueDepth, attentionWidth)};
}
inline AttentionGrid queryGradGrid(const AttentionLayout &p) {
  return {p.batch * p.heads * attentionParts(p.queries, attentionTile), attentionParts(p.depth, attentionWidth)};
}
inline AttentionGrid keyGradGrid(const AttentionLayout &p) {
  return {p.batch * p.groups * attentionParts(p.keys, attentionTile),
          attentionParts(p.depth > p.valueDepth ? p.depth : p.valueDepth, attentionWidth)};
}

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_ATTENTIONLAYOUT_H
