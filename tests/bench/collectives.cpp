//===- collectives.cpp - local collectives against the speed of memory -----===//
//
// Gigabytes per second that each collective of the `local` communicator reads and writes, beside what as many threads
// reach that do the same work on the same bytes without a communicator: memcpy where data only moves, a sum of the
// inputs where it is added up. Rounds of both alternate, so that their ratio holds on a shared machine too.
//
// usage: bench-collectives [ranks=2] [MiB=64] [rounds=15]
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/LocalCommunicator.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

using namespace tessera;
using artifact::CollectiveKind;

namespace {

using Clock = std::chrono::steady_clock;

struct Measure {
  const char *name;
  CollectiveKind kind;
  double inputs, outputs; ///< read and written by one rank, in units of the whole buffer
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

} // namespace

int main(int argc, char **argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const int64_t mebibytes = argc > 2 ? std::atoll(argv[2]) : 64;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 15;
  if (ranks < 2 || mebibytes < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: bench-collectives [ranks >= 2] [MiB >= 1] [rounds >= 1]\n");
    return 2;
  }
  const int64_t part = (mebibytes << 20) / 4 / ranks / 16 * 16, whole = part * ranks;
  const double n = ranks;
  // all_gather reads and writes the whole; reduce_scatter reads its part of every rank's whole and writes one part;
  // all_reduce is both, one after the other.
  const Measure measures[] = {{"all_gather", CollectiveKind::AllGather, 1, 1},
                              {"reduce_scatter", CollectiveKind::ReduceScatter, 1, 1 / n},
                              {"all_reduce", CollectiveKind::AllReduce, 2 - 1 / n, 1},
                              {"all_to_all", CollectiveKind::AllToAll, 1, 1},
                              {"permute", CollectiveKind::Permute, 1, 1}};

  auto world = createLocalWorld(ranks, {});
  std::vector<int> group(ranks);
  std::iota(group.begin(), group.end(), 0);
  std::vector<std::vector<float>> inputs(ranks), outputs(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    inputs[rank].assign(whole, 1.0f + rank);
    outputs[rank].assign(whole, 0.0f);
  }
  std::barrier<> together(ranks);
  double begin = 0, seconds = 0;
  bool failed = false;
  auto now = [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); };
  // Runs `work` on all ranks at once; the time is that of the slowest.
  auto timed = [&](int rank, const std::function<void()> &work) {
    together.arrive_and_wait();
    if (rank == 0)
      begin = now();
    together.arrive_and_wait();
    work();
    together.arrive_and_wait();
    if (rank == 0)
      seconds = now() - begin;
    together.arrive_and_wait();
    return seconds;
  };
  /// What a rank does without a communicator.
  auto bare = [&](int rank, CollectiveKind kind) {
    float *out = outputs[rank].data();
    auto sumPart = [&](float *target) {
      const float *first = inputs[0].data() + rank * part;
      for (int64_t block = 0; block < part; block += 2048) {
        int64_t count = std::min<int64_t>(2048, part - block);
        std::memcpy(target + block, first + block, count * 4);
        for (int other = 1; other < ranks; ++other) {
          const float *next = inputs[other].data() + rank * part + block;
          for (int64_t i = 0; i < count; ++i)
            target[block + i] += next[i];
        }
      }
    };
    switch (kind) {
    case CollectiveKind::ReduceScatter:
      sumPart(out);
      break;
    case CollectiveKind::AllReduce:
      sumPart(out + rank * part);
      together.arrive_and_wait();
      for (int other = 0; other < ranks; ++other)
        if (other != rank)
          std::memcpy(out + other * part, outputs[other].data() + other * part, part * 4);
      break;
    default:
      for (int step = 0; step < ranks; ++step) {
        int from = (rank + step) % ranks;
        std::memcpy(out + from * part, inputs[from].data() + rank * part, part * 4);
      }
    }
  };

  std::printf("%d ranks, %lld MiB, median of %d rounds\n%-16s %10s %10s %12s %8s\n", ranks,
              static_cast<long long>(whole * 4 >> 20), rounds, "", "ms", "limit, ms", "GB/s a rank", "of limit");
  for (const Measure &measure : measures) {
    std::vector<double> ours, limit;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        CollectiveCall call;
        call.kind = measure.kind;
        call.group = &group;
        call.input = inputs[rank].data();
        call.output = outputs[rank].data();
        call.elements = measure.kind == CollectiveKind::AllGather ? part : whole;
        call.shift = 1;
        for (int round = -2; round < rounds; ++round) {
          double mine = timed(rank, [&] {
            if (!world[rank]->run(call).isOk())
              failed = true;
          });
          double theirs = timed(rank, [&] { bare(rank, measure.kind); });
          if (rank == 0 && round >= 0) {
            ours.push_back(mine);
            limit.push_back(theirs);
          }
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    if (failed) {
      std::fprintf(stderr, "%s failed\n", measure.name);
      return 1;
    }
    double bytes = static_cast<double>(whole) * 4 * (measure.inputs + measure.outputs);
    std::printf("%-16s %10.2f %10.2f %12.2f %8.2f\n", measure.name, median(ours) * 1e3, median(limit) * 1e3,
                bytes / median(ours) * 1e-9, median(limit) / median(ours));
  }
  return 0;
}
