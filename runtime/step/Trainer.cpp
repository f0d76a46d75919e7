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
#include <functional>
#include <mutex>
#include <thread>

namespace tessera {

/// How long ranks have to notice that the run has failed, before they are taken to be stuck.
static constexpr std::chrono::seconds abortGrace{5};
/// How long a run that is asked to end before its first step has to come to it, where all ranks agree to end. What it
/// does then (reading data or weights, trying algorithms) may take long, and nothing is lost by leaving it.
static constexpr std::chrono::seconds startGrace{2};

namespace {

/// How threads of a run have ended.
struct Ended {
  Status status;
  int signal = 0;            ///< left before the first step because of it; 0: not
  bool isAnyRunning = false; ///< a thread is stuck
};

/// Whether the run has been asked for an end before its first step, and for too long.
class StartWatch {
public:
  StartWatch(const TrainOptions &options, std::shared_ptr<Run> run) : options(options), run(std::move(run)) {}

  int signal() const { return options.stopSignal && !run->hasBegun() ? options.stopSignal->load() : 0; }
  bool isOver() {
    if (signal() == 0)
      return false;
    if (!asked)
      asked = Clock::now();
    return Clock::now() - *asked > startGrace;
  }

private:
  using Clock = std::chrono::steady_clock;
  const TrainOptions &options;
  const std::shared_ptr<Run> run;
  std::optional<Clock::time_point> asked;
};

} // namespace

/// Runs `body(0)` … `body(count - 1)` on threads until all end, or one fails (which `fail` is told) and the others had
/// time to notice. `hasFailed` tells of failures elsewhere. A thread that is stuck keeps what `body` holds alive.
static Ended runThreads(int count, const std::function<Status(int)> &body,
                        const std::function<void(int, const Status &)> &fail, const std::function<bool()> &hasFailed,
                        StartWatch &watch) {
  struct Progress {
    std::mutex mutex;
    std::condition_variable changed;
    int running;
    Status failure;
  };
  auto progress = std::make_shared<Progress>();
  progress->running = count;
  std::vector<std::thread> threads;
  threads.reserve(count);
  auto runOne = [body, fail, progress](int index) {
    Status status = guarded([&] { return body(index); });
    if (!status.isOk())
      fail(index, status);
    std::lock_guard<std::mutex> lock(progress->mutex);
    --progress->running;
    if (progress->failure.isOk())
      progress->failure = status;
    progress->changed.notify_all();
  };
  for (int index = 0; index < count; ++index) {
    Status started = guarded([&] {
      threads.emplace_back(runOne, index);
      return Status::ok();
    });
    if (started.isOk())
      continue;
    started = started.withContext("the thread of rank " + std::to_string(index));
    fail(index, started);
    std::lock_guard<std::mutex> lock(progress->mutex);
    progress->running -= count - index;
    progress->failure = started;
    break;
  }

  Ended ended;
  std::unique_lock<std::mutex> lock(progress->mutex);
  while (progress->running > 0 && progress->failure.isOk() && !hasFailed() && ended.signal == 0) {
    progress->changed.wait_for(lock, std::chrono::milliseconds(100));
    ended.signal = watch.isOver() ? watch.signal() : 0;
  }
  if (ended.signal != 0 && progress->running > 0) {
    lock.unlock();
    fail(0, TESSERA_ERROR(Aborted, "asked to end by signal " + std::to_string(ended.signal)));
    lock.lock();
  }
  ended.isAnyRunning = !progress->changed.wait_for(lock, abortGrace, [&] { return progress->running == 0; });
  ended.status = progress->failure;
  // Others may have been asked to end as well, and have left first.
  if (ended.signal == 0 && ended.status.code() == StatusCode::Aborted)
    ended.signal = watch.signal();
  lock.unlock();
  for (std::thread &thread : threads)
    ended.isAnyRunning ? thread.detach() : thread.join();
  return ended;
}

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
  StartWatch watch(options, run);
  auto tellOthers = [run, joined](const Status &status) {
    if (joined)
      joined->abort(toldByRank(status, joined->rank()));
  };
  if (joined)
    joined->setBusy(true);
  Ended opened = runThreads(
      1, [run](int) { return run->open(); }, [tellOthers](int, const Status &status) { tellOthers(status); },
      [joined] { return joined && !joined->abortReason().isOk(); }, watch);
  if (joined)
    joined->setBusy(false);
  if (opened.signal == 0 && opened.status.isOk() && !opened.isAnyRunning)
    opened = runThreads(
        run->ranksHere(), [run](int index) { return run->runRank(index); },
        [run](int index, const Status &status) { run->communicator(index).abort(status); },
        [run] { return !run->communicator(0).abortReason().isOk(); }, watch);
  run->releaseFolder(opened.isAnyRunning);
  Communicator *any = joined ? joined : run->ranksHere() > 0 ? &run->communicator(0) : nullptr;
  if (opened.signal != 0) {
    TrainOutcome outcome = stoppedAtStart(options, opened.signal, "");
    outcome.isAnyRankRunning = true;
    return outcome;
  }
  // The reason of the first who failed, which every rank reports.
  if (any)
    TESSERA_RETURN_IF_ERROR(any->abortReason());
  TESSERA_RETURN_IF_ERROR(opened.status);
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
