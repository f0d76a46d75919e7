//===- SampleOrder.h - which sample is at which place of a run ---------------===//
//
// The order is a function of the seed, the place and the numbers of samples: nothing is stored, and a run resumes by
// one number.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DATA_SAMPLEORDER_H
#define TESSERA_RUNTIME_DATA_SAMPLEORDER_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

/// Samples with consecutive numbers, and how much of a run they are.
struct SamplePart {
  uint64_t samples = 0; ///< at least 1
  double weight = 1;    ///< of all parts together 1
};

/// Each part has epochs of its own, in which every one of its samples comes once, shuffled anew or in order. Parts
/// alternate evenly: in any stretch of a run each has its share up to a few samples.
class SampleOrder {
public:
  SampleOrder(std::vector<SamplePart> parts, uint64_t seed, bool shuffles);

  uint64_t sampleAt(uint64_t place) const;
  /// Places until a part begins again.
  uint64_t epochSamples() const;

private:
  struct Draw {
    size_t part;
    uint64_t number; ///< of this part, since the run began
  };
  Draw drawAt(uint64_t place) const;

  std::vector<SamplePart> parts;
  uint64_t seed = 0;
  bool shuffles = true;
  std::vector<uint64_t> firstSample; ///< of each part
  std::vector<uint64_t> shareBegin;  ///< of each part in [0, period); one more for the end
};

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_SAMPLEORDER_H
