//===- LocalWorld.cpp - the state that ranks of one process share ----------===//

#include "runtime/comm/local/LocalWorld.h"

#include <chrono>
#include <cstdio>

namespace tessera {

static void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::string describe(std::string_view what, const CollectiveInfo &info) {
  std::string text(what);
  if (!info.label.empty())
    text += " '" + std::string(info.label) + "'";
  if (info.step > 0)
    text += " of step " + std::to_string(info.step);
  if (!info.location.empty())
    text += " (node " + std::string(info.location) + ")";
  return text;
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
    if (stallTimeoutSeconds <= 0) {
      group.changed.wait(lock, isAwake);
    } else if (!group.changed.wait_for(lock, std::chrono::duration<double>(stallTimeoutSeconds), isAwake)) {
      lock.unlock();
      abort(describeStall(group, position, activity));
    }
  }
  return isOver() ? Status::ok() : abortReason();
}

Status LocalWorld::describeStall(const LocalGroup &group, int position, const LocalActivity &activity) const {
  std::string missing;
  uint64_t meeting = group.meetings[position].load(std::memory_order_relaxed);
  for (size_t other = 0; other < group.members.size(); ++other)
    if (group.meetings[other].load(std::memory_order_relaxed) != meeting)
      missing += (missing.empty() ? "" : ", ") + std::to_string(group.members[other]);
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%g", stallTimeoutSeconds);
  return TESSERA_ERROR(Aborted, "stalled: rank " + missing + " did not reach " +
                                    describe(activity.what, activity.info) + " within " + seconds + " s, rank " +
                                    std::to_string(group.members[position]) + " waits there");
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
