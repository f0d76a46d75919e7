//===- MinCut.h - the cheapest cut of a small graph -------------*- C++ -*-===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_REMAT_MINCUT_H
#define TESSERA_PASSES_DIFFERENTIATE_REMAT_MINCUT_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <limits>

namespace tessera::remat {

/// A minimum cut between a source and a sink by Dinic's algorithm (1970).
class MinCut {
public:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  static constexpr unsigned kSource = 0, kSink = 1;

  /// `nodes` nodes besides the source and the sink; they are numbered from 2.
  explicit MinCut(unsigned nodes) : edges(nodes + 2) {}

  /// Cutting `from` (on the source's side) off `to` (on the sink's side) costs `capacity`.
  void add(unsigned from, unsigned to, double capacity);
  /// The nodes on the sink's side of a cheapest cut.
  llvm::BitVector solve();

private:
  struct Edge {
    unsigned to, reverse;
    double capacity;
  };
  bool findLevels();
  double push(unsigned node, double flow);

  llvm::SmallVector<llvm::SmallVector<Edge, 4>> edges;
  llvm::SmallVector<int> level;
  llvm::SmallVector<unsigned> next;
  double tolerance = 0;
};

} // namespace tessera::remat

#endif // TESSERA_PASSES_DIFFERENTIATE_REMAT_MINCUT_H
