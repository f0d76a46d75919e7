//===- Nearest.cpp - names like what somebody wrote ---------------------------===//

#include "runtime/base/Nearest.h"

#include <algorithm>

namespace tessera {

size_t distanceToPart(std::string_view wanted, std::string_view name) {
  std::vector<size_t> row(name.size() + 1, 0); // a part begins anywhere
  for (char letter : wanted) {
    size_t diagonal = row.front()++;
    for (size_t at = 0; at < name.size(); ++at) {
      const size_t changed = diagonal + (name[at] == letter ? 0 : 1);
      diagonal = row[at + 1];
      row[at + 1] = std::min({changed, diagonal + 1, row[at] + 1});
    }
  }
  return *std::min_element(row.begin(), row.end());
}

std::vector<std::string_view> nearestTo(std::string_view wanted, std::vector<std::string_view> names, size_t count,
                                        size_t within) {
  std::vector<std::pair<size_t, std::string_view>> ranked;
  for (std::string_view name : names)
    if (const size_t distance = distanceToPart(wanted, name); distance <= within)
      ranked.emplace_back(distance, name);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  ranked.resize(std::min(ranked.size(), count));
  names.clear();
  for (const auto &[distance, name] : ranked)
    names.push_back(name);
  return names;
}

} // namespace tessera
