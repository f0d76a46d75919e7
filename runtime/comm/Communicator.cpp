//===- Communicator.cpp - how ranks talk -----------------------------------===//

#include "runtime/comm/Communicator.h"

#include <algorithm>
#include <cstdio>

namespace tessera {

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
