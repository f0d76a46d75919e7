//===- Communicator.cpp - how ranks talk -----------------------------------===//

#include "runtime/comm/Communicator.h"

#include <algorithm>
#include <cstdio>

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

double indirectPatience(double stallTimeoutSeconds) { return std::min(stallTimeoutSeconds / 2, 5.0); }

std::string describe(std::string_view what, const CollectiveInfo &info) {
  std::string text(what);
  if (!info.label.empty())
    text += " '" + std::string(info.label) + "'";
  if (info.step > 0)
    text += " of step " + std::to_string(info.step);
  if (!info.location.empty())
    text += " (node " + std::string(info.location) + ")";
  return text;
}

std::string describeStall(const std::vector<int> &missing, const std::string &what, double seconds, int waiting) {
  std::string text = missing.size() == 1 ? "stalled: rank " : "stalled: ranks ";
  for (size_t index = 0; index < missing.size(); ++index)
    text += (index ? ", " : "") + std::to_string(missing[index]);
  char limit[32];
  std::snprintf(limit, sizeof(limit), "%g", seconds);
  return text + " did not reach " + what + " within " + limit + " s, rank " + std::to_string(waiting) + " waits there";
}

} // namespace tessera
