#include "compiler/dialect/dist/AxisAlgebra.h"

using namespace mlir;

namespace tessera::dist {

Layout Layout::replicated(int64_t rank) {
  Layout layout;
  layout.dims.resize(rank);
  return layout;
}

static Axes axisNumbers(ArrayAttr names, MeshAttr mesh) {
  Axes axes;
  for (auto name : names.getAsRange<StringAttr>())
    if (mesh.getAxisSize(name.getValue()) > 1)
      axes.push_back(static_cast<unsigned>(mesh.getAxisIndex(name.getValue())));
  return axes;
}

Layout Layout::get(ShardingAttr sharding, MeshAttr mesh) {
  Layout layout;
  for (auto names : sharding.getDims().getAsRange<ArrayAttr>())
    layout.dims.push_back(axisNumbers(names, mesh));
  layout.unreduced = axisNumbers(sharding.getUnreduced(), mesh);
  llvm::sort(layout.unreduced);
  return layout;
}

ShardingAttr Layout::toAttr(MeshAttr mesh) const {
  SmallVector<Attribute> names;
  for (const Axes &axes : dims)
    names.push_back(axisNames(mesh, axes));
  return ShardingAttr::get(mesh.getContext(), ArrayAttr::get(mesh.getContext(), names), axisNames(mesh, unreduced));
}

bool Layout::splits(unsigned axis) const {
  return llvm::any_of(dims, [&](const Axes &axes) { return llvm::is_contained(axes, axis); });
}

bool Layout::isReplicated() const {
  return unreduced.empty() && llvm::all_of(dims, [](const Axes &axes) { return axes.empty(); });
}

int64_t groupSize(MeshAttr mesh, ArrayRef<unsigned> axes) {
  int64_t size = 1;
  for (unsigned axis : axes)
    size *= mesh.getSizes()[axis];
  return size;
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

bool isInMeshOrder(ArrayAttr axes, MeshAttr mesh) { return llvm::is_sorted(axisNumbers(axes, mesh)); }

StringRef findUnknownAxis(ShardingAttr sharding, MeshAttr mesh) {
  auto firstUnknown = [&](ArrayAttr names) -> StringRef {
    for (auto name : names.getAsRange<StringAttr>())
      if (mesh.getAxisIndex(name.getValue()) < 0)
        return name.getValue();
    return {};
  };
  for (auto names : sharding.getDims().getAsRange<ArrayAttr>())
    if (StringRef unknown = firstUnknown(names); !unknown.empty())
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
    if (!steps.empty() && steps.back().kind == kind && steps.back().dim == static_cast<int64_t>(dim) &&
        steps.back().axes.back() < axis)
      steps.back().axes.push_back(axis);
    else
      steps.push_back({kind, {axis}, static_cast<int64_t>(dim)});
  }

  /// Adds the axes that dimension `dim` lacks, as long as none has to be gathered first.
  void split(size_t dim) {
    Axes &have = current.dims[dim];
    const Axes &want = target.dims[dim];
    while (isPrefix(have, want) && have.size() < want.size()) {
      unsigned axis = want[have.size()];
      if (current.isUnreduced(axis)) {
        llvm::erase(current.unreduced, axis);
        addSplit(Kind::ReduceScatter, axis, dim);
      } else if (!current.splits(axis)) {
        addSplit(Kind::Slice, axis, dim);
      } else {
        auto *source = llvm::find_if(current.dims, [&](const Axes &axes) { return llvm::is_contained(axes, axis); });
        if (source->back() != axis)
          return;
        source->pop_back();
        steps.push_back({Kind::AllToAll, {axis}, static_cast<int64_t>(dim), source - current.dims.begin()});
      }
      have.push_back(axis);
    }
  }

  void allReduce() {
    Axes axes;
    for (unsigned axis : current.unreduced)
      if (!target.isUnreduced(axis))
        axes.push_back(axis);
    if (axes.empty())
      return;
    for (unsigned axis : axes)
      llvm::erase(current.unreduced, axis);
    steps.push_back({Kind::AllReduce, axes});
  }

  /// Joins the parts of `dim` over the axes that the target does not have there, minor axes first.
  void gather(size_t dim) {
    Axes &have = current.dims[dim];
    while (!isPrefix(have, target.dims[dim])) {
      Axes axes = {have.pop_back_val()};
      while (!isPrefix(have, target.dims[dim]) && have.back() < axes.front())
        axes.insert(axes.begin(), have.pop_back_val());
      steps.push_back({Kind::AllGather, axes, static_cast<int64_t>(dim)});
    }
  }

  void mask() {
    Axes axes;
    for (unsigned axis : target.unreduced)
      if (!current.isUnreduced(axis))
        axes.push_back(axis);
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
