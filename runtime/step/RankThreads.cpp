//===- RankThreads.cpp - the threads of a run, and how they end ------------===//

#include "runtime/step/RankThreads.h"

#include "runtime/base/Guard.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tessera {

/// How long ranks have to notice that the run has failed, before they are taken to be stuck.
static constexpr std::chrono::seconds abortGrace{5};
/// How long a run that is asked to end before its first step has to come to it, where all ranks agree to end. What it
/// does then (reading data or weights, trying algorithms) may take long, and nothing is lost by leaving it.
static constexpr std::chrono::seconds startGrace{2};

bool StartWatch::isOver() {
  if (signal() == 0)
    return false;
  if (!asked)
    asked = Clock::now();
  return Clock::now() - *asked > startGrace;
}

ThreadsEnd runThreads(int count, const std::function<Status(int)> &body,
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

  ThreadsEnd ended;
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

} // namespace tessera
