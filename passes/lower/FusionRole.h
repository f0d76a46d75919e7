//===- FusionRole.h - what ops are to fusion --------------------*- C++ -*-===//
//
// Computed by a kernel, an index map inside kernels, or left to memory planning and libraries.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_FUSIONROLE_H
#define TESSERA_PASSES_LOWER_FUSIONROLE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera {

/// How an op takes part in fusion.
enum class FusionRole {
  /// Computes something new: member of exactly one group.
  Compute,
  /// An index map: copied into each kernel that reads it.
  View,
  /// Stays in the block.
  Fixed
};

/// The roles of the ops of a block, decided once, before anything is rewritten. Most ops have theirs by what they are;
/// those of concatenations and reshapes depend on what reads them and on what makes their operands. An op that is made
/// later has the role that it would have where no library call reads it.
class FusionRoles {
public:
  explicit FusionRoles(mlir::Block &block);

  FusionRole of(mlir::Operation *op) const;

private:
  bool readByLibrary(mlir::Value value) const;
  FusionRole concatRole(mlir::Operation *op) const;
  FusionRole reshapeRole(mlir::Operation *op) const;

  /// Of concatenations and reshapes that are more than index maps.
  llvm::DenseMap<mlir::Operation *, FusionRole> decided;
};

/// Whether memory planning can make this view without a kernel.
bool isLayoutView(mlir::Operation *op);

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_FUSIONROLE_H
