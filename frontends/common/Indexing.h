//===- Indexing.h - gathers and scatters in one arrangement -----*- C++ -*-===//
//
// Frameworks have several ops that read or write elements by index. All become one of
// two functions here, on data [batch…, size, trailing…] and indices
// [batch…, count]: the dimensions along which data and indices walk together
// lead, and stay dimensions, so that they can be split over ranks.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_INDEXING_H
#define TESSERA_FRONTENDS_COMMON_INDEXING_H

#include "frontends/common/Axis.h"
#include "frontends/common/Call.h"

namespace tessera::frontend {

/// What happens where something is written: it replaces what was there (the last writer wins), or is combined with it.
enum class ScatterKind { Replace, Add, Mul, Max, Min };

/// What no maximum or minimum of floats, product or sum notices.
mlir::Value neutral(train::Build &b, ScatterKind kind, mlir::RankedTensorType type);

/// Indices that are the same for the whole batch and known at import, counted from the front.
using KnownIndices = llvm::SmallVector<int64_t>;

/// result[b…, m, t…] = data[b…, indices[b…, m], t…]. Of known indices, takeAlong is that.
mlir::Value pick(train::Build &b, mlir::Value data, mlir::Value indices);

/// data with updates[b…, m, t…] written to [b…, indices[b…, m], t…].
mlir::Value place(train::Build &b, ScatterKind kind, mlir::Value data, mlir::Value indices, mlir::Value updates);
/// No index may occur twice, unless the last writer wins. The dimension is one that canPlaceKnown allows.
mlir::Value placeKnown(train::Build &b, ScatterKind kind, mlir::Value data, int64_t batch, const KnownIndices &indices,
                       mlir::Value updates);

/// Whether `place` can be built: what compares all indices with each other, or with all elements, must not be too
/// large.
bool canPlace(ScatterKind kind, mlir::Value data, mlir::Value indices);
/// `placeKnown` makes a table of the writers of all elements of the dimension.
bool canPlaceKnown(mlir::Value data, int64_t batch);

/// The indices themselves, looked up in a table of all positions: says, where indices are only compared, that they must
/// lie in the dimension.
mlir::Value inDimension(train::Build &b, mlir::Value indices, int64_t size);

/// The first of known indices that follow each other, a vector or one number, within a dimension of a size.
std::optional<int64_t> consecutiveFrom(const HostTensor *indices, int64_t size);
/// Indices of a dimension of `size` as a value: known ones are checked and counted from the front. Unknown ones are
/// taken as they are: the runtime checks data against the table's size when it loads a batch.
mlir::FailureOr<mlir::Value> checkedIndices(Call &n, int i, int64_t size);

/// Computed indices may be negative and then count from the end; those that are an input's own values are checked when
/// a batch is loaded.
mlir::Value fromFront(train::Build &b, mlir::Value indices, int64_t size);

/// The indices of GatherElements and ScatterElements, input 1 of a call: of the data's rank, along one dimension of
/// which they name elements. In the other dimensions they walk together with a corner of the data.
class ElementIndices {
public:
  /// Fails with the call's reason.
  static mlir::FailureOr<ElementIndices> of(Call &n, int64_t axis);

  /// The indices as [batch…, count], counted from the front.
  mlir::FailureOr<mlir::Value> places(Call &n) const;
  /// The data's corner, or the data themselves.
  mlir::Value corner(train::Build &b, mlir::Value data) const;
  /// The indexed dimension last, as in [batch…, size], and back.
  mlir::Value arrange(train::Build &b, mlir::Value x) const { return permute(b, x, order); }
  mlir::Value restore(train::Build &b, mlir::Value x) const { return permute(b, x, inverse(order)); }

  int64_t size = 0;    ///< of the indexed dimension
  bool isPart = false; ///< whether the corner is not all of the data

private:
  llvm::SmallVector<int64_t> order, limits;
};

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_INDEXING_H
