//===- Candidates.h - the ways to run an op on given layouts ----*- C++ -*-===//
//
// An op runs by its sharding rule, or by one of its partitions. What each has to send decides, and since propagation,
// reshard insertion, verification and localisation all ask here, they cannot disagree: once the operands have the
// layouts that the cheapest way needs, it is the cheapest still.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_CANDIDATES_H
#define TESSERA_PASSES_SHARD_CANDIDATES_H

#include "passes/shard/Solve.h"

#include <vector>

namespace tessera::shard {

/// One way to run an op, and what it costs each rank.
struct Candidate {
  llvm::StringRef name;
  Solution solution;
  int64_t sentBytes;  ///< to change operands, by the op's own collectives, and to reduce what its results owe
  int64_t localBytes; ///< of operands and results as the op has them
  bool isAsked;       ///< the op says that it is to run so
};

/// The rule's way first, then the partitions that the layouts make possible, in the op's order. `results` may be null:
/// nothing known.
std::vector<Candidate> listCandidates(ShardingRuleOpInterface op, llvm::ArrayRef<OperandState> operands,
                                      llvm::ArrayRef<const dist::Layout *> results, dist::MeshAttr mesh);

/// The one that the op asks for, else that which sends least; of equal ones that with the smallest parts, then the
/// later one.
const Candidate &chooseCandidate(llvm::ArrayRef<Candidate> candidates);

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_CANDIDATES_H
