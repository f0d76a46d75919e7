//===- Gemm.h - matrix products by oneDNN ----------------------------------===//
//
// c = alpha * a @ b + beta * c on strided operands [batch…, m, k] x [batch…, k, n], all f32, or a and b bf16 and c
// either. Sums are f32. Where oneDNN has no bf16 (below AVX-512), operands are widened and results rounded around an
// f32 product. A plan is made once per instruction; equal shapes share one primitive. Plain f32 products with a
// transposed left side (weight gradients) go to sgemm, which is 3-8 % faster there, all others to the matmul primitive.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_GEMM_H
#define TESSERA_RUNTIME_DEVICE_CPU_GEMM_H

#include "runtime/artifact/TensorView.h"
#include "runtime/base/Status.h"

#include <memory>

namespace tessera::cpu {

/// A product of fixed shapes and strides, for any addresses.
class GemmPlan {
public:
  virtual ~GemmPlan() = default;
  virtual Status run(const void *a, const void *b, void *c) = 0;
};

/// Makes the plans of one rank; not for several threads at once.
class GemmPlanner {
public:
  GemmPlanner();
  ~GemmPlanner();
  /// Only types, shapes and strides of the views matter. Call on the thread that will run the plan, after Team::adopt.
  Result<std::shared_ptr<GemmPlan>> plan(const TensorView &a, const TensorView &b, const TensorView &c, float alpha,
                                         float beta);
  /// Scratch that the plans share, bytes.
  size_t workspaceBytes() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_GEMM_H
