//===- Communication.h - collectives between the ranks of this process ----------------===//

#ifndef TESSERA_TOOLS_CALIBRATE_COMMUNICATION_H
#define TESSERA_TOOLS_CALIBRATE_COMMUNICATION_H

#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/device/cpu/Team.h"
#include "tools/tessera-calibrate/Lockstep.h"
#include "tools/tessera-calibrate/Measure.h"

namespace tessera::calibrate {

/// Latency and bandwidth of each collective, and how much computation and communication slow each other. With one rank
/// there is nothing to measure.
Status measureCommunication(int rank, const Options &options, Lockstep &lockstep, const cpu::Team &team,
                            Communicator &communicator, Measurements &result);

} // namespace tessera::calibrate

#endif // TESSERA_TOOLS_CALIBRATE_COMMUNICATION_H
