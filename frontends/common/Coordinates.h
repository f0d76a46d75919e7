//===- Coordinates.h - indices of GatherND and ScatterND --------*- C++ -*-===//
//
// Index vectors, arranged for the functions of Indexing.h. A coordinate that only
// counts along a dimension of the indices, as in x[arange(B), i], makes a batch of
// that dimension.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_COORDINATES_H
#define TESSERA_FRONTENDS_COMMON_COORDINATES_H

#include "frontends/common/Indexing.h"

namespace tessera::frontend {

/// The indices of GatherND and ScatterND, [i…, coordinates], on data with `batches` common leading dimensions.
class Coordinates {
public:
  /// Fails with the call's reason. `data` and `indices` are numbers of inputs.
  static mlir::FailureOr<Coordinates> of(Call &n, int data, int indices, int64_t batches);

  /// Dimensions of the data (and of what replaces them), arranged and back.
  mlir::Value arrangeData(train::Build &b, mlir::Value data) const;
  mlir::Value restoreData(train::Build &b, mlir::Value data) const;
  /// The same for tensors [i…, trailing…]: results of a gather, updates of a scatter.
  mlir::Value arrangeItems(train::Build &b, mlir::Value items) const;
  mlir::Value restoreItems(train::Build &b, mlir::Value items) const;

  int64_t batch = 0;                            ///< leading dimensions that data and indices have in common
  std::optional<KnownIndices> known;            ///< the indices, or
  mlir::Value indices;                          ///< [batch…, count]
  llvm::SmallVector<int64_t> itemShape() const; ///< [i…, trailing…]

private:
  llvm::SmallVector<int64_t> dataShape, indexShape; ///< without the coordinates
  llvm::SmallVector<int64_t> dataOrder, indexOrder; ///< permutations: the batch, what is indexed, and what trails
  int64_t indexed = 0;                              ///< how many dimensions of the data the indices number
};

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_COORDINATES_H
