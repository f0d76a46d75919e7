//===- Index.h - positions of tensor elements as sums of digits -*- C++ -*-===//
//
// A kernel iterates over a mixed-radix space. Every index inside it is an exact linear form of the space's digits, so
// that reshapes, slices and transposes cost nothing where their boundaries meet those of the digits. Where they do not,
// the analysis asks for a digit to be cut; what still does not align becomes an opaque digit, computed by division.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_INDEX_H
#define TESSERA_PASSES_LOWER_CODEGEN_INDEX_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace tessera::codegen {

/// `sum of coefficient * digit + offset`, terms sorted by digit.
struct Index {
  struct Term {
    unsigned digit;
    int64_t coefficient;
    bool operator==(const Term &) const = default;
    auto operator<=>(const Term &) const = default;
  };
  llvm::SmallVector<Term, 4> terms;
  int64_t offset = 0;

  static Index constant(int64_t value) { return {{}, value}; }
  static Index ofDigit(unsigned digit, int64_t coefficient = 1) { return {{{digit, coefficient}}, 0}; }
  Index operator+(const Index &other) const;
  Index operator+(int64_t value) const;
  Index operator*(int64_t factor) const;
  /// By what `digit` is multiplied; 0 if it has no part.
  int64_t coefficient(unsigned digit) const;
  bool isConstant() const { return terms.empty(); }
  bool operator==(const Index &other) const { return offset == other.offset && terms == other.terms; }
  bool operator<(const Index &other) const;
};

/// One digit of the space, or an opaque value with a known range.
struct Digit {
  int64_t size = 1;
  bool reduced = false;
  /// Row-column kernels and kernels of blocks: the rows of a chunk or block, over which columns are reduced.
  bool walked = false;
  /// Its loop is unrolled, so that parts of a concatenation are told apart at compile time.
  bool unroll = false;
  /// Stands for several positions at the same loop depth, which the evaluator tells apart by their instance.
  bool varies = false;
  /// Not part of the space.
  bool opaque = false;
  /// The digit of the space that an opaque one is, known inside of a branch only, so that nothing moves out of it.
  std::optional<unsigned> insideOf;
  /// While code is emitted: its value (i64) or known constant, and the loop depth at which it is known.
  mlir::Value value;
  std::optional<int64_t> known;
  unsigned level = 0;
};

/// A request to cut `digit` into (size / factor, factor).
struct Cut {
  unsigned digit;
  int64_t factor;
};

/// The digits, major first, followed by opaque ones.
class Space {
public:
  llvm::SmallVector<Digit> digits;

  /// Largest value that `index` takes.
  int64_t maximum(const Index &index) const;
  unsigned level(const Index &index) const;
  /// Replaces digits whose value is known by that value.
  Index substitute(const Index &index) const;
  unsigned addOpaque(int64_t size, unsigned level, mlir::Value value = {});
  /// `index` by digits that are known inside of a branch at loop depth `level`.
  Index inside(const Index &index, unsigned level);
  /// The same by digits of the space where it was made by `inside`.
  Index outside(const Index &index) const;

  /// Exact quotient and remainder (not negative); nothing if the digits do not align. Then `wanted` is the cut that
  /// would help, if any.
  std::optional<std::pair<Index, Index>> divide(const Index &index, int64_t divisor, std::optional<Cut> &wanted) const;
};

/// `index` once the last digit is cut: the digit is that of the high part, the next one that of the low part.
Index cutLast(const Index &index, const Cut &cut);
Index linearize(llvm::ArrayRef<Index> indices, llvm::ArrayRef<int64_t> shape);
int64_t elementsOf(llvm::ArrayRef<int64_t> shape);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_INDEX_H
