//===- Trainer.cpp - a whole training run ----------------------------------===//

#include "runtime/step/Trainer.h"

#include "runtime/base/Log.h"
#include "runtime/comm/Launch.h"
#include "runtime/comm/RankMessage.h"
#include "runtime/step/RankThreads.h"
#include "runtime/step/Run.h"

#include <cstdio>
#include <cstdlib>

namespace tessera {

/// Before there is a run: nothing has to be saved.
static TrainOutcome stoppedAtStart(const TrainOptions &options, int signal, const std::string &why) {
  bool isOwn = options.stopSignal && options.stopSignal->load() == signal;
  std::printf("stopped before the first step%s\n", isOwn ? "" : (": " + why).c_str());
  std::fflush(stdout);
  return {signal, false};
}

/// Sets a flag for as long as it lives.
class FlagScope {
public:
  explicit FlagScope(std::atomic<bool> *flag) : flag(flag) { set(true); }
  ~FlagScope() { set(false); }
  FlagScope(const FlagScope &) = delete;
  FlagScope &operator=(const FlagScope &) = delete;

private:
  void set(bool value) {
    if (flag)
      flag->store(value);
  }
  std::atomic<bool> *flag;
};

static Result<TrainOutcome> trainAs(const TrainOptions &options, LaunchPlan plan) {
  std::unique_ptr<Communicator> connection;
  if (plan.kind != LaunchKind::Local) {
    std::atomic<int> endedBy{0};
    plan.tcp.startTimeoutSeconds = options.startTimeoutSeconds;
    plan.tcp.stopSignal = options.stopSignal;
    plan.tcp.endedBy = &endedBy;
    // MPI waits for the others in calls of its own.
    FlagScope scope(plan.kind == LaunchKind::Mpi ? options.mayEndAtOnce : nullptr);
    if (int signal = options.stopSignal ? options.stopSignal->load() : 0)
      return stoppedAtStart(options, signal, "");
    Result<std::unique_ptr<Communicator>> connected =
        connectProcesses(plan, {options.stallTimeoutSeconds, options.stopSignal});
    if (!connected.isOk() && endedBy != 0)
      return stoppedAtStart(options, endedBy, connected.status().message());
    TESSERA_ASSIGN_OR_RETURN(connection, std::move(connected));
  }
  Communicator *joined = connection.get();
  auto run = std::make_shared<Run>(options, std::move(connection));
  StartWatch watch([&options, run] { return options.stopSignal && !run->hasBegun() ? options.stopSignal->load() : 0; });
  auto tellOthers = [run, joined](const Status &status) {
    if (joined)
      joined->abort(toldByRank(status, joined->rank()));
  };
  if (joined)
    joined->setBusy(true);
  ThreadsEnd ended = runThreads(
      1, [run](int) { return run->open(); }, [tellOthers](int, const Status &status) { tellOthers(status); },
      [joined] { return joined && !joined->abortReason().isOk(); }, watch);
  if (joined)
    joined->setBusy(false);
  const bool isOpen = ended.signal == 0 && ended.status.isOk() && !ended.isAnyRunning;
  if (isOpen)
    ended = runThreads(
        run->ranksHere(), [run](int index) { return run->runRank(index); },
        [run](int index, const Status &status) { run->communicator(index).abort(status); },
        [run] { return !run->communicator(0).abortReason().isOk(); }, watch);
  run->releaseFolder(ended.isAnyRunning);
  if (ended.signal != 0) {
    TrainOutcome outcome = stoppedAtStart(options, ended.signal, "");
    outcome.isAnyRankRunning = true;
    return outcome;
  }
  // The reason of the first who failed, which every rank reports.
  if (joined)
    TESSERA_RETURN_IF_ERROR(joined->abortReason());
  else if (isOpen)
    TESSERA_RETURN_IF_ERROR(run->communicator(0).abortReason());
  TESSERA_RETURN_IF_ERROR(ended.status);
  TrainOutcome outcome{run->stopSignal(), false};
  run->disconnect();
  return outcome;
}

Result<TrainOutcome> train(const TrainOptions &options) {
  Environment environment = [](const char *name) { return std::getenv(name); };
  std::optional<int> rank = launchedRank(options.comm, environment);
  if (rank)
    log::setPrefix("rank " + std::to_string(*rank) + ": ");
  Result<LaunchPlan> plan = planLaunch(options.comm, environment);
  Result<TrainOutcome> outcome = plan.isOk() ? trainAs(options, *plan) : plan.status();
  return outcome.isOk() || !rank ? outcome : Result<TrainOutcome>(seenByRank(outcome.status(), *rank));
}

} // namespace tessera
