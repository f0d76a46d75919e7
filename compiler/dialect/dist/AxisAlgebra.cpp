#include "compiler/dialect/dist/AxisAlgebra.h"

using namespace mlir;

namespace tessera::dist {

Layout Layout::replicated(int64_t rank) {
  Layout layout;
  layout.dims.resize(rank);
  return layout;
}

Axes Split::axes() const {
  Axes axes;
  for (const SplitLevel &level : *this)
    axes.push_back(level.axis);
  return axes;
}

bool Split::hasAxis(unsigned axis) const {
  return llvm::any_of(*this, [&](const SplitLevel &level) { return level.axis == axis; });
}

bool Split::isPrefixOf(const Split &other) const {
  return size() <= other.size() && ArrayRef<SplitLevel>(other).take_front(size()) == ArrayRef<SplitLevel>(*this);
}

bool Split::hasBlocks() const {
  return llvm::any_of(*this, [](const SplitLevel &level) { return level.blocks != 1; });
}

bool Split::isRange() const {
  return llvm::all_of(*this,
                      [](const SplitLevel &level) { return level.blocks == 1 && !level.isZigzag && level.dealt == 0; });
}

bool Split::isRun() const {
  return !hasBlocks() && llvm::all_of(*this, [&](const SplitLevel &level) { return level.hasOrderOf(front()); });
}

bool Split::isDealt() const {
  return llvm::any_of(*this, [](const SplitLevel &level) { return level.dealt != 0; });
}

size_t Split::firstDealtWith(size_t level) const {
  const int64_t dealt = (*this)[level].dealt;
  while (dealt != 0 && level > 0 && (*this)[level].blocks == 1 && (*this)[level - 1].dealt == dealt)
    --level;
  return level;
}

int64_t Split::rangesLeft(size_t level, MeshAttr mesh) const {
  const SplitLevel &last = (*this)[level];
  if (last.dealt == 0)
    return last.isZigzag ? 2 : 1;
  int64_t ranks = 1;
  for (size_t with = firstDealtWith(level); with <= level; ++with)
    ranks *= mesh.getSizes()[(*this)[with].axis];
  return last.dealt % ranks == 0 ? last.dealt / ranks : 0;
}

bool Split::divides(size_t level, int64_t size, MeshAttr mesh) const {
  const int64_t ranges = mesh.getSizes()[(*this)[level].axis] * rangesLeft(level, mesh);
  return ranges != 0 && size % (blocksAt(level) * ranges) == 0;
}

int64_t Split::blocksAt(size_t level) const {
  int64_t blocks = 1;
  for (size_t i = 0; i <= level; ++i)
    blocks *= (*this)[i].blocks;
  return blocks;
}

Layout Layout::inRanges() const {
  Layout layout = *this;
  for (Split &split : layout.dims)
    if (!split.isRange())
      split = Split();
  return layout;
}

Axes axisNumbers(ArrayAttr names, MeshAttr mesh) {
  Axes axes;
  for (auto name : names.getAsRange<StringAttr>())
    if (mesh.getAxisSize(name.getValue()) > 1)
      axes.push_back(static_cast<unsigned>(mesh.getAxisIndex(name.getValue())));
  return axes;
}

Split getSplit(ShardingAttr sharding, int64_t dim, MeshAttr mesh) {
  Split split;
  int64_t blocks = 1;
  bool isLevel = false; // whether the last name is of an axis larger than 1
  for (Attribute item : cast<ArrayAttr>(sharding.getDims()[dim])) {
    if (auto count = dyn_cast<IntegerAttr>(item)) {
      blocks *= count.getInt(); // those in front of an axis of size 1 remain
    } else if (auto name = dyn_cast<StringAttr>(item)) {
      isLevel = mesh.getAxisSize(name.getValue()) > 1;
      if (isLevel) {
        split.push_back({static_cast<unsigned>(mesh.getAxisIndex(name.getValue())), blocks});
        blocks = 1;
      }
    } else if (auto dealt = dyn_cast<DealtAttr>(item)) {
      if (isLevel)
        split.back().dealt = dealt.getBlocks();
    } else if (isLevel) {
      split.back().isZigzag = true;
    }
  }
  return split;
}

Layout Layout::get(ShardingAttr sharding, MeshAttr mesh) {
  Layout layout;
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    layout.dims.push_back(getSplit(sharding, dim, mesh));
  for (unsigned axis : axisNumbers(sharding.getUnreduced(), mesh))
    layout.unreduced.push_back({axis, sharding.getReduction()});
  llvm::sort(layout.unreduced);
  return layout;
}

ShardingAttr Layout::toAttr(MeshAttr mesh) const {
  MLIRContext *context = mesh.getContext();
  SmallVector<Attribute> names;
  for (const Split &split : dims) {
    SmallVector<Attribute> list;
    for (const SplitLevel &level : split) {
      if (level.blocks != 1)
        list.push_back(IntegerAttr::get(IntegerType::get(context, 64), level.blocks));
      list.push_back(mesh.getNames()[level.axis]);
      if (level.isZigzag)
        list.push_back(UnitAttr::get(context));
      if (level.dealt != 0)
        list.push_back(DealtAttr::get(context, level.dealt));
    }
    names.push_back(ArrayAttr::get(context, list));
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
  return llvm::any_of(dims, [&](const Split &split) { return split.hasAxis(axis); });
}

bool Layout::isReplicated() const {
  return unreduced.empty() && llvm::all_of(dims, [](const Split &split) { return split.empty(); });
}

bool Layout::isDealt() const {
  return llvm::any_of(dims, [](const Split &split) { return split.isDealt(); });
}

static Axes axesWhere(MeshAttr mesh, bool AxisRoleInfo::*property) {
  Axes axes;
  for (auto [axis, size] : llvm::enumerate(mesh.getSizes()))
    if (size > 1 && mesh.getAxisInfo(axis).*property)
      axes.push_back(axis);
  return axes;
}

Axes sampleAxes(MeshAttr mesh) { return axesWhere(mesh, &AxisRoleInfo::splitsSamples); }
Axes positionAxes(MeshAttr mesh) { return axesWhere(mesh, &AxisRoleInfo::splitsPositions); }
Axes gradientAxes(MeshAttr mesh) { return axesWhere(mesh, &AxisRoleInfo::sumsGradients); }
Axes stateAxes(MeshAttr mesh) { return axesWhere(mesh, &AxisRoleInfo::splitsState); }
Axes parameterAxes(MeshAttr mesh) { return axesWhere(mesh, &AxisRoleInfo::splitsParameters); }

int64_t groupSize(MeshAttr mesh, ArrayRef<unsigned> axes) {
  int64_t size = 1;
  for (unsigned axis : axes)
    size *= mesh.getSizes()[axis];
  return size;
}

int64_t groupSize(MeshAttr mesh, const Split &split) { return groupSize(mesh, split.axes()); }

SmallVector<int64_t> elementsOf(const Split &split, int64_t size, MeshAttr mesh, int64_t rank) {
  assert(!split.isDealt() && "what is dealt depends on a value");
  int64_t left = size / groupSize(mesh, split);
  SmallVector<int64_t> elements = llvm::to_vector(llvm::seq<int64_t>(0, left));
  // From what the last level leaves to what the first one splits.
  for (size_t number = split.size(); number-- > 0;) {
    const SplitLevel &level = split[number];
    const int64_t ranks = mesh.getSizes()[level.axis], block = left / split.blocksAt(number);
    const int64_t position = positionInGroup(mesh, axisNames(mesh, {level.axis}), rank);
    for (int64_t &element : elements) {
      int64_t inside = element % block;
      if (!level.isZigzag)
        inside += position * block;
      else
        inside += inside < block / 2 ? position * (block / 2) : (2 * ranks - 2 - position) * (block / 2);
      element = element / block * block * ranks + inside;
    }
    left *= ranks;
  }
  return elements;
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
  void addSplit(Kind kind, const Split &want, size_t level, size_t dim) {
    const SplitLevel &added = want[level];
    const int64_t dealt = dealtAt(want, level);
    if (!steps.empty() && steps.back().kind == kind && steps.back().dim == static_cast<int64_t>(dim) &&
        added.blocks == 1 && steps.back().isZigzag == added.isZigzag && steps.back().dealt == 0 && dealt == 0)
      return steps.back().axes.push_back(added.axis);
    ReshardStep step{kind, {added.axis}, static_cast<int64_t>(dim)};
    step.blocks = want.blocksAt(level);
    step.isZigzag = added.isZigzag;
    step.dealt = dealt;
    steps.push_back(std::move(step));
  }

  /// Ranges that a step puts in order, or back: the first of several levels that are dealt together does it for all.
  static int64_t dealtAt(const Split &split, size_t level) {
    return split.firstDealtWith(level) == level ? split[level].dealt : 0;
  }

  /// Adds the axes that dimension `dim` lacks, as long as none has to be gathered first.
  void split(size_t dim) {
    Split &have = current.dims[dim];
    const Split &want = target.dims[dim];
    while (have.isPrefixOf(want) && have.size() < want.size()) {
      const SplitLevel level = want[have.size()];
      if (std::optional<ReductionKind> owed = current.owedOver(level.axis)) {
        if (*owed != ReductionKind::Sum)
          return;
        llvm::erase(current.unreduced, Partial(level.axis, *owed));
        addSplit(Kind::ReduceScatter, want, have.size(), dim);
      } else if (!current.splits(level.axis)) {
        addSplit(Kind::Slice, want, have.size(), dim);
      } else {
        auto *source = llvm::find_if(current.dims, [&](const Split &split) { return split.hasAxis(level.axis); });
        if (source->back().axis != level.axis)
          return;
        // What an order is for is gathered: parts that are exchanged would come in that order, or be taken for it.
        if (dealtAt(want, have.size()) != 0 || dealtAt(*source, source->size() - 1) != 0)
          return;
        ReshardStep step{Kind::AllToAll, {level.axis}, static_cast<int64_t>(dim), source - current.dims.begin()};
        step.blocks = want.blocksAt(have.size());
        step.isZigzag = level.isZigzag;
        step.fromBlocks = source->blocksAt(source->size() - 1);
        step.fromZigzag = source->back().isZigzag;
        steps.push_back(std::move(step));
        source->pop_back();
      }
      have.push_back(level);
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
      ReshardStep step{Kind::AllGather, {have.back().axis}, static_cast<int64_t>(dim)};
      step.isZigzag = have.back().isZigzag;
      step.dealt = dealtAt(have, have.size() - 1);
      // Levels without blocks between them are one.
      while (have.back().blocks == 1 && have.size() > 1 && have[have.size() - 2].isZigzag == step.isZigzag &&
             step.dealt == 0 && dealtAt(have, have.size() - 2) == 0 && !isPrefixWithout(have, target.dims[dim])) {
        have.pop_back();
        step.axes.insert(step.axes.begin(), have.back().axis);
      }
      step.blocks = have.blocksAt(have.size() - 1);
      have.pop_back();
      steps.push_back(std::move(step));
    }
  }

  /// Whether `split` without its last level is a prefix of `target`.
  static bool isPrefixWithout(const Split &split, const Split &target) {
    Split rest = split;
    rest.pop_back();
    return rest.isPrefixOf(target);
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
