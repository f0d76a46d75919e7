//===- Team.h - the threads of one rank ------------------------------------===//
//
// A rank is a thread that owns an OpenMP team. oneDNN uses the same team, because OpenMP keeps one pool per thread that
// opens parallel regions and its size is a setting of that thread.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_TEAM_H
#define TESSERA_RUNTIME_DEVICE_CPU_TEAM_H

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace tessera::cpu {

class Team {
public:
  explicit Team(int threads) : size(std::max(threads, 1)) {}
  int threads() const { return size; }
  /// Makes this team the one of the calling thread, for oneDNN too, which computes wrong results where OpenMP has fewer
  /// threads than it was asked for (OMP_DYNAMIC, OMP_THREAD_LIMIT, OMP_MAX_ACTIVE_LEVELS). Returns how many there are,
  /// at most as many as wanted, of which the team is then made.
  int adopt() {
    omp_set_dynamic(0);
    omp_set_max_active_levels(std::max(omp_get_max_active_levels(), 1));
    int there = 1;
#pragma omp parallel num_threads(size)
    {
#pragma omp single
      there = omp_get_num_threads();
    }
    size = there;
    omp_set_num_threads(size);
    return size;
  }

  /// Calls `body(begin, end)` on the team so that the ranges cover [0, extent) once; borders are multiples of `grain`.
  /// Which thread gets which range depends on the size of the team only.
  template <typename Body> void run(int64_t extent, int64_t grain, Body &&body) const {
    int64_t chunks = (extent + grain - 1) / grain;
    int wanted = static_cast<int>(std::min<int64_t>(size, chunks));
    if (wanted <= 1) {
      if (extent > 0)
        body(int64_t{0}, extent);
      return;
    }
#pragma omp parallel num_threads(wanted)
    {
      int64_t count = omp_get_num_threads(), thread = omp_get_thread_num();
      int64_t begin = chunks * thread / count * grain, end = std::min(extent, chunks * (thread + 1) / count * grain);
      if (begin < end)
        body(begin, end);
    }
  }

  /// Calls `body(index, thread)` once for each index below `count`; whichever thread is free takes the next.
  template <typename Body> void runEach(int64_t count, Body &&body) const {
    int wanted = static_cast<int>(std::min<int64_t>(size, count));
    if (wanted <= 1) {
      for (int64_t index = 0; index < count; ++index)
        body(index, 0);
      return;
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(wanted)
    for (int64_t index = 0; index < count; ++index)
      body(index, omp_get_thread_num());
  }

private:
  int size;
};

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_TEAM_H
