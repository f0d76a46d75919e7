//===- Partition.h - ways to run an op on parts -----------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_INTERFACES_PARTITION_H
#define TESSERA_COMPILER_INTERFACES_PARTITION_H

#include "compiler/dialect/dist/CollectiveBuilder.h"
#include "compiler/interfaces/ShardingRule.h"

#include <vector>

namespace tessera {

/// One way to run an op. Which layouts it needs and gives follows from its rule, as for every op.
struct PartitionChoice {
  llvm::StringRef name; ///< for remarks, e.g. "classes stay split"; of static storage
  ShardingRule rule;    ///< the op's factors when it runs this way
  int64_t factor;       ///< of `rule`: the choice is one only where this factor is split
  bool isAsked = false; ///< the op says that it is to run so where it can, whatever is sent
};

/// A collective of a choice; over the members of one group.
struct PartitionCollective {
  std::optional<dist::ReshardStep::Kind> kind; ///< nothing: a permute
  dist::Axes axes;
  int64_t bytes;     ///< of one rank's operand
  int64_t times = 1; ///< how many of them
};

/// What a choice is expanded with.
struct PartitionContext {
  dist::CollectiveBuilder &collectives;
  llvm::ArrayRef<dist::Layout> operands, results;
  dist::MeshAttr mesh;
};

} // namespace tessera

#include "compiler/interfaces/Partition.h.inc"

#endif // TESSERA_COMPILER_INTERFACES_PARTITION_H
