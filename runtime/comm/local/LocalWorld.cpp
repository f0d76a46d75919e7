//===- LocalWorld.cpp - the state that ranks of one process share ----------===//

#include "runtime/comm/local/LocalWorld.h"

#include <algorithm>

namespace tessera {

static void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

LocalGroup &LocalWorld::group(const std::vector<int> &members, int channel) {
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<LocalGroup> &known = groups[{members, channel}];
  if (!known)
    known = std::make_unique<LocalGroup>(members);
  return *known;
}

Status LocalWorld::meet(LocalGroup &group, int position, const LocalActivity &activity) {
  uint64_t meeting = group.finished.load(std::memory_order_acquire);
  if (aborted.load(std::memory_order_acquire))
    return abortReason();
  group.meetings[position].store(meeting + 1, std::memory_order_relaxed);
  if (group.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == group.members.size()) {
    group.arrived.store(0, std::memory_order_relaxed);
    {
      std::lock_guard<std::mutex> lock(mutex);
      group.finished.store(meeting + 1, std::memory_order_release);
    }
    group.changed.notify_all();
    return Status::ok();
  }
  auto isOver = [&] { return group.finished.load(std::memory_order_acquire) != meeting; };
  auto isAborted = [&] { return aborted.load(std::memory_order_acquire); };
  // Ranks arrive nearly together as a rule: look for a moment before going to sleep, but not so long that a core is
  // lost.
  for (int look = 0; look < 2000 && !isOver() && !isAborted(); ++look)
    pauseBriefly();
  if (!isOver()) {
    std::unique_lock<std::mutex> lock(mutex);
    auto isAwake = [&] { return isOver() || isAborted(); };
    std::atomic<int> &waits = ranks[group.members[position]].waits;
    ++waits;
    for (Clock::time_point begin = Clock::now(); !isAwake();) {
      if (stallTimeoutSeconds <= 0 || activity.isPatient)
        group.changed.wait(lock, isAwake);
      else if (!group.changed.wait_until(lock, deadline(group, position, begin), isAwake) &&
               deadline(group, position, begin) <= Clock::now()) {
        lock.unlock();
        abort(TESSERA_ERROR(Aborted, describeStall(missing(group, position), describe(activity.what, activity.info),
                                                   stallTimeoutSeconds, group.members[position])));
        lock.lock();
      }
    }
    --waits;
  }
  return isOver() ? Status::ok() : abortReason();
}

std::vector<int> LocalWorld::missing(const LocalGroup &group, int position) {
  std::vector<int> result;
  uint64_t meeting = group.meetings[position].load(std::memory_order_relaxed);
  for (size_t other = 0; other < group.members.size(); ++other)
    if (group.meetings[other].load(std::memory_order_relaxed) != meeting)
      result.push_back(group.members[other]);
  return result;
}

/// The timeout counts from when the last of the missing ranks ceased to be busy.
LocalWorld::Clock::time_point LocalWorld::deadline(const LocalGroup &group, int position,
                                                   Clock::time_point begin) const {
  double seconds = stallTimeoutSeconds;
  for (int rank : missing(group, position)) {
    const RankActivity &other = ranks[rank];
    Clock::time_point until{Clock::duration(other.busyUntil.load())};
    begin = std::max(begin, other.isBusy.load() ? Clock::now() : until);
    if (other.waits.load() > 0)
      seconds = stallTimeoutSeconds + indirectPatience(stallTimeoutSeconds);
  }
  return begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void LocalWorld::setBusy(int rank, bool isBusy) {
  ranks[rank].busyUntil.store(Clock::now().time_since_epoch().count());
  ranks[rank].isBusy.store(isBusy);
}

void LocalWorld::abort(const Status &why) {
  std::lock_guard<std::mutex> lock(mutex);
  if (aborted.load(std::memory_order_relaxed))
    return;
  reason = Status(StatusCode::Aborted, why.message(), why.file(), why.line());
  aborted.store(true, std::memory_order_release);
  for (auto &entry : groups)
    entry.second->changed.notify_all();
}

Status LocalWorld::abortReason() {
  std::lock_guard<std::mutex> lock(mutex);
  return reason;
}

} // namespace tessera
