//===- Kernels.cu - what no library does for us ------------------------------===//
//
// Strided copies and fills, sums, maxima and minima of several ranks' values in their order, and floats as integers of
// the same order. Compiled to PTX once, when the plugin is
// built, and embedded.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/MoveLayout.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

using tessera::cuda::MoveLayout;

/// Index: what counts elements. 32 bits where they suffice, since a GPU divides 64 bits by a long routine.
template <typename Index, typename T>
static __device__ void copyStrided(T *target, const T *source, const MoveLayout &layout) {
  const auto elements = static_cast<Index>(layout.elements), step = static_cast<Index>(gridDim.x * blockDim.x);
  for (Index index = Index(blockIdx.x) * blockDim.x + threadIdx.x; index < elements; index += step) {
    Index rest = index;
    int64_t from = 0, to = 0;
    for (int dim = 0; dim < layout.dims; ++dim) {
      const auto size = static_cast<Index>(layout.sizes[dim]);
      const auto digit = static_cast<int64_t>(rest % size);
      rest /= size;
      from += digit * layout.sourceStrides[dim];
      to += digit * layout.targetStrides[dim];
    }
    target[to] = source[from];
  }
}

template <typename Index, typename T>
static __device__ void fillStrided(T *target, uint64_t value, const MoveLayout &layout) {
  const auto elements = static_cast<Index>(layout.elements), step = static_cast<Index>(gridDim.x * blockDim.x);
  for (Index index = Index(blockIdx.x) * blockDim.x + threadIdx.x; index < elements; index += step) {
    Index rest = index;
    int64_t to = 0;
    for (int dim = 0; dim < layout.dims; ++dim) {
      const auto size = static_cast<Index>(layout.sizes[dim]);
      to += static_cast<int64_t>(rest % size) * layout.targetStrides[dim];
      rest /= size;
    }
    target[to] = static_cast<T>(value);
  }
}

/// An index and the step to the next one stay below 2^32.
static __device__ bool isSmall(const MoveLayout &layout) { return layout.elements < int64_t(1) << 31; }

/// target[i] = ((inputs[0][i] + inputs[1][i]) + …), bf16 and f16 in f32; the target may be one of the inputs.
template <typename T, typename Sum>
static __device__ void sumInOrder(T *target, const void *const *inputs, int count, int64_t elements) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; index < elements; index += step) {
    Sum sum = static_cast<Sum>(static_cast<const T *>(inputs[0])[index]);
    for (int input = 1; input < count; ++input)
      sum += static_cast<Sum>(static_cast<const T *>(inputs[input])[index]);
    target[index] = static_cast<T>(sum);
  }
}

#define TESSERA_MOVE(bytes, type)                                                                                      \
  extern "C" __global__ void tesseraCopy##bytes(type *target, const type *source, MoveLayout layout) {                 \
    isSmall(layout) ? copyStrided<uint32_t>(target, source, layout) : copyStrided<uint64_t>(target, source, layout);   \
  }                                                                                                                    \
  extern "C" __global__ void tesseraFill##bytes(type *target, uint64_t value, MoveLayout layout) {                     \
    isSmall(layout) ? fillStrided<uint32_t>(target, value, layout) : fillStrided<uint64_t>(target, value, layout);     \
  }
TESSERA_MOVE(1, uint8_t)
TESSERA_MOVE(2, uint16_t)
TESSERA_MOVE(4, uint32_t)
TESSERA_MOVE(8, uint64_t)

struct SumInputs {
  const void *data[64];
};

#define TESSERA_SUM(name, type, sum)                                                                                   \
  extern "C" __global__ void tesseraSum##name(type *target, SumInputs inputs, int count, int64_t elements) {           \
    sumInOrder<type, sum>(target, inputs.data, count, elements);                                                       \
  }
TESSERA_SUM(F32, float, float)
TESSERA_SUM(F64, double, double)
TESSERA_SUM(BF16, __nv_bfloat16, float)
TESSERA_SUM(F16, __half, float)
TESSERA_SUM(I32, int32_t, int32_t)
TESSERA_SUM(I64, int64_t, int64_t)

/// An integer that orders as the number's bits do: -0 below 0, and `nan` for every NaN. Its own inverse but for `nan`s.
template <typename Int> static __device__ Int flip(Int bits) {
  return bits < 0 ? static_cast<Int>(bits ^ ~(Int(1) << (8 * sizeof(Int) - 1))) : bits;
}
template <typename Int> static __device__ Int orderOf(Int bits, Int infinity, Int nan) {
  const Int magnitude = bits & ~(Int(1) << (8 * sizeof(Int) - 1));
  return magnitude > infinity ? nan : flip(bits);
}
template <typename Int> static __device__ Int nanOf(bool isMax) {
  const Int lowest = Int(1) << (8 * sizeof(Int) - 1);
  return isMax ? static_cast<Int>(~lowest) : lowest;
}

/// target[i] = the maximum or minimum of the inputs' elements, by their order; the target may be one of them.
template <typename Int>
static __device__ void pickInOrder(Int *target, const void *const *inputs, int count, int64_t elements, Int infinity,
                                   bool isMax) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; index < elements; index += step) {
    Int best = 0;
    for (int input = 0; input < count; ++input) {
      Int next = static_cast<const Int *>(inputs[input])[index];
      if (infinity)
        next = orderOf<Int>(next, infinity, nanOf<Int>(isMax));
      best = input == 0 || (next > best) == isMax ? next : best;
    }
    target[index] = infinity ? flip<Int>(best) : best;
  }
}

#define TESSERA_PICK(name, type, infinity)                                                                             \
  extern "C" __global__ void tesseraMax##name(type *target, SumInputs inputs, int count, int64_t elements) {           \
    pickInOrder<type>(target, inputs.data, count, elements, infinity, true);                                           \
  }                                                                                                                    \
  extern "C" __global__ void tesseraMin##name(type *target, SumInputs inputs, int count, int64_t elements) {           \
    pickInOrder<type>(target, inputs.data, count, elements, infinity, false);                                          \
  }
TESSERA_PICK(F32, int32_t, 0x7f800000)
TESSERA_PICK(F64, int64_t, 0x7ff0000000000000)
TESSERA_PICK(BF16, int16_t, 0x7f80)
TESSERA_PICK(F16, int16_t, 0x7c00)
TESSERA_PICK(I32, int32_t, 0)
TESSERA_PICK(I64, int64_t, 0)

/// target[i] = the integer of source[i], or with `isBack` the float of that integer; the two may be one.
template <typename Int>
static __device__ void order(Int *target, const Int *source, int64_t elements, Int infinity, int isMax, int isBack) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; index < elements; index += step)
    target[index] = isBack ? flip<Int>(source[index]) : orderOf<Int>(source[index], infinity, nanOf<Int>(isMax != 0));
}
extern "C" __global__ void tesseraOrderF32(int32_t *target, const int32_t *source, int64_t elements, int isMax,
                                           int isBack) {
  order<int32_t>(target, source, elements, 0x7f800000, isMax, isBack);
}
extern "C" __global__ void tesseraOrderF64(int64_t *target, const int64_t *source, int64_t elements, int isMax,
                                           int isBack) {
  order<int64_t>(target, source, elements, 0x7ff0000000000000, isMax, isBack);
}
