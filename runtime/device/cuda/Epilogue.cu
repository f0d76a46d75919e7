//===- Epilogue.cu - epilogues of products that cuBLASLt does not do ---------===//
//
// Bias, GELU (tanh approximation) and its gradient on a product that is there already, and sums of a matrix along one
// dimension in a fixed order: long ones in two steps, by parts that fill the GPU. They stand in where the library has
// no algorithm. Compiled to PTX once, when the plugin is built, and embedded.
//
//===----------------------------------------------------------------------===//

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

static constexpr float scale = 0.7978845608028654f; // sqrt(2 / pi)
static constexpr float cubic = 0.044715f;

/// By exp, which is exact enough near 0 too: a relative error of x is one of gelu.
static __device__ float tanhOf(float x) {
  float small = expf(-2 * fabsf(x));
  return copysignf((1 - small) / (1 + small), x);
}

static __device__ float gelu(float x) { return 0.5f * x * (1 + tanhOf(scale * (x + cubic * x * x * x))); }

static __device__ float geluDerivative(float x) {
  float t = tanhOf(scale * (x + cubic * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * scale * (1 + 3 * cubic * x * x);
}

/// c [m, n] is the product. With `bias` [n] it is added; what is then there goes to `kept` [m, n], if given; `isGelu`
/// applies GELU; with `before` [m, n] c is multiplied with GELU's derivative there. Memory is read and written by words
/// of T or of 16 bytes, of which all addresses and n are multiples.
template <typename T, typename Word>
static __device__ void apply(T *c, const T *bias, T *kept, const T *before, bool isGelu, int64_t elements,
                             int64_t columns) {
  constexpr int width = sizeof(Word) / sizeof(T);
  const int64_t step = int64_t(gridDim.x) * blockDim.x, words = elements / width, wordsOfRow = columns / width;
  for (int64_t index = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; index < words; index += step) {
    Word product = reinterpret_cast<const Word *>(c)[index], added{}, earlier{}, sum{};
    if (bias)
      added = reinterpret_cast<const Word *>(bias)[index % wordsOfRow];
    if (before)
      earlier = reinterpret_cast<const Word *>(before)[index];
    T *values = reinterpret_cast<T *>(&product), *sums = reinterpret_cast<T *>(&sum);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      float value = static_cast<float>(values[i]);
      if (bias)
        value += static_cast<float>(reinterpret_cast<const T *>(&added)[i]);
      sums[i] = static_cast<T>(value);
      if (isGelu)
        value = gelu(value);
      if (before)
        value *= geluDerivative(static_cast<float>(reinterpret_cast<const T *>(&earlier)[i]));
      values[i] = static_cast<T>(value);
    }
    if (kept)
      reinterpret_cast<Word *>(kept)[index] = sum;
    reinterpret_cast<Word *>(c)[index] = product;
  }
}

/// target[i] = sum over j < terms of source[i * stride + j * termStride]. A block does 32 sums, 8 threads each.
template <typename From, typename To>
static __device__ void sumTerms(To *target, const From *source, int64_t count, int64_t terms, int64_t stride,
                                int64_t termStride) {
  __shared__ float partial[8][32];
  int64_t index = int64_t(blockIdx.x) * 32 + threadIdx.x;
  float sum = 0;
  if (index < count)
    for (int64_t term = threadIdx.y; term < terms; term += 8)
      sum += static_cast<float>(source[index * stride + term * termStride]);
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || index >= count)
    return;
  for (int part = 1; part < 8; ++part)
    sum += partial[part][threadIdx.x];
  target[index] = static_cast<To>(sum);
}

/// partial[part * count + i] = the sum of column i of `source` [terms, count] over the rows of a part: [part * rows,
/// part * rows + rows). Rows begin at multiples of 16 bytes and are of whole ones. A block does 32 vectors of columns,
/// with 8 rows at a time.
template <typename T>
static __device__ void sumParts(float *partial, const T *source, int64_t count, int64_t terms, int64_t termStride,
                                int64_t rows) {
  constexpr int width = 16 / sizeof(T);
  __shared__ float sums[8][32][width];
  int64_t column = (int64_t(blockIdx.x) * 32 + threadIdx.x) * width, begin = int64_t(blockIdx.y) * rows;
  int64_t end = begin + rows < terms ? begin + rows : terms;
  float sum[width] = {};
  if (column < count) {
#pragma unroll 4
    for (int64_t term = begin + threadIdx.y; term < end; term += 8) {
      const uint4 words = *reinterpret_cast<const uint4 *>(source + term * termStride + column);
      const T *values = reinterpret_cast<const T *>(&words);
#pragma unroll
      for (int i = 0; i < width; ++i)
        sum[i] += static_cast<float>(values[i]);
    }
  }
  for (int i = 0; i < width; ++i)
    sums[threadIdx.y][threadIdx.x][i] = sum[i];
  __syncthreads();
  if (threadIdx.y != 0 || column >= count)
    return;
  for (int i = 0; i < width; ++i) {
    for (int part = 1; part < 8; ++part)
      sum[i] += sums[part][threadIdx.x][i];
    partial[int64_t(blockIdx.y) * count + column + i] = sum[i];
  }
}

#define TESSERA_APPLY(name, type)                                                                                      \
  extern "C" __global__ void tesseraApply##name(type *c, const type *bias, type *kept, const type *before, int isGelu, \
                                                int64_t elements, int64_t columns) {                                   \
    apply<type, type>(c, bias, kept, before, isGelu != 0, elements, columns);                                          \
  }                                                                                                                    \
  extern "C" __global__ void tesseraApplyVectors##name(type *c, const type *bias, type *kept, const type *before,      \
                                                       int isGelu, int64_t elements, int64_t columns) {                \
    apply<type, uint4>(c, bias, kept, before, isGelu != 0, elements, columns);                                         \
  }
TESSERA_APPLY(F32, float)
TESSERA_APPLY(BF16, __nv_bfloat16)
TESSERA_APPLY(F16, __half)

#define TESSERA_SUM_TERMS(name, from, to)                                                                              \
  extern "C" __global__ void tesseraSumTerms##name(to *target, const from *source, int64_t count, int64_t terms,       \
                                                   int64_t stride, int64_t termStride) {                               \
    sumTerms(target, source, count, terms, stride, termStride);                                                        \
  }
TESSERA_SUM_TERMS(F32F32, float, float)
TESSERA_SUM_TERMS(BF16F32, __nv_bfloat16, float)
TESSERA_SUM_TERMS(BF16BF16, __nv_bfloat16, __nv_bfloat16)
TESSERA_SUM_TERMS(F16F32, __half, float)
TESSERA_SUM_TERMS(F16F16, __half, __half)
TESSERA_SUM_TERMS(F32BF16, float, __nv_bfloat16)
TESSERA_SUM_TERMS(F32F16, float, __half)

#define TESSERA_SUM_PARTS(name, from)                                                                                  \
  extern "C" __global__ void tesseraSumParts##name(float *partial, const from *source, int64_t count, int64_t terms,   \
                                                   int64_t termStride, int64_t rows) {                                 \
    sumParts(partial, source, count, terms, termStride, rows);                                                         \
  }
TESSERA_SUM_PARTS(F32, float)
TESSERA_SUM_PARTS(BF16, __nv_bfloat16)
TESSERA_SUM_PARTS(F16, __half)
