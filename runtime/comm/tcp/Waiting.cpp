//===- Waiting.cpp - how long one waits, and telling of it -----------------===//

#include "runtime/comm/tcp/Waiting.h"

#include "runtime/base/Log.h"

#include <algorithm>
#include <cstdio>

namespace tessera::tcp {

static std::string format(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", seconds);
  return text;
}

std::string Waiting::limit() const { return format(limitSeconds) + " s (--start-timeout)"; }

void Waiting::tell(const std::function<std::string()> &what) {
  constexpr double longestInterval = 600;
  double now = seconds();
  if (now < nextLine)
    return;
  log::info("{} ({:.0f} s{})", what(), now, limitSeconds > 0 ? " of " + format(limitSeconds) : "");
  interval = std::min(2 * interval, longestInterval);
  nextLine = now + interval;
}

std::string listRanks(const std::vector<int> &ranks) {
  std::string text;
  for (size_t first = 0, last = 0; first < ranks.size(); first = last + 1) {
    for (last = first; last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1;)
      ++last;
    if (last == first + 1) // of two, each is named
      last = first;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[first]);
    if (last > first)
      text += "-" + std::to_string(ranks[last]);
  }
  return text;
}

} // namespace tessera::tcp
