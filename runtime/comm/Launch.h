//===- Launch.h - how this process was started -----------------------------===//
//
// Reads from the environment whether this process is one of several, and how they reach each other: mpirun, srun with
// PMIx, torchrun's variables, or none of these (ranks are threads of this process).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_LAUNCH_H
#define TESSERA_RUNTIME_COMM_LAUNCH_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/remote/RemoteCommunicator.h"
#include "runtime/comm/tcp/TcpTransport.h"

#include <functional>
#include <optional>
#include <string>

namespace tessera {

enum class LaunchKind { Local, Mpi, Tcp };

struct LaunchPlan {
  LaunchKind kind = LaunchKind::Local;
  TcpOptions tcp;
};

/// Value of an environment variable, or null.
using Environment = std::function<const char *(const char *)>;

/// `wanted` is auto, local, mpi or tcp. An environment that is contradictory or incomplete is an error that says how to
/// start the run.
Result<LaunchPlan> planLaunch(const std::string &wanted, const Environment &environment);

/// The number that the launcher gave to this process, if it is one of several: known before the others are reached, and
/// even where the rest of the environment is wrong.
std::optional<int> launchedRank(const std::string &wanted, const Environment &environment);

/// Joins the other processes; not for Local.
Result<std::unique_ptr<Communicator>> connectProcesses(const LaunchPlan &plan, const RemoteWorldOptions &options);

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_LAUNCH_H
