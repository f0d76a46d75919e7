//===- CollectiveBuilder.h - collectives of one rank's program --*- C++ -*-===//
//
// Writes the collectives that a change of layout takes, and those of ops that are computed by all ranks of a group
// together. All of them work on dimension 0, as the lowering wants; other dimensions, and those inside of blocks, are
// moved there and back.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_DIST_COLLECTIVEBUILDER_H
#define TESSERA_COMPILER_DIALECT_DIST_COLLECTIVEBUILDER_H

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/dist/DimPiece.h"
#include "compiler/dialect/train/Builders.h"

namespace tessera::dist {

/// Builds at `builder`'s insertion point, on local values. Axes are numbers of the mesh's axes; a group's
/// members are ordered as the list names them, the major one first. Every collective gets `origin`
/// (may be null). `order`, tensor<blocks x i64>, is that of what is dealt; null where nothing is.
class CollectiveBuilder {
public:
  CollectiveBuilder(mlir::OpBuilder &builder, mlir::Location loc, MeshAttr mesh, OriginAttr origin = {},
                    mlir::Value order = {})
      : builder(builder), loc(loc), mesh(mesh), origin(origin), order(order) {}

  /// One step of a change of layout.
  mlir::Value apply(const ReshardStep &step, mlir::Value value);
  /// The whole change: `value` is laid out as `from`, the result as `to`.
  mlir::Value reshard(mlir::Value value, const Layout &from, const Layout &to);

  /// The sum, maximum or minimum of the group's values; `value` itself without axes. Maxima and minima of floats
  /// narrower than f32 are taken in f32, which changes none.
  mlir::Value allReduce(mlir::Value value, llvm::ArrayRef<unsigned> axes, ReductionKind kind = ReductionKind::Sum);
  /// What the member `shift` further back in the group has of `value`.
  mlir::Value permute(mlir::Value value, llvm::ArrayRef<unsigned> axes, int64_t shift);
  /// This rank's position in its group, as tensor<i64>.
  mlir::Value position(llvm::ArrayRef<unsigned> axes);
  /// Index of the first element of this rank's part, one range, of a dimension of `size` elements, as tensor<i64>; null
  /// if the dimension is whole.
  mlir::Value firstElement(const Split &split, int64_t size);
  /// Where the elements are that this rank has of a dimension of `size` elements; nothing where a zigzag is split
  /// again, inside of its two ranges but not of each.
  std::optional<llvm::SmallVector<DimPiece>> pieces(const Split &split, int64_t size);
  /// The same as one index for each element of the part, tensor<n x i64>: of this rank's, or of that at `position`
  /// (tensor<i64>) of the group of the split's axes.
  mlir::Value indices(const Split &split, int64_t size, mlir::Value position = {});
  /// Where the ranges begin, all of one size, that the member at `position` of the group of the split's axes has of a
  /// dimension without blocks, as tensor<i64> each, in its order.
  llvm::SmallVector<mlir::Value, 2> rangeStarts(const Split &split, int64_t size, mlir::Value position);

private:
  mlir::Value expand(train::Build &build, mlir::Value value, int64_t dim, llvm::ArrayRef<int64_t> sizes) const;
  mlir::Value merge(train::Build &build, mlir::Value value, int64_t dim, int64_t count) const;
  mlir::Value onFirstDim(const ReshardStep &step, mlir::Value value);
  mlir::Value deal(train::Build &build, mlir::Value value, int64_t dim, int64_t ranks, bool toRanks) const;
  mlir::Value dealByOrder(train::Build &build, mlir::Value value, bool toRanks) const;
  llvm::SmallVector<mlir::Value, 2> rangesOf(train::Build &build, const SplitLevel &level, int64_t ranks, int64_t count,
                                             mlir::Value position) const;
  mlir::Value allToAll(const ReshardStep &step, mlir::Value value);
  mlir::Value mask(const ReshardStep &step, mlir::Value value);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  MeshAttr mesh;
  OriginAttr origin;
  mlir::Value order;
};

} // namespace tessera::dist

#endif // TESSERA_COMPILER_DIALECT_DIST_COLLECTIVEBUILDER_H
