//===- Epilogue.h - bias, GELU and their gradients after a product ---------===//
//
// What a library for GPUs does while it writes a product: here an f32 product into scratch and loops behind it, so that
// artifacts with epilogues run and are tested without a GPU. Plain loops on the calling thread; sums are in row order.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_EPILOGUE_H
#define TESSERA_RUNTIME_DEVICE_CPU_EPILOGUE_H

#include "runtime/artifact/Epilogue.h"
#include "runtime/artifact/TensorView.h"
#include "runtime/base/Status.h"
#include "runtime/device/cpu/Gemm.h"

#include <optional>
#include <vector>

namespace tessera::cpu {

/// The addresses of one run; input and output are null where the epilogue has none.
struct EpilogueBuffers {
  const void *a, *b;
  void *c;
  const void *input;
  void *output;
};

class EpiloguePlan {
public:
  /// The views are those that verifyEpilogue accepts.
  static Result<std::unique_ptr<EpiloguePlan>> make(artifact::Epilogue epilogue, const TensorView &a,
                                                    const TensorView &b, const TensorView &c, float alpha, float beta,
                                                    GemmPlanner &planner);
  Status run(const EpilogueBuffers &buffers);

private:
  void finish(const EpilogueBuffers &buffers);
  void sumOperand(const EpilogueBuffers &buffers) const;

  artifact::Epilogue epilogue = artifact::Epilogue::None;
  TensorView a, b, c;
  std::shared_ptr<GemmPlan> product;
  std::vector<float> wide; ///< the product in f32, before it is finished
};

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_EPILOGUE_H
