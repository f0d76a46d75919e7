//===- ValueContents.h - what each tensor of a step consists of -*- C++ -*-===//
//
// Numbers the values of a lowered step. An *origin* is a value that some op computes, an argument, or a constant; every
// other value consists of elements of origins: layout ops, concatenations, micro-batches and copies compute nothing.
// This side of the proof of a memory plan reads the IR before memory is planned, and knows nothing of buffers.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_VALUECONTENTS_H
#define TESSERA_PASSES_LOWER_VALUECONTENTS_H

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/train/Train.h"
#include "passes/lower/StridedMap.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <string>

namespace tessera::lower {

/// Some elements of a value: takes their positions, in row-major order, to elements of the origin.
struct Piece {
  unsigned origin;
  StridedMap map;
};
/// All elements of a value, or all that is known of them.
using Content = llvm::SmallVector<Piece, 1>;

/// The origin of elements that nobody follows, because it would take too many pieces to say what they are. They may be
/// anything, so what is read there is not proved.
constexpr unsigned kNotFollowed = ~0u;

inline bool isFollowed(const Content &content) {
  return llvm::none_of(content, [](const Piece &piece) { return piece.origin == kNotFollowed; });
}

/// Bounds what is made of `pieces` by one view: few more of them, whatever the sizes of tensors.
class PieceLimit {
public:
  explicit PieceLimit(size_t pieces) : most(std::max<size_t>(pieces + 64, 512)), effort(32 * int64_t(most)) {}
  bool isReached(size_t made) const { return effort < 0 || made > most; }

private:
  size_t most;

public:
  int64_t effort; ///< for the maps
};

class ValueContents {
public:
  /// For one rank of the mesh (null if there is none).
  ValueContents(dist::MeshAttr mesh, int64_t rank) : mesh(mesh), rank(rank) {}

  /// The value becomes an origin. Inside a loop it is another one in each iteration.
  void define(mlir::Value value, int64_t iteration = 0);
  void bind(mlir::Value value, Content content) { contents[value] = std::move(content); }
  const Content &lookup(mlir::Value value) const;
  /// If the op computes nothing, binds its result and returns true.
  bool derive(mlir::Operation *op);

  /// The content of a value of `elements` elements that all have this value.
  Content constant(double value, int64_t elements);
  /// The content of the transpose of a value of this shape.
  Content transpose(const Content &content, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> permutation) const;
  /// The content of slice `number` along dimension 0, where a slice has `elements` elements.
  Content part(const Content &content, int64_t number, int64_t elements) const;

  /// Position of the rank in its group over `axes`.
  int64_t positionOver(mlir::ArrayAttr axes) const;
  /// `'h.0.attn' (result 0 of 'exec.fusion')`.
  std::string describe(unsigned origin) const;

private:
  struct Origin {
    mlir::Value value; ///< null for a constant
    int64_t iteration = 0;
    double number = 0.0;
  };

  dist::MeshAttr mesh;
  int64_t rank;
  std::vector<Origin> origins;
  llvm::DenseMap<uint64_t, unsigned> constants; ///< by the bits of the number
  llvm::DenseMap<mlir::Value, Content> contents;
};

/// `'h.0.attn' (result 0 of 'exec.fusion')`.
std::string describe(mlir::Value value);

/// Elements of a tensor or buffer.
int64_t numElements(mlir::Value value);

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_VALUECONTENTS_H
