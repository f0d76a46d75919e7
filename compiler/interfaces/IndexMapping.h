//===- IndexMapping.h - which elements a view shows -------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_INTERFACES_INDEXMAPPING_H
#define TESSERA_COMPILER_INTERFACES_INDEXMAPPING_H

#include "mlir/IR/OpDefinition.h"

namespace tessera {

/// Which elements of its operand an op has in its result.
enum class ElementMap {
  Identity,    ///< all, where they are
  Permutation, ///< all, elsewhere or in another shape
  Selection,   ///< some, each once
  Repetition,  ///< all, some of them more than once
};

/// What decides which element of the operand an element of the result is.
enum class IndexSource {
  Static, ///< the op's attributes
  Rank,   ///< the position of the rank in its group as well
  Data,   ///< another operand as well
};

} // namespace tessera

#include "compiler/interfaces/IndexMapping.h.inc"

namespace tessera {

/// `op` as a view whose place its attributes say and that is no mere identity: what may be repeated where it is read,
/// on other elements of the same shape; null if it is none.
IndexMappingOpInterface asStaticView(mlir::Operation *op);

} // namespace tessera

#endif // TESSERA_COMPILER_INTERFACES_INDEXMAPPING_H
