//===- IndexRange.h - which values an integer can have ----------*- C++ -*-===//
//
// What is known of integers from how they are computed: enough to tell whether an index can lie outside of its table.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_INDEXRANGE_H
#define TESSERA_PASSES_SIMPLIFY_INDEXRANGE_H

#include "mlir/IR/Value.h"
#include <optional>

namespace tessera::simplify {

/// Values that an integer can have; nullopt ends are unknown.
struct Range {
  std::optional<int64_t> low, high;
};

/// The values that an integer type holds; what is beyond 64 bits is not asked for.
Range rangeOfType(mlir::Type type);

/// What is known about the elements of an integer tensor from how it was computed.
Range rangeOf(mlir::Value value);

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
