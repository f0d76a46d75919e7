//===- Pieces.h - rows of numbers as few pieces -----------------*- C++ -*-===//
//
// A row of any length whose numbers are constant or ascend evenly, piece by piece, and what elementwise ops make of
// such rows.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_PIECES_H
#define TESSERA_PASSES_SIMPLIFY_PIECES_H

#include "compiler/dialect/train/Builders.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::simplify {

/// Elements [begin, end) of a row, where `begin` is the end of the piece before: `first + slope * (i - begin)`. With a
/// slope other than 0, all elements are whole numbers that a double holds exactly, and there are three or more.
struct Piece {
  int64_t end;
  double first;
  double slope;

  /// The element at `offset` from the piece's first.
  double at(int64_t offset) const { return first + slope * static_cast<double>(offset); }
};
/// Pieces in order, the last one ends at the end of the row.
using Row = llvm::SmallVector<Piece, 4>;

/// A number that a double holds exactly, as are its neighbours.
bool isWhole(double value);

/// A number rounded to an element type, as the result of an op of that type would be.
double roundedTo(double value, mlir::Type type);

// All of these add `length` elements to `row`; false where they are not pieces.

bool append(Row &row, int64_t length, double first, double slope);
/// As results of an op of element type `type`: one number is rounded to a float type; false where an integer type does
/// not hold the numbers, or a float type not all that ascend.
bool appendAs(Row &row, int64_t length, double first, double slope, mlir::Type type);
/// Ones where the comparison of a and b holds, else zeros; both begin with the stretch.
bool appendCompare(Row &row, int64_t length, const Piece &a, const Piece &b, train::CompareDirection direction);
bool appendMax(Row &row, int64_t length, const Piece &a, const Piece &b);
/// `op` is an add, a sub or a mul, with results of element type `type`.
bool appendArithmetic(Row &row, int64_t length, const Piece &a, const Piece &b, mlir::Operation *op, mlir::Type type);

/// Calls `visit(length, a, b)` for each stretch on which both rows are one piece; a and b begin where the stretch does.
/// Ends with false where `visit` does.
bool zipRows(const Row &a, const Row &b, llvm::function_ref<bool(int64_t, const Piece &, const Piece &)> visit);

} // namespace tessera::simplify

#endif // TESSERA_PASSES_SIMPLIFY_PIECES_H
