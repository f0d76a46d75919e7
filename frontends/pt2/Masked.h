//===- Masked.h - tensors that masks from data name -------------*- C++ -*-===//
//
// How many elements `x[mask]` has is not known when a step is compiled. Here it stays all of x beside its mask
// (Entry::mask), as long as what reads it works on each element or row by itself, and becomes a number where a mean, a
// sum or a loss adds up those that count.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_MASKED_H
#define TESSERA_FRONTENDS_PT2_MASKED_H

#include "frontends/pt2/OpTable.h"

namespace tessera::pt2 {

/// Sets result 0 to the elements of `x` where `mask`, of its first dimensions, is true.
mlir::LogicalResult setMasked(Call &c, mlir::Value x, mlir::Value mask);

/// Whether a call reads any that were set so.
bool readsMasked(const Call &c);
/// Runs a row on such a call; fails where that does not give what the operator does.
mlir::LogicalResult runMasked(Call &c, const OpRow &row);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_MASKED_H
