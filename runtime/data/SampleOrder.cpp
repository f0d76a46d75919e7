//===- SampleOrder.cpp - which sample is at which place of a run -------------===//

#include "runtime/data/SampleOrder.h"

#include "runtime/data/Permutation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera {

/// Place p belongs to the part in whose share (step * p + start) modulo period lies. The step is about the period
/// divided by the golden ratio, and odd: one period of places visits every value once, and any few places in a row are
/// spread evenly (a Weyl sequence).
static constexpr uint64_t period = uint64_t{1} << 30, step = 663'608'943;

/// The sum of (a i + b) / m, rounded down, over i in [0, n), for m up to 2^30, n up to m, and a and b below 2 m: by
/// exchanging the roles of a and m, as in Euclid's algorithm.
static uint64_t floorSum(uint64_t n, uint64_t m, uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  while (n > 0) {
    sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
    a %= m;
    b %= m;
    const uint64_t top = a * n + b;
    n = top / m;
    b = top % m;
    std::swap(a, m);
  }
  return sum;
}

/// How many of the first `places` of a period have a value below `bound`.
static uint64_t countBelow(uint64_t bound, uint64_t places, uint64_t start) {
  return floorSum(places, period, step, start) + places - floorSum(places, period, step, start + period - bound);
}

SampleOrder::SampleOrder(std::vector<SamplePart> ofParts, uint64_t seed, bool shuffles)
    : parts(std::move(ofParts)), seed(seed), shuffles(shuffles) {
  double weight = 0;
  for (uint64_t samples = 0; const SamplePart &part : parts) {
    firstSample.push_back(samples);
    shareBegin.push_back(static_cast<uint64_t>(std::llround(std::min(weight, 1.0) * period)));
    samples += part.samples;
    weight += part.weight;
  }
  shareBegin.push_back(period);
}

SampleOrder::Draw SampleOrder::drawAt(uint64_t place) const {
  if (parts.size() == 1)
    return {0, place};
  const uint64_t start =
      philox({static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, 0}, {0x6d697874u, 0x75726521u})[0] %
      period;
  const uint64_t rest = place % period, value = (step * rest + start) % period;
  const size_t part = std::upper_bound(shareBegin.begin(), shareBegin.end(), value) - shareBegin.begin() - 1;
  const uint64_t begin = shareBegin[part], end = shareBegin[part + 1];
  return {part, place / period * (end - begin) + countBelow(end, rest, start) - countBelow(begin, rest, start)};
}

uint64_t SampleOrder::sampleAt(uint64_t place) const {
  const auto [part, draw] = drawAt(place);
  const uint64_t samples = parts[part].samples, epoch = draw / samples, index = draw % samples;
  // Parts of equal size have orders of their own.
  return firstSample[part] + (shuffles ? Permutation(samples, seed, epoch + (uint64_t{part} << 48))(index) : index);
}

uint64_t SampleOrder::epochSamples() const {
  if (parts.size() == 1)
    return parts.front().samples;
  auto places = static_cast<double>(std::numeric_limits<int64_t>::max());
  for (size_t part = 0; part < parts.size(); ++part)
    if (const uint64_t share = shareBegin[part + 1] - shareBegin[part])
      places = std::min(places, static_cast<double>(parts[part].samples) * period / static_cast<double>(share));
  return std::max<uint64_t>(static_cast<uint64_t>(places * (1 + 1e-8)), 1); // shares are rounded
}

} // namespace tessera
