//===- CudnnPlans.cpp - the plans of cuDNN for one rank ------------------===//

#include "runtime/device/cuda/CudnnPlans.h"

#include "runtime/base/Guard.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

namespace tessera::cuda {

CudnnPlans::~CudnnPlans() {
  plans.clear();
  for (cudnnHandle_t handle : handles)
    cudnnDestroy(handle);
}

Result<cudnnHandle_t> CudnnPlans::handle(size_t index) {
  while (handles.size() <= index) {
    cudnnHandle_t made = nullptr;
    TESSERA_RETURN_IF_ERROR(cudnnCheck("cannot be initialised", cudnnCreate(&made)));
    handles.push_back(made);
  }
  return handles[index];
}

static CudnnPlans::Plan makePlan(const CudnnGraph &graph, cudnnHandle_t handle) {
  return guarded([&]() -> CudnnPlans::Plan {
    TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<CudnnPlan> made, CudnnPlan::make(graph, handle));
    return std::shared_ptr<CudnnPlan>(std::move(made));
  });
}

Status CudnnPlans::makeAhead(const std::vector<CudnnGraph> &graphs, int threads) {
  std::set<CudnnGraph> distinct(graphs.begin(), graphs.end());
  std::erase_if(distinct, [&](const CudnnGraph &graph) { return plans.contains(graph); });
  if (distinct.empty())
    return Status::ok();
  const std::vector<CudnnGraph> missing(distinct.begin(), distinct.end());
  std::vector<std::optional<Plan>> made(missing.size());
  const size_t workers = std::clamp<size_t>(static_cast<size_t>(threads), 1, missing.size());
  TESSERA_RETURN_IF_ERROR(handle(workers - 1).status());
  CUcontext context = nullptr;
  TESSERA_CU(cuCtxGetCurrent(&context));
  std::atomic<size_t> next{0};
  auto work = [&](size_t worker) {
    cuCtxSetCurrent(context);
    for (size_t index = next++; index < missing.size(); index = next++)
      made[index] = makePlan(missing[index], handles[worker]);
  };
  std::vector<std::thread> others;
  // A thread that the system refuses is one that the rest does without.
  static_cast<void>(guarded([&] {
    for (size_t worker = 1; worker < workers; ++worker)
      others.emplace_back(work, worker);
    return Status::ok();
  }));
  work(0);
  for (std::thread &other : others)
    other.join();
  for (size_t index = 0; index < missing.size(); ++index)
    plans.emplace(missing[index], std::move(*made[index]));
  return Status::ok();
}

CudnnPlans::Plan CudnnPlans::find(const CudnnGraph &graph) {
  auto found = plans.find(graph);
  if (found == plans.end()) {
    TESSERA_ASSIGN_OR_RETURN(cudnnHandle_t first, handle(0));
    found = plans.emplace(graph, makePlan(graph, first)).first;
  }
  return found->second;
}

} // namespace tessera::cuda
