//===- CudnnPlans.h - the plans of cuDNN for one rank --------------------===//
//
// Making a plan takes the library up to a second, and a model has the same graphs in every layer: equal graphs share
// one plan, and those of a program are made on several threads.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDNNPLANS_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDNNPLANS_H

#include "runtime/device/cuda/CudnnPlan.h"

#include <map>
#include <memory>
#include <vector>

namespace tessera::cuda {

/// The library is initialised by the first graph that needs it. Plans are run by one thread.
class CudnnPlans {
public:
  using Plan = Result<std::shared_ptr<CudnnPlan>>;

  CudnnPlans() = default;
  CudnnPlans(const CudnnPlans &) = delete;
  CudnnPlans &operator=(const CudnnPlans &) = delete;
  ~CudnnPlans();

  /// Makes the plans of those graphs that have none yet on so many threads at the most. What cannot be made is an error
  /// of `find`, as another kernel may do instead.
  Status makeAhead(const std::vector<CudnnGraph> &graphs, int threads);
  /// The plan of a graph; made now if it has none.
  Plan find(const CudnnGraph &graph);

private:
  Result<cudnnHandle_t> handle(size_t index);

  std::vector<cudnnHandle_t> handles; ///< by thread, as no two threads may use the same
  std::map<CudnnGraph, Plan> plans;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDNNPLANS_H
