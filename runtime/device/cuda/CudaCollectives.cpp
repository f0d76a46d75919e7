//===- CudaCollectives.cpp - how the ranks of a run share GPUs --------------===//

#include "runtime/device/cuda/CudaCollectives.h"

#include "runtime/base/Log.h"

#include <fstream>
#include <map>
#include <set>
#include <unistd.h>

namespace tessera::cuda {

Result<std::unique_ptr<CudaCollectives>> joinRanks(const CollectiveSetUp &setUp) {
  CUuuid uuid{};
  TESSERA_CU(cuDeviceGetUuid(&uuid, setUp.device));
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::string gpu(uuid.bytes, sizeof(uuid.bytes)), process = boot + "/" + std::to_string(::getpid());
  Communicator &communicator = setUp.context->communicator;
  if (communicator.numRanks() == 1)
    return joinOnOneGpu(setUp);
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all, communicator.gatherBlobs(gpu + process, "comparison of GPUs"));
  std::map<std::string, size_t> firstOn;
  std::set<std::string> processes;
  bool isOneProcess = true, isOneHost = true;
  std::string shared;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    isOneProcess &= all[rank].substr(sizeof(uuid.bytes)) == all[0].substr(sizeof(uuid.bytes));
    isOneHost &= all[rank].compare(sizeof(uuid.bytes), boot.size() + 1, boot + "/") == 0;
    processes.insert(all[rank].substr(sizeof(uuid.bytes)));
    auto [first, isNew] = firstOn.emplace(all[rank].substr(0, sizeof(uuid.bytes)), rank);
    if (!isNew && shared.empty())
      shared = std::to_string(first->second) + " and " + std::to_string(rank);
  }
  if (shared.empty()) {
    if (setUp.options.usesGraphs && processes.size() < all.size() && communicator.rank() == 0)
      log::warn("several GPUs in one process: NCCL's manual advises one process per GPU (mpirun, torchrun, srun) where "
                "collectives are part of CUDA graphs; --no-graph does without");
    CollectiveSetUp known = setUp;
    known.isOneHost = isOneHost;
    return joinByNccl(known);
  }
  if (isOneProcess && firstOn.size() == 1)
    return joinOnOneGpu(setUp);
  return TESSERA_ERROR(InvalidArgument, "ranks " + shared +
                                            " share a GPU: start one rank per GPU, or all ranks as threads of one "
                                            "process on one GPU");
}

} // namespace tessera::cuda
