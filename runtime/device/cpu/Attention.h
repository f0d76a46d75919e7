//===- Attention.h - attention forward and backward ------------------------===//
//
// f32, or bf16 added up in f32, any strides, grouped heads, boolean or additive masks, ranges of keys, causal. Never
// stores scores of the whole sequence. The instruction set is chosen at run time; results do not depend on the number
// of threads.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_ATTENTION_H
#define TESSERA_RUNTIME_DEVICE_CPU_ATTENTION_H

#include "runtime/artifact/TensorView.h"
#include "runtime/device/cpu/AttentionKernel.h"
#include "runtime/device/cpu/Dnn.h"
#include "runtime/device/cpu/Team.h"

#include <cstddef>
#include <vector>

namespace tessera::cpu {

struct AttentionArguments {
  TensorView q, k, v, out, lse;
  const TensorView *mask = nullptr;
  const TensorView *begin = nullptr, *end = nullptr; ///< I64 [B or 1, Tq]: the keys that a query sees
  float scale = 1;
  bool causal = false;
  int64_t window = 0; ///< keys that a causal query sees at most; 0: all
};
struct AttentionGradArguments : AttentionArguments {
  TensorView dout, dq, dk, dv;
  bool isPartial = false; ///< out and lse are of an attention to more keys than these
};

/// The best table for this processor.
const AttentionKernel &attentionKernel();
/// All tables that this processor can run, best first (for tests).
std::vector<const AttentionKernel *> attentionKernels();

/// Bytes of scratch that a call needs.
size_t attentionScratchBytes(const AttentionArguments &arguments, const Team &team);
size_t attentionGradScratchBytes(const AttentionGradArguments &arguments, const Team &team);

void attention(const AttentionArguments &arguments, Scratch &scratch, const Team &team,
               const AttentionKernel &kernel = attentionKernel());
void attentionGrad(const AttentionGradArguments &arguments, Scratch &scratch, const Team &team,
                   const AttentionKernel &kernel = attentionKernel());

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_ATTENTION_H
