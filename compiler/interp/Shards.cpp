//===- Shards.cpp - global tensors and their parts on the ranks -----------===//

#include "compiler/interp/Shards.h"

#include "compiler/dialect/dist/AxisAlgebra.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using tessera::dist::MeshAttr;
using tessera::dist::ShardingAttr;

namespace tessera::interp {

Tensor extractPart(const Tensor &whole, int64_t dim, int64_t start, int64_t size) {
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] = size;
  Tensor part(whole.getType().clone(shape));
  SmallVector<int64_t> strides = stridesOf(whole.getShape());
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t linear) {
    part.copyFrom(linear, whole, linearIndex(index, strides) + start * strides[dim]);
  });
  return part;
}

void copyPartInto(Tensor &whole, const Tensor &part, int64_t dim, int64_t start) {
  SmallVector<int64_t> strides = stridesOf(whole.getShape());
  forEachIndex(part.getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
    whole.copyFrom(linearIndex(index, strides) + start * strides[dim], part, linear);
  });
}

std::vector<SmallVector<int64_t>> groupsOf(MeshAttr mesh, ArrayAttr axes) {
  std::vector<SmallVector<int64_t>> groups;
  llvm::DenseMap<int64_t, size_t> groupOfFirst;
  SmallVector<int64_t> strides = stridesOf(mesh.getSizes());
  for (int64_t rank = 0, end = mesh.getNumRanks(); rank < end; ++rank) {
    SmallVector<int64_t> position = delinearize(rank, mesh.getSizes());
    for (auto axis : axes.getAsRange<StringAttr>())
      if (int64_t index = mesh.getAxisIndex(axis.getValue()); index >= 0)
        position[index] = 0;
    auto [it, isNew] = groupOfFirst.try_emplace(linearIndex(position, strides), groups.size());
    if (isNew)
      groups.emplace_back();
    groups[it->second].push_back(rank);
  }
  for (SmallVector<int64_t> &group : groups)
    llvm::sort(group, [&](int64_t a, int64_t b) { return partOf(mesh, axes, a) < partOf(mesh, axes, b); });
  return groups;
}

int64_t partOf(MeshAttr mesh, ArrayAttr axes, int64_t rank) { return dist::positionInGroup(mesh, axes, rank); }

/// The elements of dimension `dim` at `places`.
static Tensor extractElements(const Tensor &whole, int64_t dim, ArrayRef<int64_t> places) {
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] = static_cast<int64_t>(places.size());
  Tensor part(whole.getType().clone(shape));
  SmallVector<int64_t> strides = stridesOf(whole.getShape());
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t linear) {
    SmallVector<int64_t> from(index);
    from[dim] = places[index[dim]];
    part.copyFrom(linear, whole, linearIndex(from, strides));
  });
  return part;
}

FailureOr<std::vector<Tensor>> split(const Tensor &global, ShardingAttr sharding, MeshAttr mesh,
                                     llvm::function_ref<InFlightDiagnostic()> error) {
  if (sharding.getRank() != global.getRank())
    return error() << "sharding " << sharding << " has rank " << sharding.getRank() << ", expected "
                   << global.getRank();
  if (!sharding.getLocalType(global.getType(), mesh))
    return error() << "cannot split " << global.getType() << " by " << sharding << ": a dimension does not divide";
  std::vector<Tensor> locals;
  for (int64_t rank = 0, end = mesh.getNumRanks(); rank < end; ++rank) {
    Tensor local = global;
    for (int64_t dim = 0; dim < global.getRank(); ++dim) {
      const dist::Split split = dist::getSplit(sharding, dim, mesh);
      if (!split.empty())
        local = extractElements(local, dim, dist::elementsOf(split, global.getShape()[dim], mesh, rank));
    }
    bool owns = dist::isIdempotent(sharding.getReduction()) || partOf(mesh, sharding.getUnreduced(), rank) == 0;
    locals.push_back(owns ? std::move(local) : Tensor(local.getType()));
  }
  return locals;
}

FailureOr<Tensor> join(ArrayRef<Tensor> locals, RankedTensorType globalType, ShardingAttr sharding, MeshAttr mesh,
                       llvm::function_ref<InFlightDiagnostic()> error) {
  if (sharding.getRank() != globalType.getRank())
    return error() << "sharding " << sharding << " has rank " << sharding.getRank() << ", expected "
                   << globalType.getRank();
  RankedTensorType localType = sharding.getLocalType(globalType, mesh);
  if (localType != locals.front().getType())
    return error() << "has local type " << locals.front().getType() << ", expected " << localType << " for "
                   << globalType << " split by " << sharding;
  // Ranks of equal position on the splitting axes hold copies (or partial values) of one part.
  SmallVector<int64_t> globalStrides = stridesOf(globalType.getShape());
  Tensor global(globalType);
  llvm::DenseMap<int64_t, SmallVector<int64_t>> ranksAtCorner;
  SmallVector<int64_t> corners;
  auto placesOf = [&](int64_t dim, int64_t rank) {
    return dist::elementsOf(dist::getSplit(sharding, dim, mesh), globalType.getDimSize(dim), mesh, rank);
  };
  for (int64_t rank = 0, end = mesh.getNumRanks(); rank < end; ++rank) {
    int64_t corner = 0;
    for (int64_t dim = 0; dim < globalType.getRank() && global.size() != 0; ++dim)
      corner += placesOf(dim, rank).front() * globalStrides[dim];
    auto [it, isNew] = ranksAtCorner.try_emplace(corner);
    if (isNew)
      corners.push_back(corner);
    it->second.push_back(rank);
  }
  for (int64_t corner : corners) {
    SmallVector<SmallVector<int64_t>> copies; // of each partial value, in order of its position
    copies.resize(mesh.getGroupSize(sharding.getUnreduced()));
    for (int64_t rank : ranksAtCorner[corner])
      copies[partOf(mesh, sharding.getUnreduced(), rank)].push_back(rank);
    Tensor total;
    for (ArrayRef<int64_t> ranks : copies) {
      const Tensor &first = locals[ranks.front()];
      for (int64_t rank : ranks.drop_front())
        if (!locals[rank].bitwiseEquals(first))
          return error() << "ranks " << ranks.front() << " and " << rank << " hold different copies of " << sharding;
      if (!total.getType()) {
        total = first;
        continue;
      }
      combineInto(total, first, sharding.getReduction());
    }
    SmallVector<SmallVector<int64_t>> places;
    for (int64_t dim = 0; dim < globalType.getRank(); ++dim)
      places.push_back(placesOf(dim, ranksAtCorner[corner].front()));
    forEachIndex(localType.getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
      int64_t place = 0;
      for (auto [own, at, stride] : llvm::zip_equal(places, index, globalStrides))
        place += own[at] * stride;
      global.copyFrom(place, total, linear);
    });
  }
  return global;
}

} // namespace tessera::interp
