//===- CollectiveKind.h - the collectives there are -------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_DIST_COLLECTIVEKIND_H
#define TESSERA_COMPILER_DIALECT_DIST_COLLECTIVEKIND_H

namespace tessera::dist {

/// In the order of the artifact's kinds.
enum class CollectiveKind { AllGather, ReduceScatter, AllReduce, AllToAll, Permute };

/// Whether what the ranks have is combined element by element.
constexpr bool isReduction(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllReduce;
}

} // namespace tessera::dist

#endif // TESSERA_COMPILER_DIALECT_DIST_COLLECTIVEKIND_H
