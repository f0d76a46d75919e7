//===- AttentionKernel.h - blocked attention for one instruction set -------===//
//
// AttentionKernel.cpp is compiled once per instruction set (baseline, AVX2, AVX-512 without and with
// products of bf16); each gives one table of
// functions. The tasks of a table are independent and touch only their own part of the results, so that any number of
// threads gives the same numbers. Plain C types only: an inline function shared with other files could end up compiled
// for the wrong processor.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONKERNEL_H
#define TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONKERNEL_H

#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

/// A tensor of up to four dimensions, f32 or bf16; strides in elements, 0 for broadcast ones.
struct Strided {
  void *data;
  int64_t strides[4];
  bool isHalf;
};

enum class MaskKind { None, Boolean, Additive };

/// Shapes as train.attention: q [B,H,Tq,D], k [B,G,Tk,D], v [B,G,Tk,Dv], lse [B,H,Tq]. lse and an additive mask are
/// f32, all others f32 or bf16. Sums and softmax are f32, results are rounded once. Where operands and results are bf16
/// and the processor multiplies bf16, probabilities and gradients of scores are rounded to bf16 before their products.
struct AttentionProblem {
  int64_t batch, heads, groups, queries, keys, depth, valueDepth;
  float scale;
  bool causal;
  int64_t window;                 ///< keys that a causal query sees at most, no more than there are; 0: all
  const int64_t *begin, *end;     ///< of the keys that a query sees: [batch or 1, queries], or null
  int64_t beginStride, endStride; ///< between batches of these, or 0
  bool isPartial;                 ///< backward: lse is of more keys than these
  MaskKind maskKind;
  const void *mask;
  int64_t maskStrides[4];
  Strided q, k, v, out, lse;
  Strided dout, dq, dk, dv; ///< backward only
};

/// Rows of queries per forward task, and of keys and queries per block.
inline constexpr int64_t attentionRows = 256;
inline constexpr int64_t attentionBlock = 64;

struct AttentionKernel {
  /// Floats of scratch per thread, 64-byte aligned.
  size_t (*forwardScratch)(const AttentionProblem &);
  size_t (*backwardScratch)(const AttentionProblem &);
  /// Queries [chunk * attentionRows, …) of one head.
  void (*forward)(const AttentionProblem &, float *scratch, int64_t batch, int64_t head, int64_t chunk);
  /// All of a group of heads: dk and dv, and dq of its heads.
  void (*backward)(const AttentionProblem &, float *scratch, int64_t batch, int64_t group);
  /// The same work in smaller tasks, for few groups on many threads: dk and dv of a block of keys, dq of a block of
  /// queries.
  void (*backwardKeys)(const AttentionProblem &, float *scratch, int64_t batch, int64_t group, int64_t block);
  void (*backwardQueries)(const AttentionProblem &, float *scratch, int64_t batch, int64_t head, int64_t block);
};

extern const AttentionKernel attentionBaseline;
#if defined(__x86_64__)
extern const AttentionKernel attentionAvx2;
extern const AttentionKernel attentionAvx512;
extern const AttentionKernel attentionAvx512Bf16;
#endif

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_ATTENTIONKERNEL_H
