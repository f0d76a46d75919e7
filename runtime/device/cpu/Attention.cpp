//===- Attention.cpp - attention forward and backward ----------------------===//

#include "runtime/device/cpu/Attention.h"

#include <algorithm>

namespace tessera::cpu {

std::vector<const AttentionKernel *> attentionKernels() {
  std::vector<const AttentionKernel *> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    if (__builtin_cpu_supports("avx512bf16"))
      found.push_back(&attentionAvx512Bf16);
    found.push_back(&attentionAvx512);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    found.push_back(&attentionAvx2);
#endif
  found.push_back(&attentionBaseline);
  return found;
}

const AttentionKernel &attentionKernel() {
  static const AttentionKernel &best = *attentionKernels().front();
  return best;
}

namespace {

Strided strided(const TensorView &view) {
  Strided tensor{view.data, {0, 0, 0, 0}, view.dtype == artifact::DataType::BF16};
  for (size_t dim = 0; dim < view.strides.size(); ++dim)
    tensor.strides[dim] = view.strides[dim];
  return tensor;
}

AttentionProblem describe(const AttentionArguments &arguments) {
  AttentionProblem problem{};
  const auto &q = arguments.q.shape, &v = arguments.v.shape;
  problem.batch = q[0];
  problem.heads = q[1];
  problem.queries = q[2];
  problem.depth = q[3];
  problem.groups = v[1];
  problem.keys = v[2];
  problem.valueDepth = v[3];
  problem.scale = arguments.scale;
  problem.causal = arguments.causal;
  problem.window = std::min(arguments.window, problem.keys);
  if (arguments.begin) {
    problem.begin = static_cast<const int64_t *>(arguments.begin->data);
    problem.end = static_cast<const int64_t *>(arguments.end->data);
    problem.beginStride = arguments.begin->shape[0] == 1 ? 0 : problem.queries;
    problem.endStride = arguments.end->shape[0] == 1 ? 0 : problem.queries;
  }
  problem.q = strided(arguments.q);
  problem.k = strided(arguments.k);
  problem.v = strided(arguments.v);
  problem.out = strided(arguments.out);
  problem.lse = strided(arguments.lse);
  problem.maskKind = MaskKind::None;
  if (const TensorView *mask = arguments.mask) {
    problem.maskKind = mask->dtype == artifact::DataType::F32 ? MaskKind::Additive : MaskKind::Boolean;
    problem.mask = mask->data;
    for (size_t dim = 0; dim < 4; ++dim)
      problem.maskStrides[dim] = mask->shape[dim] == 1 ? 0 : mask->strides[dim];
  }
  return problem;
}

AttentionProblem describeGrad(const AttentionGradArguments &arguments) {
  AttentionProblem problem = describe(arguments);
  problem.dout = strided(arguments.dout);
  problem.dq = strided(arguments.dq);
  problem.dk = strided(arguments.dk);
  problem.dv = strided(arguments.dv);
  problem.isPartial = arguments.isPartial;
  return problem;
}

/// Floats per thread, so that every thread's part is aligned.
size_t scratchFloats(const AttentionProblem &problem, bool backward, const AttentionKernel &kernel) {
  size_t floats = backward ? kernel.backwardScratch(problem) : kernel.forwardScratch(problem);
  return (floats + 15) / 16 * 16;
}

/// Runs `task(scratch, index)` for all indices; the order does not matter.
template <typename Task> void runTasks(int64_t count, Scratch &scratch, size_t floats, const Team &team, Task &&task) {
  scratch.require(floats * sizeof(float) * team.threads());
  auto *memory = static_cast<float *>(scratch.data());
  team.runEach(count, [&](int64_t index, int thread) { task(memory + floats * thread, index); });
}

} // namespace

size_t attentionScratchBytes(const AttentionArguments &arguments, const Team &team) {
  return scratchFloats(describe(arguments), false, attentionKernel()) * sizeof(float) * team.threads();
}

size_t attentionGradScratchBytes(const AttentionGradArguments &arguments, const Team &team) {
  return scratchFloats(describeGrad(arguments), true, attentionKernel()) * sizeof(float) * team.threads();
}

void attention(const AttentionArguments &arguments, Scratch &scratch, const Team &team, const AttentionKernel &kernel) {
  AttentionProblem problem = describe(arguments);
  int64_t chunks = (problem.queries + attentionRows - 1) / attentionRows;
  runTasks(problem.batch * problem.heads * chunks, scratch, scratchFloats(problem, false, kernel), team,
           [&](float *memory, int64_t index) {
             int64_t head = index / chunks;
             // The last queries first: causal ones see the most, and short tasks at the end keep threads busy.
             kernel.forward(problem, memory, head / problem.heads, head % problem.heads, chunks - 1 - index % chunks);
           });
}

void attentionGrad(const AttentionGradArguments &arguments, Scratch &scratch, const Team &team,
                   const AttentionKernel &kernel) {
  AttentionProblem problem = describeGrad(arguments);
  size_t floats = scratchFloats(problem, true, kernel);
  int64_t groups = problem.batch * problem.groups;
  if (groups >= team.threads()) {
    runTasks(groups, scratch, floats, team, [&](float *memory, int64_t index) {
      kernel.backward(problem, memory, index / problem.groups, index % problem.groups);
    });
    return;
  }
  // Fewer groups than threads: two sweeps of small tasks. The blocks and the order of every sum are the same.
  int64_t keyBlocks = (problem.keys + attentionBlock - 1) / attentionBlock,
          queryBlocks = (problem.queries + attentionBlock - 1) / attentionBlock;
  runTasks(groups * keyBlocks, scratch, floats, team, [&](float *memory, int64_t index) {
    int64_t group = index / keyBlocks;
    kernel.backwardKeys(problem, memory, group / problem.groups, group % problem.groups, index % keyBlocks);
  });
  runTasks(problem.batch * problem.heads * queryBlocks, scratch, floats, team, [&](float *memory, int64_t index) {
    int64_t head = index / queryBlocks;
    kernel.backwardQueries(problem, memory, head / problem.heads, head % problem.heads, index % queryBlocks);
  });
}

} // namespace tessera::cpu
