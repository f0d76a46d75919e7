//===- Trainer.cpp - a whole training run ----------------------------------===//

#include "runtime/step/Trainer.h"

#include "runtime/base/Guard.h"
#include "runtime/base/Log.h"
#include "runtime/comm/Launch.h"
#include "runtime/comm/RankMessage.h"
#include "runtime/step/Run.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace tessera {

/// How long ranks have to notice that the run has failed, before they are taken to be stuck.
static constexpr std::chrono::seconds abortGrace{5};

/// Runs the ranks of this process until they end, or one fails and the others had time to notice.
static Status runRanks(const std::shared_ptr<Run> &run) {
  struct Progress {
    std::mutex mutex;
    std::condition_variable changed;
    int running;
    bool hasFailed = false;
  };
  auto progress = std::make_shared<Progress>();
  progress->running = run->ranksHere();
  std::vector<std::thread> threads;
  threads.reserve(run->ranksHere());
  auto runOne = [run, progress](int index) {
    Status status = guarded([&] { return run->runRank(index); });
    if (!status.isOk())
      run->communicator(index).abort(status);
    std::lock_guard<std::mutex> lock(progress->mutex);
    --progress->running;
    progress->hasFailed |= !status.isOk();
    progress->changed.notify_all();
  };
  for (int index = 0; index < run->ranksHere(); ++index) {
    Status started = guarded([&] {
      threads.emplace_back(runOne, index);
      return Status::ok();
    });
    if (started.isOk())
      continue;
    run->communicator(index).abort(started.withContext("the thread of rank " + std::to_string(index)));
    std::lock_guard<std::mutex> lock(progress->mutex);
    progress->running -= run->ranksHere() - index;
    break;
  }

  std::unique_lock<std::mutex> lock(progress->mutex);
  // Another process may have failed while the ranks of this one are stuck.
  while (progress->running > 0 && !progress->hasFailed && run->communicator(0).abortReason().isOk())
    progress->changed.wait_for(lock, std::chrono::milliseconds(100));
  bool allEnded = progress->changed.wait_for(lock, abortGrace, [&] { return progress->running == 0; });
  lock.unlock();
  for (std::thread &thread : threads)
    allEnded ? thread.join() : thread.detach(); // a stuck rank keeps `run` alive
  return run->communicator(0).abortReason();
}

/// Before there is a run: nothing has to be saved.
static TrainOutcome stoppedAtStart(const TrainOptions &options, int signal, const std::string &why) {
  bool isOwn = options.stopSignal && options.stopSignal->load() == signal;
  std::printf("stopped before the first step%s\n", isOwn ? "" : (": " + why).c_str());
  std::fflush(stdout);
  return {signal};
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
  if (joined)
    joined->setBusy(true);
  Status opened = guarded([&] { return run->open(); });
  if (joined)
    joined->setBusy(false);
  if (!opened.isOk()) {
    run->releaseFolder();
    if (!joined)
      return opened;
    joined->abort(opened);
    return joined->abortReason();
  }
  Status ended = runRanks(run);
  run->releaseFolder();
  TESSERA_RETURN_IF_ERROR(ended);
  TrainOutcome outcome{run->stopSignal()};
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
