//===- StridedMap.h - maps between strided sets of integers -----*- C++ -*-===//
//
// What a view of memory, a layout op and a copy have in common: each relates the elements of one strided box to those
// of another. The proof of memory plans composes and subtracts such maps. As long as strides are multiples of one
// another, what comes out does not depend on the size of the tensors. Where they are not, it is cut row by row, and may
// come to a map for each element; so a caller says how much effort a result is worth.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_STRIDEDMAP_H
#define TESSERA_PASSES_LOWER_STRIDEDMAP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace tessera::lower {

/// For each index with `0 <= i_d < size_d`: takes `in + Σ i_d * in_d` to `out + Σ i_d * out_d`. Dimensions are ordered
/// by `in_d`, largest first, and nested: a step of one is longer than all of what lies inside of it. No two indices
/// have the same input.
struct StridedMap {
  struct Dim {
    int64_t size, in, out;
    bool operator==(const Dim &other) const = default;
  };

  int64_t in = 0, out = 0;
  llvm::SmallVector<Dim, 4> dims;

  /// Brings dimensions in any order into the canonical one: sorted, merged, without those of size 1.
  static StridedMap get(int64_t in, int64_t out, llvm::ArrayRef<Dim> dims);
  /// `[0, size)` to itself.
  static StridedMap identity(int64_t size);

  int64_t size() const;
  /// Largest input, smallest is `in`.
  int64_t lastIn() const;
  bool isNested() const;
  /// The map from outputs to inputs, if no two outputs are the same.
  StridedMap inverse() const;
  /// The same inputs, all of them taken to 0.
  StridedMap domain() const;

  bool operator==(const StridedMap &other) const = default;
};

using StridedMaps = llvm::SmallVector<StridedMap, 1>;

/// For every input that both have: takes the output of `a` to that of `b`. Each step lowers `effort`; once that is
/// below zero, the result is of no use.
StridedMaps meet(const StridedMap &a, const StridedMap &b, int64_t &effort);
StridedMaps meet(const StridedMap &a, const StridedMap &b);

/// The part of `map` on inputs that `other` does not have. With `effort` as above.
StridedMaps subtract(const StridedMap &map, const StridedMap &other, int64_t &effort);
StridedMaps subtract(const StridedMap &map, const StridedMap &other);

/// True if some input is one of both.
inline bool overlap(const StridedMap &a, const StridedMap &b) { return !meet(a.domain(), b.domain()).empty(); }

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_STRIDEDMAP_H
