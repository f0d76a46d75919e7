//===- IndexRange.h - which values an integer can have ----------*- C++ -*-===//
//
// What is known of integers from how they are computed: enough to tell whether an index can lie outside of its table.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_INDEXRANGE_H
#define TESSERA_PASSES_SIMPLIFY_INDEXRANGE_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace tessera::simplify {

/// Values that an integer can have; nullopt ends are unknown.
struct Range {
  std::optional<int64_t> low, high;
};

/// The values that an integer type holds; what is beyond 64 bits is not asked for.
Range rangeOfType(mlir::Type type);

/// What is known about the elements of integer tensors from how they were computed. Each tensor is looked at once: ops
/// may be added between two questions, but not changed.
class IndexRanges {
public:
  Range of(mlir::Value value);

private:
  /// A tensor, and a number that none of its elements is.
  using Query = std::pair<mlir::Value, std::optional<int64_t>>;

  /// The range, if those of the operands are known; else they are `missing`.
  Range compute(const Query &query);
  /// The range that an op's numbers have without the limits of their type.
  Range computeExact(const Query &query);
  /// The range of an operand; notes it as missing if it is not known yet.
  Range need(mlir::Value value, std::optional<int64_t> excluded = std::nullopt);

  llvm::DenseMap<Query, Range> known;
  llvm::SmallVector<Query> missing;
};

/// The argument whose own elements, unchanged, `value` holds; null if there is none.
mlir::BlockArgument indexArgument(mlir::Value value);

/// `bare < 0 ? bare + size : bare`: an index that may count from the end.
struct WrappedIndex {
  mlir::Value bare;
  int64_t size;
};
std::optional<WrappedIndex> wrappedIndex(mlir::Value value);

} // namespace tessera::simplify

#endif // TESSERA_PASSES_SIMPLIFY_INDEXRANGE_H
