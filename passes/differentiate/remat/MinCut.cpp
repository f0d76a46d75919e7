//===- MinCut.cpp - the cheapest cut of a small graph ---------------------===//

#include "passes/differentiate/remat/MinCut.h"

namespace tessera::remat {

void MinCut::add(unsigned from, unsigned to, double capacity) {
  edges[from].push_back({to, static_cast<unsigned>(edges[to].size()), capacity});
  edges[to].push_back({from, static_cast<unsigned>(edges[from].size() - 1), 0});
  if (capacity != kInfinite)
    tolerance = std::max(tolerance, capacity * 1e-12);
}

/// Distances from the source over edges that can take more. False if the sink is out of reach.
bool MinCut::findLevels() {
  level.assign(edges.size(), -1);
  level[kSource] = 0;
  llvm::SmallVector<unsigned> queue = {kSource};
  for (size_t i = 0; i < queue.size(); ++i)
    for (const Edge &edge : edges[queue[i]])
      if (edge.capacity > tolerance && level[edge.to] < 0) {
        level[edge.to] = level[queue[i]] + 1;
        queue.push_back(edge.to);
      }
  return level[kSink] >= 0;
}

double MinCut::push(unsigned node, double flow) {
  if (node == kSink)
    return flow;
  for (unsigned &i = next[node]; i < edges[node].size(); ++i) {
    Edge &edge = edges[node][i];
    if (edge.capacity <= tolerance || level[edge.to] != level[node] + 1)
      continue;
    double pushed = push(edge.to, std::min(flow, edge.capacity));
    if (pushed <= tolerance)
      continue;
    edge.capacity -= pushed;
    edges[edge.to][edge.reverse].capacity += pushed;
    return pushed;
  }
  return 0;
}

llvm::BitVector MinCut::solve() {
  while (findLevels()) {
    next.assign(edges.size(), 0);
    while (push(kSource, kInfinite) > tolerance) {
    }
  }
  llvm::BitVector sink(edges.size());
  for (unsigned node = 0; node < edges.size(); ++node)
    if (level[node] < 0)
      sink.set(node);
  return sink;
}

} // namespace tessera::remat
