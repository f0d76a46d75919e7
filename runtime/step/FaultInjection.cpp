//===- FaultInjection.cpp - makes a rank late or wrong, for tests ----------===//

#include "runtime/step/FaultInjection.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tessera {

FaultInjection::FaultInjection() {
  const char *text = std::getenv("TESSERA_TEST_DELAY");
  if (text && std::sscanf(text, "%d:%" SCNd64 ":%lf:%15s", &rank, &step, &seconds, place) != 4)
    rank = -1;
}

void FaultInjection::at(std::string_view here, int ownRank, int64_t ownStep) const {
  if (ownRank == rank && ownStep == step && here == place)
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void FaultInjection::flip(int ownRank, int64_t ownStep, const RankState &state) const {
  if (ownRank != rank || ownStep != step || std::string_view(place) != "flip")
    return;
  for (const StateView &view : state)
    if (view.data && view.localBytes() > 0) {
      *view.data ^= 1;
      return;
    }
}

} // namespace tessera
