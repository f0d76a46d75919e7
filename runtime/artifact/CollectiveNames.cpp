//===- CollectiveNames.cpp - what collectives are called --------------------===//

#include "runtime/artifact/CollectiveNames.h"

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

std::string_view toString(artifact::ReductionKind kind) {
  switch (kind) {
  case artifact::ReductionKind::Sum:
    return "sum";
  case artifact::ReductionKind::Max:
    return "max";
  case artifact::ReductionKind::Min:
    return "min";
  }
  return "reduction";
}

} // namespace tessera
