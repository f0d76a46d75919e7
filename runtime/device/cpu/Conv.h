//===- Conv.h - 2-D convolution and its gradients by oneDNN ----------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_CONV_H
#define TESSERA_RUNTIME_DEVICE_CPU_CONV_H

#include "runtime/artifact/TensorView.h"
#include "runtime/base/Status.h"

#include <memory>
#include <vector>

namespace tessera::cpu {

/// As artifact::Conv: x is NCHW, w is OIHW (I per group), y is NCHW.
struct ConvShape {
  artifact::ConvKind kind = artifact::ConvKind::Forward;
  std::vector<int64_t> strides, padding, dilations; ///< [h, w], [top, left, bottom, right], [h, w]
  int64_t groups = 1;
};

class ConvPlan {
public:
  virtual ~ConvPlan() = default;
  /// Writes y, x or w, by the kind of the plan.
  virtual Status run(void *x, void *w, void *y) = 0;
};

/// Makes the plans of one rank. oneDNN chooses the layouts it computes in; operands are reordered into shared scratch
/// where that differs from theirs.
class ConvPlanner {
public:
  ConvPlanner();
  ~ConvPlanner();
  Result<std::shared_ptr<ConvPlan>> plan(const ConvShape &shape, const TensorView &x, const TensorView &w,
                                         const TensorView &y);
  size_t workspaceBytes() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_CONV_H
