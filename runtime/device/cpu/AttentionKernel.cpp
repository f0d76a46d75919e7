//===- AttentionKernel.cpp - blocked attention for one instruction set -----===//
//
// Built with TESSERA_ATTENTION (the table's name), TESSERA_VECTOR_BYTES and, if the processor multiplies pairs of bf16,
// TESSERA_PAIRS.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/AttentionBackward.h"
#include "runtime/device/cpu/AttentionForward.h"

#include <type_traits>

namespace tessera::cpu {
namespace {

/// Products of bf16 round probabilities and gradients of scores to bf16, which suits results in bf16 only.
bool usesPairs(const AttentionProblem &p) { return hasPairs && p.q.isHalf && p.k.isHalf && p.v.isHalf && p.out.isHalf; }
bool gradientUsesPairs(const AttentionProblem &p) {
  return usesPairs(p) && p.dout.isHalf && p.dq.isHalf && p.dk.isHalf && p.dv.isHalf;
}

size_t forwardScratch(const AttentionProblem &p) {
  Parts parts{nullptr};
  divideForward(p, parts);
  return parts.taken;
}

size_t backwardScratch(const AttentionProblem &p) {
  Parts parts{nullptr};
  divideBackward(p, parts);
  return parts.taken;
}

/// Calls `run` with std::true_type for products of pairs of bf16, where this table has them, else with std::false_type.
template <typename Run> void withPairs(bool usesPairs, Run run) {
  if constexpr (hasPairs)
    if (usesPairs)
      return run(std::true_type());
  run(std::false_type());
}

void forward(const AttentionProblem &p, float *scratch, int64_t batch, int64_t head, int64_t chunk) {
  withPairs(usesPairs(p), [&](auto pairs) { forwardAs<pairs.value>(p, scratch, batch, head, chunk); });
}

void backward(const AttentionProblem &p, float *scratch, int64_t batch, int64_t group) {
  withPairs(gradientUsesPairs(p), [&](auto pairs) { backwardAs<pairs.value>(p, scratch, batch, group); });
}

void backwardKeys(const AttentionProblem &p, float *scratch, int64_t batch, int64_t group, int64_t block) {
  withPairs(gradientUsesPairs(p), [&](auto pairs) { backwardKeysAs<pairs.value>(p, scratch, batch, group, block); });
}

void backwardQueries(const AttentionProblem &p, float *scratch, int64_t batch, int64_t head, int64_t block) {
  withPairs(gradientUsesPairs(p), [&](auto pairs) { backwardQueriesAs<pairs.value>(p, scratch, batch, head, block); });
}

} // namespace

const AttentionKernel TESSERA_ATTENTION = {forwardScratch, backwardScratch, forward,
                                           backward,       backwardKeys,    backwardQueries};

} // namespace tessera::cpu
