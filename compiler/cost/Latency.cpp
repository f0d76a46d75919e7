//===- Latency.cpp - placement, collectives, kernels and products ---------===//

#include "compiler/cost/Latency.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace tessera::cost {

double wireBytes(Collective kind, double wholeBytes, int64_t ranks) {
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (kind) {
  case Collective::AllReduce:
    return 2 * others * wholeBytes;
  case Collective::Permute:
    return ranks > 1 ? wholeBytes : 0;
  default:
    return others * wholeBytes;
  }
}

GroupPlacement LatencyModel::placement(ArrayAttr axes) const {
  if (auto known = placements.find(axes); known != placements.end())
    return known->second;
  // The group of rank 0: all positions on `axes`, position 0 on the others.
  SmallVector<int64_t> members{0};
  int64_t stride = 1;
  for (int64_t axis = static_cast<int64_t>(mesh.getSizes().size()) - 1; axis >= 0; --axis) {
    const int64_t size = mesh.getSizes()[axis];
    if (llvm::is_contained(axes, mesh.getNames()[axis])) {
      const size_t count = members.size();
      for (int64_t position = 1; position < size; ++position)
        for (size_t i = 0; i < count; ++i)
          members.push_back(members[i] + position * stride);
    }
    stride *= size;
  }
  llvm::DenseSet<int64_t> nodes;
  for (int64_t rank : members)
    nodes.insert(rank / target.devicesPerNode);
  GroupPlacement placement{static_cast<int64_t>(members.size()), static_cast<int64_t>(nodes.size())};
  placements[axes] = placement;
  return placement;
}

double LatencyModel::collectiveSeconds(Collective kind, double wholeBytes, ArrayAttr axes) const {
  const GroupPlacement place = placement(axes);
  if (place.ranks == 1)
    return 0;
  const double wire = wireBytes(kind, wholeBytes, place.ranks);
  auto start = [](const LinkModel &link, int64_t ranks) {
    return link.latency + link.hopLatency * static_cast<double>(llvm::Log2_64_Ceil(ranks));
  };
  const LinkModel &intra = target.intraNode[static_cast<size_t>(kind)];
  if (place.nodes == 1)
    return start(intra, place.ranks) + wire / intra.bandwidth.at(wire);

  const LinkModel &inter = target.interNode[static_cast<size_t>(kind)];
  const int64_t local = place.ranksPerNode();
  // Bytes that one device's link to other nodes carries: gathers and reductions enter a node once, over the links of
  // all its members together; all_to_all and permute send every rank's own data.
  double carried = wire;
  if (kind == Collective::AllToAll)
    carried = wholeBytes * static_cast<double>(place.ranks - local) / static_cast<double>(place.ranks);
  else if (kind != Collective::Permute)
    carried = wireBytes(kind, wholeBytes, place.nodes) / static_cast<double>(local);
  double seconds = start(inter, place.nodes) + carried / inter.bandwidth.at(carried);
  if (local > 1) // both levels work at the same time
    seconds = std::max(seconds, wire / intra.bandwidth.at(wire)) + start(intra, local);
  return seconds;
}

double LatencyModel::kernelSeconds(double bytes, double operations) const {
  const double memory = bytes > 0 ? bytes / target.memoryBandwidth.at(bytes) : 0;
  return target.launchSeconds + std::max(memory, operations / target.kernelOperations);
}

double LatencyModel::flopSeconds(double flops, double bytes, Type elementType, double efficiency) const {
  const double memory = bytes > 0 ? bytes / target.memoryBandwidth.at(bytes) : 0;
  return target.launchSeconds + std::max(flops / (target.peak(elementType) * efficiency), memory);
}

double LatencyModel::gemmSeconds(Type elementType, double batch, double m, double n, double k) const {
  const double bytes = batch * (m * k + k * n + m * n) * elementType.getIntOrFloatBitWidth() / 8;
  return flopSeconds(2 * batch * m * n * k, bytes, elementType, target.gemmEfficiency(elementType, m, n, k));
}

} // namespace tessera::cost
