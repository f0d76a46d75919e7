//===- AxisAlgebra.h - shardings as lists of mesh axes ----------*- C++ -*-===//
//
// The arithmetic of shardings, free of IR: a Layout is a sharding whose axes are
// numbers of mesh axes, and a change of layout is a short sequence of steps, each
// one collective. Axes of size 1 do not exist here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_DIST_AXISALGEBRA_H
#define TESSERA_COMPILER_DIALECT_DIST_AXISALGEBRA_H

#include "compiler/dialect/dist/Dist.h"

#include <optional>

namespace tessera::dist {

/// Numbers of mesh axes, major first.
using Axes = llvm::SmallVector<unsigned, 2>;

/// One axis of a split: each part that the axes before leave is `blocks` blocks, and each of these is split over the
/// axis. A zigzag deals 2n ranges to n positions: position p has ranges p and 2n - 1 - p, in this order. Of causal
/// attention each position then has the same work. What is dealt consists of a number of ranges, in an order that a
/// value says (`dist.deal`): of n positions p has the p-th of n equal parts of the order, and so have the positions on
/// further axes that are dealt by the same order.
struct SplitLevel {
  SplitLevel(unsigned axis, int64_t blocks = 1, bool isZigzag = false, int64_t dealt = 0)
      : axis(axis), isZigzag(isZigzag), dealt(static_cast<unsigned>(dealt)), blocks(blocks) {}

  unsigned axis;
  bool isZigzag : 1;
  unsigned dealt : 31; ///< ranges of the whole dimension; 0: not dealt
  int64_t blocks;

  bool hasOrderOf(const SplitLevel &other) const { return isZigzag == other.isZigzag && dealt == other.dealt; }
  bool operator==(const SplitLevel &other) const {
    return axis == other.axis && blocks == other.blocks && hasOrderOf(other);
  }
};

/// How one dimension is split, the major axis first: each level splits what the one before leaves of it. What was
/// [time, batch] before a reshape made it one dimension consists of `time` blocks, and a rank has its samples of each.
struct Split : llvm::SmallVector<SplitLevel, 2> {
  Split() = default;
  explicit Split(const Axes &axes) {
    for (unsigned axis : axes)
      push_back({axis});
  }

  Axes axes() const;
  bool hasAxis(unsigned axis) const;
  /// This is `other`, or becomes it by further levels.
  bool isPrefixOf(const Split &other) const;
  /// Each rank's part is a part of each of several blocks.
  bool hasBlocks() const;
  /// Each rank's part is one range.
  bool isRange() const;
  /// Each rank's part is one range, or the two of one zigzag over all axes, or what is dealt to it by one order.
  bool isRun() const;
  /// Positions depend on a `dist.deal`.
  bool isDealt() const;
  /// The first of the levels that are dealt together with `level`, or `level` if it is not dealt.
  size_t firstDealtWith(size_t level) const;
  /// Whether `level` cuts `size` elements, those that the levels before leave, in ranges of equal size, as many for
  /// each rank.
  bool divides(size_t level, int64_t size, MeshAttr mesh) const;
  /// Ranges that a rank has of each block behind `level`: 2 of a zigzag, as many as it is dealt, else 1; 0 where what
  /// is dealt does not divide by the ranks.
  int64_t rangesLeft(size_t level, MeshAttr mesh) const;
  /// Blocks of what a rank has that the levels up to `level` split.
  int64_t blocksAt(size_t level) const;
};

/// A reduction that is owed over an axis.
struct Partial {
  Partial(unsigned axis, ReductionKind kind = ReductionKind::Sum) : axis(axis), kind(kind) {}

  unsigned axis;
  ReductionKind kind;

  bool operator==(const Partial &other) const { return axis == other.axis && kind == other.kind; }
  bool operator<(const Partial &other) const { return axis < other.axis; }
};
using Partials = llvm::SmallVector<Partial, 2>;

/// How one value is split over the mesh.
struct Layout {
  llvm::SmallVector<Split, 4> dims; ///< axes that split each dimension
  Partials unreduced;               ///< axes over which ranks hold parts of a reduction, ascending; all of one kind

  static Layout replicated(int64_t rank);
  /// Leaves out axes of size 1. All axes of the sharding exist in the mesh.
  static Layout get(ShardingAttr sharding, MeshAttr mesh);

  ShardingAttr toAttr(MeshAttr mesh) const;
  /// Some dimension is split over `axis`.
  bool splits(unsigned axis) const;
  /// What is owed over `axis`, if anything.
  std::optional<ReductionKind> owedOver(unsigned axis) const;
  bool isUnreduced(unsigned axis) const { return owedOver(axis).has_value(); }
  bool isReplicated() const;
  /// Some dimension is dealt.
  bool isDealt() const;
  Layout reduced() const { return {dims, {}}; }
  /// Each rank's part of a dimension is one range of it: what is split otherwise becomes whole.
  Layout inRanges() const;
  bool operator==(const Layout &other) const { return dims == other.dims && unreduced == other.unreduced; }
  bool operator!=(const Layout &other) const { return !(*this == other); }
};

/// The axes larger than 1 over which samples are split, in the order of the mesh.
Axes sampleAxes(MeshAttr mesh);
/// The axes larger than 1 over which positions are split, in the order of the mesh.
Axes positionAxes(MeshAttr mesh);
/// The axes larger than 1 over which ranks have terms of one gradient, in the order of the mesh.
Axes gradientAxes(MeshAttr mesh);
/// The axes larger than 1 over which a strategy may split state, in the order of the mesh.
Axes stateAxes(MeshAttr mesh);
/// The axes larger than 1 that parameters may be placed on, in the order of the mesh.
Axes parameterAxes(MeshAttr mesh);
/// Product of the sizes of `axes`.
int64_t groupSize(MeshAttr mesh, llvm::ArrayRef<unsigned> axes);
int64_t groupSize(MeshAttr mesh, const Split &split);
/// How `sharding` splits dimension `dim`.
Split getSplit(ShardingAttr sharding, int64_t dim, MeshAttr mesh);
/// Where the elements of a rank's part are in a dimension of `size` elements, in their order.
llvm::SmallVector<int64_t> elementsOf(const Split &split, int64_t size, MeshAttr mesh, int64_t rank);
/// Where a rank stands in its group: by its positions on `axes`, of which the first is the major one.
int64_t positionInGroup(MeshAttr mesh, mlir::ArrayAttr axes, int64_t rank);
/// The axes that an array of strings names.
Axes axisNumbers(mlir::ArrayAttr names, MeshAttr mesh);
/// The names of `axes`, an array of strings.
mlir::ArrayAttr axisNames(MeshAttr mesh, llvm::ArrayRef<unsigned> axes);
/// The first axis name of `sharding` that the mesh does not have; empty if it has all.
llvm::StringRef findUnknownAxis(ShardingAttr sharding, MeshAttr mesh);

/// One step from a layout to the next.
struct ReshardStep {
  enum class Kind {
    Slice,         ///< keep the own part along `dim`; no communication
    ReduceScatter, ///< partial sums become parts along `dim`
    AllReduce,     ///< partial values become the whole, by `reduction`
    AllToAll,      ///< parts along `fromDim` become parts along `dim`
    AllGather,     ///< parts along `dim` are joined
    Mask,          ///< the whole becomes a partial sum: the value on position 0, zero elsewhere
  };
  Kind kind;
  Axes axes; ///< the major one first: the order of a group's members is the order of the parts
  int64_t dim = -1;
  int64_t fromDim = -1;
  int64_t blocks = 1;     ///< of `dim`
  int64_t fromBlocks = 1; ///< of `fromDim`
  bool isZigzag = false, fromZigzag = false;
  int64_t dealt = 0; ///< ranges that all of `dim`, of each block, is dealt in
  ReductionKind reduction = ReductionKind::Sum;
};

/// The steps from one layout to another. Steps that shrink the value come first: slices and reduce-scatters, then
/// all-reduces, then gathers, then slices of what had to be gathered. An unreduced axis always ends in a reduction. A
/// maximum is reduced whole and then sliced: it is a statistic of few bytes, and GPUs' libraries lose its NaNs when
/// they scatter it. A whole value is its own partial maximum, so that none is masked.
llvm::SmallVector<ReshardStep> planReshard(const Layout &from, const Layout &to);

} // namespace tessera::dist

#endif // TESSERA_COMPILER_DIALECT_DIST_AXISALGEBRA_H
