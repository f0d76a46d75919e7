//===- FaultInjection.h - makes a rank late, for tests ---------------------===//
//
// TESSERA_TEST_DELAY="<rank>:<step>:<seconds>:<place>" lets a rank sleep at one place of one step: `step` (between two
// collectives, as a slow or stuck rank would) or `data` (while it reads the batch). Only tests set it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_FAULTINJECTION_H
#define TESSERA_RUNTIME_STEP_FAULTINJECTION_H

#include <cstdint>
#include <string_view>

namespace tessera {

class FaultInjection {
public:
  FaultInjection();
  void at(std::string_view place, int rank, int64_t step) const;

private:
  int rank = -1;
  int64_t step = 0;
  double seconds = 0;
  char place[16] = "";
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_FAULTINJECTION_H
