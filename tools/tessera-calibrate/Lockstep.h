//===- Lockstep.h - timing that all ranks take part in ---------------------------------===//
//
// What a rank reaches depends on what the others do at the same time: they share cores, memory and caches. So all ranks
// measure the same thing at once, and the slowest counts.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_CALIBRATE_LOCKSTEP_H
#define TESSERA_TOOLS_CALIBRATE_LOCKSTEP_H

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <vector>

namespace tessera::calibrate {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Shared by the threads of all ranks.
class Lockstep {
public:
  /// `cpuTime`: seconds that the calling thread computed, instead of those that passed.
  Lockstep(int ranks, int repeats, double secondsPerRepeat, bool cpuTime)
      : meeting(ranks), elapsed(static_cast<size_t>(ranks)), repeats(repeats), wanted(secondsPerRepeat),
        cpuTime(cpuTime) {}

  int numRanks() const { return static_cast<int>(elapsed.size()); }
  void meet() { meeting.arrive_and_wait(); }

  /// The largest of the ranks' values, on every rank.
  double agree(int rank, double value) {
    elapsed[static_cast<size_t>(rank)] = value;
    meet();
    const double largest = *std::max_element(elapsed.begin(), elapsed.end());
    meet();
    return largest;
  }

  /// Seconds of one call of `body`, as the median over repeats of the slowest rank's mean. The same on every rank; all
  /// ranks call `body` equally often.
  double time(int rank, const std::function<void()> &body) {
    body(); // caches, page faults, thread pools
    const double once = timeCalls(rank, body, 1);
    const auto calls = static_cast<int64_t>(std::clamp(wanted / std::max(once, 1e-9), 1.0, 1e6));
    std::vector<double> samples;
    for (int repeat = 0; repeat < repeats; ++repeat)
      samples.push_back(timeCalls(rank, body, calls));
    return median(std::move(samples));
  }

private:
  double timeCalls(int rank, const std::function<void()> &body, int64_t calls) {
    meet();
    const double begin = clock();
    for (int64_t call = 0; call < calls; ++call)
      body();
    return agree(rank, (clock() - begin) / static_cast<double>(calls));
  }

  double clock() const {
    if (!cpuTime)
      return now();
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  std::barrier<> meeting;
  std::vector<double> elapsed;
  const int repeats;
  const double wanted;
  const bool cpuTime;
};

} // namespace tessera::calibrate

#endif // TESSERA_TOOLS_CALIBRATE_LOCKSTEP_H
