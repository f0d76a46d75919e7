//===- TensorAttentionLayout.h - tiles of attention by tensor cores ------===//
//
// What the kernels of TensorAttention.h and those who launch them agree on.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_TENSORATTENTIONLAYOUT_H
#define TESSERA_RUNTIME_DEVICE_CUDA_TENSORATTENTIONLAYOUT_H

#include "runtime/device/cuda/AttentionLayout.h"

namespace tessera::cuda {

/// Four warps. A block of a forward pass has 128 queries, so that each key that a warp reads from shared memory serves
/// 32 of them, and a tile of 64 keys; heads of more than 64 elements take half as many keys, for their registers.
inline constexpr int tensorThreads = 128, tensorQueries = 128;
/// Of queries and of keys, in gradients.
inline constexpr int tensorGradTile = 64;
/// Kernels exist for heads of up to 64 and up to 128 elements; others are filled up with zeros.
inline constexpr int tensorDepths[] = {64, 128};

inline constexpr int tensorKeys(int depth) { return depth > 64 ? 32 : 64; }
/// Bytes of shared memory, for a kernel of heads of up to `depth`: the tiles, then of each query two or three numbers.
/// Two blocks fit on a multiprocessor, of which an A100's has 164 KiB, a KiB of each block the driver's.
inline constexpr int tensorForwardBytes(int depth) {
  return 2 * depth * (tensorQueries + 2 * tensorKeys(depth)) + 2 * 4 * tensorQueries;
}
inline constexpr int tensorGradBytes(int depth) { return 2 * depth * 5 * tensorGradTile + 3 * 4 * tensorGradTile; }
static_assert(2 * (tensorForwardBytes(128) + 1024) <= 164 << 10 && 2 * (tensorGradBytes(128) + 1024) <= 164 << 10);

inline int64_t tensorForwardBlocks(const AttentionLayout &p) {
  return p.batch * p.heads * attentionParts(p.queries, tensorQueries);
}
inline int64_t tensorQueryGradBlocks(const AttentionLayout &p) {
  return p.batch * p.heads * attentionParts(p.queries, tensorGradTile);
}
inline int64_t tensorKeyGradBlocks(const AttentionLayout &p) {
  return p.batch * p.groups * attentionParts(p.keys, tensorGradTile);
}

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_TENSORATTENTIONLAYOUT_H
