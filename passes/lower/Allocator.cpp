//===- Allocator.cpp - offsets for allocations of known lifetimes ---------===//
//
// See Allocator.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Allocator.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <map>

namespace tessera::lower {

static int64_t alignUp(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

int64_t peakLiveBytes(llvm::ArrayRef<Lifetime> lifetimes, int64_t alignment) {
  std::map<int64_t, int64_t> change;
  for (const Lifetime &lifetime : lifetimes) {
    change[lifetime.first] += alignUp(lifetime.bytes, alignment);
    change[lifetime.last + 1] -= alignUp(lifetime.bytes, alignment);
  }
  int64_t live = 0, peak = 0;
  for (auto [position, bytes] : change)
    peak = std::max(peak, live += bytes);
  return peak;
}

namespace {

/// Places in a given order, each allocation into the smallest gap that fits it.
class BestFit {
public:
  BestFit(llvm::ArrayRef<Lifetime> lifetimes, int64_t alignment) : lifetimes(lifetimes), alignment(alignment) {}

  /// Gives up (returns false) when the result would not be smaller than `limit`.
  bool place(llvm::ArrayRef<unsigned> order, int64_t limit, Placement &result) {
    result.offsets.assign(lifetimes.size(), 0);
    result.bytes = 0;
    byOffset.clear();
    for (unsigned number : order) {
      int64_t end = place(number, result.offsets);
      if (end >= limit)
        return false;
      result.bytes = std::max(result.bytes, end);
    }
    return true;
  }

private:
  int64_t place(unsigned number, llvm::SmallVector<int64_t> &offsets) {
    const Lifetime &lifetime = lifetimes[number];
    int64_t bytes = alignUp(lifetime.bytes, alignment);
    int64_t best = -1, bestGap = 0, end = 0;
    for (unsigned other : byOffset) {
      if (lifetimes[other].last < lifetime.first || lifetime.last < lifetimes[other].first)
        continue;
      int64_t gap = offsets[other] - end;
      if (gap >= bytes && (best < 0 || gap < bestGap))
        std::tie(best, bestGap) = std::pair(end, gap);
      end = std::max(end, offsets[other] + alignUp(lifetimes[other].bytes, alignment));
    }
    offsets[number] = best < 0 ? end : best;
    auto position =
        llvm::upper_bound(byOffset, number, [&](unsigned a, unsigned b) { return offsets[a] < offsets[b]; });
    byOffset.insert(position, number);
    return offsets[number] + bytes;
  }

  llvm::ArrayRef<Lifetime> lifetimes;
  int64_t alignment;
  llvm::SmallVector<unsigned> byOffset;
};

} // namespace

Placement placeAllocations(llvm::ArrayRef<Lifetime> lifetimes, int64_t alignment) {
  auto duration = [&](unsigned i) { return lifetimes[i].last - lifetimes[i].first + 1; };
  auto bytes = [&](unsigned i) { return lifetimes[i].bytes; };
  llvm::SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, lifetimes.size()));
  llvm::SmallVector<llvm::SmallVector<unsigned>> orders;
  auto add = [&](auto key) {
    orders.push_back(order);
    llvm::stable_sort(orders.back(), [&](unsigned a, unsigned b) { return key(a) > key(b); });
  };
  add([&](unsigned i) { return std::pair(bytes(i), duration(i)); });
  add([&](unsigned i) { return std::pair(duration(i), bytes(i)); });
  add([&](unsigned i) { return std::pair(double(bytes(i)) * duration(i), bytes(i)); });
  add([&](unsigned i) { return std::pair(-lifetimes[i].first, duration(i)); });
  add([&](unsigned i) { return std::pair(lifetimes[i].last, duration(i)); });

  BestFit fit(lifetimes, alignment);
  int64_t peak = peakLiveBytes(lifetimes, alignment);
  Placement best, next;
  best.bytes = INT64_MAX;
  llvm::SmallVector<unsigned> bestOrder = order;
  for (llvm::ArrayRef<unsigned> candidate : orders) {
    if (best.bytes > peak && fit.place(candidate, best.bytes, next)) {
      best = next;
      bestOrder.assign(candidate.begin(), candidate.end());
    }
  }
  if (lifetimes.empty())
    best.bytes = 0;

  // What ended up highest goes first in the next attempt.
  constexpr int64_t budget = 40'000'000; // pairs of allocations looked at
  int64_t attempts =
      lifetimes.empty() ? 0 : std::min<int64_t>(200, budget / int64_t(lifetimes.size() * lifetimes.size()));
  llvm::SmallVector<unsigned> attempt = bestOrder;
  const Placement *last = &best;
  Placement current;
  for (; attempts > 0 && best.bytes > peak; --attempts) {
    auto highest = llvm::max_element(
        attempt, [&](unsigned a, unsigned b) { return last->offsets[a] + bytes(a) < last->offsets[b] + bytes(b); });
    if (highest == attempt.begin())
      break;
    std::rotate(attempt.begin(), highest, highest + 1);
    fit.place(attempt, INT64_MAX, current);
    last = &current;
    if (current.bytes < best.bytes)
      best = current;
  }
  return best;
}

} // namespace tessera::lower
