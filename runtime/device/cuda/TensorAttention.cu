//===- TensorAttention.cu - attention by tensor cores --------------------===//
//
// Kernels around TensorAttention.h for one type and size of heads: TESSERA_TYPE, TESSERA_DEPTH, and TESSERA_NAME, which
// ends their names. Compiled to PTX when the plugin is built, and embedded; one file for each, since the driver
// compiles a whole file where it meets it first.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/TensorAttention.h"

using namespace tessera::cuda;

extern __shared__ __align__(256) char tileMemory[];

#define TESSERA_JOIN(name, suffix) name##suffix
#define TESSERA_KERNEL(name, suffix)                                                                                   \
  extern "C" __global__ void __launch_bounds__(tensorThreads)                                                          \
      TESSERA_JOIN(name, suffix)(const __grid_constant__ AttentionLayout layout)

TESSERA_KERNEL(tesseraTensorAttention, TESSERA_NAME) {
  TensorAttention<TESSERA_TYPE, TESSERA_DEPTH>(layout, tileMemory).forward();
}
TESSERA_KERNEL(tesseraTensorAttentionQueryGrad, TESSERA_NAME) {
  TensorAttention<TESSERA_TYPE, TESSERA_DEPTH>(layout, tileMemory).queryGrad();
}
TESSERA_KERNEL(tesseraTensorAttentionKeyGrad, TESSERA_NAME) {
  TensorAttention<TESSERA_TYPE, TESSERA_DEPTH>(layout, tileMemory).keyGrad();
}
