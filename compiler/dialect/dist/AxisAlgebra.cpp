#include "compiler/dialect/dist/AxisAlgebra.h"

using namespace mlir;

namespace tessera::dist {

Layout Layout::replicated(int64_t rank) {
  Layout layout;
  layout.dims.resize(rank);
  return layout;
}

bool Split::isPrefixOf(const Split &other) const {
  return empty() || (blocks == other.blocks && isPrefix(*this, other));
}

Layout Layout::withoutBlocks() const {
  Layout layout = *this;
  for (Split &split : layout.dims)
    if (split.blocks != 1)
      split = Split();
  return layout;
}

int64_t blocksOf(ShardingAttr sharding, int64_t dim) {
  auto list = cast<ArrayAttr>(sharding.getDims()[dim]);
  auto blocks = list.empty() ? IntegerAttr() : dyn_cast<IntegerAttr>(list[0]);
  return blocks ? blocks.getInt() : 1;
}

Axes axisNumbers(ArrayAttr names, MeshAttr mesh) {
  Axes axes;
  for (auto name : names.getAsRange<StringAttr>())
    if (mesh.getAxisSize(name.getValue()) > 1)
      axes.push_back(static_cast<unsigned>(mesh.getAxisIndex(name.getValue())));
  return axes;
}

Layout Layout::get(ShardingAttr sharding, MeshAttr mesh) {
  Layout layout;
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    layout.dims.push_back(Split(axisNumbers(sharding.getAxes(dim), mesh), blocksOf(sharding, dim)));
  for (unsigned axis : axisNumbers(sharding.getUnreduced(), mesh))
    layout.unreduced.push_back({axis, sharding.getReduction()});
  llvm::sort(layout.unreduced);
  return layout;
}

ShardingAttr Layout::toAttr(MeshAttr mesh) const {
  SmallVector<Attribute> names;
  for (const Split &split : dims) {
    SmallVector<Attribute> list(axisNames(mesh, split).getValue());
    if (split.blocks != 1)
      list.insert(list.begin(), IntegerAttr::get(IntegerType::get(mesh.getContext(), 64), split.blocks));
    names.push_back(ArrayAttr::get(mesh.getContext(), list));
  }
  Axes owed;
  SmallVector<ReductionKind> kinds;
  for (const Partial &partial : unreduced) {
    owed.push_back(partial.axis);
    if (partial.kind != ReductionKind::Sum)
      kinds.push_back(partial.kind);
  }
  assert((kinds.empty() || kinds.size() == owed.size()) && "a value owes reductions of one kind");
  return ShardingAttr::get(mesh.getContext(), ArrayAttr::get(mesh.getContext(), names), axisNames(mesh, owed), kinds);
}

std::optional<ReductionKind> Layout::owedOver(unsigned axis) const {
  for (const Partial &partial : unreduced)
    if (partial.axis == axis)
      return partial.kind;
  return std::nullopt;
}

bool Layout::splits(unsigned axis) const {
  return llvm::any_of(dims, [&](const Split &split) { return llvm::is_contained(split, axis); });
}

bool Layout::isReplicated() const {
  return unreduced.empty() && llvm::all_of(dims, [](const Split &split) { return split.empty(); });
}

static Axes axesWhere(MeshAttr mesh, bool AxisRoleInfo::*property) {
  Axes axes;
  for (auto [axis, size] : llvm::enumerate(mesh.getSizes()))
    if (size > 1 && mesh.getAxisInfo(axis).*property)
      axes.push_back(axis);
  return axes;
}

Axes sampleAxes(MeshAttr mesh) { return axesWhere(mesh, &AxisRoleInfo::splitsSamples); }
Axes gradientAxes(MeshAttr mesh) { return axesWhere(mesh, &AxisRoleInfo::sumsGradients); }
Axes stateAxes(MeshAttr mesh) { return axesWhere(mesh, &AxisRoleInfo::splitsState); }
Axes parameterAxes(MeshAttr mesh) { return axesWhere(mesh, &AxisRoleInfo::splitsParameters); }

int64_t groupSize(MeshAttr mesh, ArrayRef<unsigned> axes) {
  int64_t size = 1;
  for (unsigned axis : axes)
    size *= mesh.getSizes()[axis];
  return size;
}

int64_t positionInGroup(MeshAttr mesh, ArrayAttr axes, int64_t rank) {
  int64_t position = 0;
  for (auto name : axes.getAsRange<StringAttr>()) {
    int64_t below = mesh.getNumRanks();
    for (auto [axis, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes())) {
      below /= size;
      if (axis == name)
        position = position * size + rank / below % size;
    }
  }
  return position;
}

bool isPrefix(ArrayRef<unsigned> prefix, ArrayRef<unsigned> list) {
  return prefix.size() <= list.size() && list.take_front(prefix.size()) == prefix;
}

ArrayAttr axisNames(MeshAttr mesh, ArrayRef<unsigned> axes) {
  SmallVector<Attribute> names;
  for (unsigned axis : axes)
    names.push_back(mesh.getNames()[axis]);
  return ArrayAttr::get(mesh.getContext(), names);
}

StringRef findUnknownAxis(ShardingAttr sharding, MeshAttr mesh) {
  auto firstUnknown = [&](ArrayAttr names) -> StringRef {
    for (auto name : names.getAsRange<StringAttr>())
      if (mesh.getAxisIndex(name.getValue()) < 0)
        return name.getValue();
    return {};
  };
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    if (StringRef unknown = firstUnknown(sharding.getAxes(dim)); !unknown.empty())
      return unknown;
  return firstUnknown(sharding.getUnreduced());
}

namespace {

/// Walks from `current` to `target`. Invariant: `current` is the layout after `steps`.
class Planner {
public:
  Planner(const Layout &from, const Layout &to) : current(from), target(to) {}

  SmallVector<ReshardStep> plan() {
    for (size_t dim = 0; dim < target.dims.size(); ++dim)
      split(dim);
    allReduce();
    for (size_t dim = 0; dim < target.dims.size(); ++dim)
      gather(dim);
    for (size_t dim = 0; dim < target.dims.size(); ++dim)
      split(dim);
    mask();
    return std::move(steps);
  }

private:
  using Kind = ReshardStep::Kind;

  /// Appends a step, or widens the last one if both are one collective over several axes.
  void addSplit(Kind kind, unsigned axis, size_t dim) {
    if (!steps.empty() && steps.back().kind == kind && steps.back().dim == static_cast<int64_t>(dim))
      steps.back().axes.push_back(axis);
    else
      steps.push_back({kind, {axis}, static_cast<int64_t>(dim), -1, target.dims[dim].blocks});
  }

  /// Adds the axes that dimension `dim` lacks, as long as none has to be gathered first.
  void split(size_t dim) {
    Split &have = current.dims[dim];
    const Split &want = target.dims[dim];
    while (have.isPrefixOf(want) && have.size() < want.size()) {
      unsigned axis = want[have.size()];
      if (std::optional<ReductionKind> owed = current.owedOver(axis)) {
        if (*owed != ReductionKind::Sum)
          return;
        llvm::erase(current.unreduced, Partial(axis, *owed));
        addSplit(Kind::ReduceScatter, axis, dim);
      } else if (!current.splits(axis)) {
        addSplit(Kind::Slice, axis, dim);
      } else {
        auto *source = llvm::find_if(current.dims, [&](const Split &split) { return llvm::is_contained(split, axis); });
        if (source->back() != axis)
          return;
        steps.push_back({Kind::AllToAll,
                         {axis},
                         static_cast<int64_t>(dim),
                         source - current.dims.begin(),
                         want.blocks,
                         source->blocks});
        removeLast(*source);
      }
      have.push_back(axis);
      have.blocks = want.blocks;
    }
  }

  void allReduce() {
    ReshardStep step{Kind::AllReduce, {}};
    for (const Partial &partial : current.unreduced)
      if (target.owedOver(partial.axis) != partial.kind) {
        step.axes.push_back(partial.axis);
        step.reduction = partial.kind;
      }
    if (step.axes.empty())
      return;
    llvm::erase_if(current.unreduced,
                   [&](const Partial &partial) { return llvm::is_contained(step.axes, partial.axis); });
    steps.push_back(std::move(step));
  }

  /// Joins the parts of `dim` over the axes that the target does not have there, minor axes first.
  void gather(size_t dim) {
    Split &have = current.dims[dim];
    while (!have.isPrefixOf(target.dims[dim])) {
      const int64_t blocks = have.blocks;
      Axes axes = {removeLast(have)};
      while (!have.isPrefixOf(target.dims[dim]))
        axes.insert(axes.begin(), removeLast(have));
      steps.push_back({Kind::AllGather, axes, static_cast<int64_t>(dim), -1, blocks});
    }
  }

  static unsigned removeLast(Split &split) {
    const unsigned axis = split.pop_back_val();
    if (split.empty())
      split.blocks = 1;
    return axis;
  }

  void mask() {
    Axes axes;
    for (const Partial &partial : target.unreduced)
      if (!current.isUnreduced(partial.axis) && !isIdempotent(partial.kind))
        axes.push_back(partial.axis);
    if (!axes.empty())
      steps.push_back({Kind::Mask, axes});
  }

  Layout current;
  const Layout &target;
  SmallVector<ReshardStep> steps;
};

} // namespace

SmallVector<ReshardStep> planReshard(const Layout &from, const Layout &to) {
  assert(from.dims.size() == to.dims.size() && "layouts of one value");
  return Planner(from, to).plan();
}

} // namespace tessera::dist
