//===- FaultInjection.h - makes a rank late or wrong, for tests ------------===//
//
// TESSERA_TEST_DELAY="<rank>:<step>:<seconds>:<place>" lets a rank sleep at one place of one step: `step` (between two
// collectives, as a slow or stuck rank would), `data` (while it reads the batch), or `open` of step 0 (while it opens
// the data at the start). The place `flip` changes a bit of
// its first parameter after the step instead, as damaged memory would. Only tests set it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_FAULTINJECTION_H
#define TESSERA_RUNTIME_STEP_FAULTINJECTION_H

#include "runtime/state/StateView.h"

#include <cstdint>
#include <string_view>

namespace tessera {

class FaultInjection {
public:
  FaultInjection();
  void at(std::string_view place, int rank, int64_t step) const;
  void flip(int rank, int64_t step, const RankState &state) const;

private:
  int rank = -1;
  int64_t step = 0;
  double seconds = 0;
  char place[16] = "";
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_FAULTINJECTION_H
