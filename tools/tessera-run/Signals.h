//===- Signals.h - how signals end a run -----------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_RUN_SIGNALS_H
#define TESSERA_TOOLS_TESSERA_RUN_SIGNALS_H

#include <atomic>

namespace tessera {

/// What the handlers share with the run; it lives as long as the process.
struct SignalState {
  std::atomic<int> stopSignal{0};         ///< the first signal that asked for an end; 0: none
  std::atomic<bool> mayEndAtOnce{false};  ///< TrainOptions::mayEndAtOnce
  std::atomic<long> firstMilliseconds{0}; ///< when SIGINT or SIGTERM came first; 0: not yet
};

/// SIGINT, SIGTERM, SIGUSR1 (which mpirun forwards and Slurm can send ahead of a time limit) and SIGHUP ask for an
/// orderly end. A later SIGINT or SIGTERM ends the process at once with 128 + signal; within a second of the first it
/// is taken for the same wish, as launchers and timeout(1) send it to a process and to its group. Signals that are
/// ignored at the start (nohup, background jobs) stay so. Writes to a closed pipe and beyond a limit of file sizes fail
/// instead of ending the process. If TESSERA_PARENT is the process that started this one, its end is as a SIGTERM.
SignalState &handleSignals();

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_RUN_SIGNALS_H
