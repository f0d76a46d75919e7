//===- Communicator.cpp - how ranks talk -----------------------------------===//

#include "runtime/comm/Communicator.h"

namespace tessera {

std::string_view toString(artifact::CollectiveKind kind) {
  switch (kind) {
  case artifact::CollectiveKind::AllGather:
    return "all_gather";
  case artifact::CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case artifact::CollectiveKind::AllReduce:
    return "all_reduce";
  case artifact::CollectiveKind::AllToAll:
    return "all_to_all";
  case artifact::CollectiveKind::Permute:
    return "permute";
  }
  return "collective";
}

} // namespace tessera
