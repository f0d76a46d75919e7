//===- Replicas.h - ranks that hold equal copies, compared -----------------===//

#ifndef TESSERA_RUNTIME_STEP_REPLICAS_H
#define TESSERA_RUNTIME_STEP_REPLICAS_H

#include "runtime/comm/Communicator.h"
#include "runtime/state/StateView.h"

#include <vector>

namespace tessera {

/// Which ranges of parameters several ranks hold: all under ddp, those of a shard under a replicated axis. They get the
/// same updates and must stay equal bit for bit; damaged memory, say, makes them differ.
class Replicas {
public:
  static Result<Replicas> create(const Artifact &artifact);

  /// Whether there are any.
  bool exist() const { return numCopies > 0; }
  /// Compares XXH3 hashes of all copies after a step. `states`: of the ranks of this process, from `firstRank` on,
  /// where the host sees them. One thread of every process calls it. A difference is one error on all ranks, with the
  /// parameter and the first two ranks that differ.
  Status compare(int64_t step, const std::vector<RankState> &states, int firstRank, Communicator &communicator) const;

private:
  /// A range of a segment that a rank holds, and the lowest rank that has the same one.
  struct Copy {
    size_t view, segment;
    int64_t begin, end; ///< in elements of the unit
    int original;       ///< this rank itself: the others are compared with it
    size_t index;       ///< among the copies of `original`
  };
  std::vector<std::vector<Copy>> copies; ///< by rank; only what several ranks hold
  std::vector<RankState> layouts;        ///< by rank, without addresses
  size_t numCopies = 0;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_REPLICAS_H
