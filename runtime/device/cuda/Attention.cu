//===- Attention.cu - attention where cuDNN offers none ------------------===//
//
// Kernels around AttentionBody.h. Compiled to PTX once, when the plugin is built, and embedded.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/AttentionBody.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

using namespace tessera::cuda;

namespace {

struct BlockTeam {
  template <typename Phase> __device__ void each(int count, const Phase &phase) const {
    for (int index = static_cast<int>(threadIdx.x); index < count; index += static_cast<int>(blockDim.x))
      phase(index);
    __syncthreads();
  }
};

extern __shared__ float scratchMemory[];

template <typename T>
__device__ AttentionBody<T, BlockTeam> bodyOf(const AttentionLayout &layout, const BlockTeam &team) {
  return AttentionBody<T, BlockTeam>(layout, *reinterpret_cast<AttentionScratch *>(scratchMemory), team);
}

} // namespace

#define TESSERA_ATTENTION(name, type)                                                                                  \
  extern "C" __global__ void tesseraAttention##name(const __grid_constant__ AttentionLayout layout) {                  \
    BlockTeam team;                                                                                                    \
    bodyOf<type>(layout, team).forward(blockIdx.x, blockIdx.y);                                                        \
  }                                                                                                                    \
  extern "C" __global__ void tesseraAttentionRowSum##name(const __grid_constant__ AttentionLayout layout) {            \
    BlockTeam team;                                                                                                    \
    int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;                                                    \
    if (index < layout.batch * layout.heads * layout.queries)                                                          \
      bodyOf<type>(layout, team).rowSum(index);                                                                        \
  }                                                                                                                    \
  extern "C" __global__ void tesseraAttentionQueryGrad##name(const __grid_constant__ AttentionLayout layout) {         \
    BlockTeam team;                                                                                                    \
    bodyOf<type>(layout, team).queryGrad(blockIdx.x, blockIdx.y);                                                      \
  }                                                                                                                    \
  extern "C" __global__ void tesseraAttentionKeyGrad##name(const __grid_constant__ AttentionLayout layout) {           \
    BlockTeam team;                                                                                                    \
    bodyOf<type>(layout, team).keyGrad(blockIdx.x, blockIdx.y);                                                        \
  }
TESSERA_ATTENTION(F32, float)
TESSERA_ATTENTION(BF16, __nv_bfloat16)
TESSERA_ATTENTION(F16, __half)
