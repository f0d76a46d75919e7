//===- Launch.cpp - how this process was started ---------------------------===//

#include "runtime/comm/Launch.h"

#include "runtime/comm/mpi/MpiTransport.h"

#include <charconv>

namespace tessera {
namespace {

class Variables {
public:
  explicit Variables(const Environment &environment) : environment(environment) {}

  bool has(const char *name) const { return environment(name) != nullptr; }
  std::string text(const char *name) const {
    const char *value = environment(name);
    return value ? value : "";
  }
  std::optional<int> number(const char *name) const {
    std::string value = text(name);
    int result = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (value.empty() || error != std::errc() || end != value.data() + value.size())
      return std::nullopt;
    return result;
  }

private:
  const Environment &environment;
};

/// How many tasks a launcher of MPI programs started; 0: it was none.
int mpiTasks(const Variables &variables) {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (auto size = variables.number(name))
      return *size;
  if (variables.has("PMIX_RANK"))
    return variables.number("SLURM_STEP_NUM_TASKS").value_or(2);
  return 0;
}

/// The meeting point of the other variables.
Status readMaster(const Variables &variables, TcpOptions &tcp) {
  tcp.host = variables.text("MASTER_ADDR");
  auto port = variables.number("TESSERA_PORT");
  if (!port) {
    port = variables.number("MASTER_PORT");
    // torchrun's agent keeps the port for its own store; the next one is ours.
    if (port && variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True")
      port = *port + 1;
  }
  if (tcp.host.empty() || !port || *port < 1 || *port > 65535)
    return TESSERA_ERROR(InvalidArgument,
                         "MASTER_ADDR and MASTER_PORT must name a host and a port of rank 0 that all ranks reach");
  tcp.port = *port;
  return Status::ok();
}

Status readTorchrun(const Variables &variables, TcpOptions &tcp) {
  auto rank = variables.number("RANK"), size = variables.number("WORLD_SIZE");
  if (!rank || !size || *rank < 0 || *size < 1 || *rank >= *size)
    return TESSERA_ERROR(InvalidArgument, "RANK='" + variables.text("RANK") + "' and WORLD_SIZE='" +
                                              variables.text("WORLD_SIZE") +
                                              "' must be numbers with 0 <= RANK < WORLD_SIZE (--comm local ignores "
                                              "them)");
  tcp.rank = *rank;
  tcp.numRanks = *size;
  return readMaster(variables, tcp);
}

/// The first host of a list as Slurm writes it: "gpu[07-09,12],login1" begins with gpu07.
std::string firstHost(const std::string &list) {
  size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket)
    return list.substr(0, comma);
  size_t end = list.find_first_of(",-]", bracket), close = list.find(']', bracket);
  if (end == std::string::npos || close == std::string::npos)
    return "";
  size_t after = list.find_first_of(",[", close);
  if (after != std::string::npos && list[after] == '[') // two ranges in one name
    return "";
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) +
         list.substr(close + 1, after == std::string::npos ? after : after - close - 1);
}

/// Tasks of srun without PMIx: they know their numbers, but MPI would give each a world of its own. The first task is
/// on the first host of the step.
Status readSlurm(const Variables &variables, TcpOptions &tcp) {
  auto rank = variables.number("SLURM_PROCID"), size = variables.number("SLURM_STEP_NUM_TASKS");
  if (!rank || !size || *rank < 0 || *rank >= *size)
    return TESSERA_ERROR(InvalidArgument, "SLURM_PROCID='" + variables.text("SLURM_PROCID") +
                                              "' and SLURM_STEP_NUM_TASKS='" + variables.text("SLURM_STEP_NUM_TASKS") +
                                              "' must be numbers with 0 <= SLURM_PROCID < SLURM_STEP_NUM_TASKS");
  tcp.rank = *rank;
  tcp.numRanks = *size;
  if (variables.has("MASTER_ADDR"))
    return readMaster(variables, tcp);
  for (const char *name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    if (tcp.host.empty())
      tcp.host = firstHost(variables.text(name));
  auto job = variables.number("SLURM_JOB_ID"), step = variables.number("SLURM_STEP_ID");
  auto port = variables.number("TESSERA_PORT");
  if (!port)
    port = variables.number("MASTER_PORT");
  if (!port && job)
    port = 20000 + static_cast<int>((static_cast<int64_t>(*job) * 37 + step.value_or(0)) % 10000);
  if (tcp.host.empty() || !port || *port < 1 || *port > 65535)
    return TESSERA_ERROR(InvalidArgument,
                         "srun started " + std::to_string(tcp.numRanks) +
                             " tasks without PMIx, and its environment does not say where the first one is: use 'srun "
                             "--mpi=pmix', or set MASTER_ADDR and MASTER_PORT to a host and port of the first task");
  tcp.port = *port;
  return Status::ok();
}

} // namespace

Result<LaunchPlan> planLaunch(const std::string &wanted, const Environment &environment) {
  Variables variables(environment);
  LaunchPlan plan;
  int slurmTasks = variables.number("SLURM_STEP_NUM_TASKS").value_or(0);
  bool isTorchrun = variables.number("WORLD_SIZE").value_or(0) > 1 || variables.has("RANK");
  if (wanted == "local")
    return plan;
  if (wanted == "mpi" || (wanted == "auto" && mpiTasks(variables) > 1)) {
    plan.kind = LaunchKind::Mpi;
    if (mpiTasks(variables) == 0)
      return TESSERA_ERROR(InvalidArgument, "--comm mpi: this process was not started by mpirun or 'srun --mpi=pmix'");
    return plan;
  }
  if (wanted != "auto" && wanted != "tcp")
    return TESSERA_ERROR(InvalidArgument, "--comm: unknown '" + wanted + "', expected auto, local, mpi or tcp");
  if (mpiTasks(variables) == 1 && wanted == "auto")
    return plan;
  if (isTorchrun) {
    TESSERA_RETURN_IF_ERROR(readTorchrun(variables, plan.tcp));
  } else if (slurmTasks > 1) {
    TESSERA_RETURN_IF_ERROR(readSlurm(variables, plan.tcp));
  } else if (wanted == "tcp") {
    return TESSERA_ERROR(InvalidArgument, "--comm tcp needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  }
  if (plan.tcp.numRanks > 1 || wanted == "tcp")
    plan.kind = LaunchKind::Tcp;
  return plan;
}

std::optional<int> launchedRank(const std::string &wanted, const Environment &environment) {
  Variables variables(environment);
  Result<LaunchPlan> plan = planLaunch(wanted, environment);
  if (plan.isOk() && plan->kind == LaunchKind::Local)
    return std::nullopt;
  if (plan.isOk() && plan->kind == LaunchKind::Tcp)
    return plan->tcp.rank;
  // Of MPI's the first that is there; where the environment is wrong, of any launcher.
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "RANK"})
    if (auto rank = variables.number(name))
      return rank;
  return variables.has("SLURM_STEP_NUM_TASKS") ? variables.number("SLURM_PROCID") : std::nullopt;
}

Result<std::unique_ptr<Communicator>> connectProcesses(const LaunchPlan &plan, const RemoteWorldOptions &options) {
  if (plan.kind == LaunchKind::Local)
    return TESSERA_ERROR(Internal, "ranks of one process need no connection");
  TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                           plan.kind == LaunchKind::Mpi ? openMpiTransport() : openTcpTransport(plan.tcp));
  return createRemoteCommunicator(std::move(transport), options);
}

} // namespace tessera
