//===- Compare.h - results of two functions, or of their gradient -*- C++ -*-===//
//
// The checks that tests of passes are made of: two modules give the same results
// on the same arguments, and gradients agree with finite differences of the loss.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_INTERP_COMPARE_H
#define TESSERA_COMPILER_INTERP_COMPARE_H

#include "compiler/interp/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace tessera::interp {

struct Tolerance {
  double rtol = 0.0;
  double atol = 0.0;
};

/// A global result and the name by which it is found in another module.
struct NamedResult {
  std::string name;
  Tensor value;
};

/// Names results by what they are: `loss`, `grad_norm`, `grad <parameter>`, `<parameter>` (its next value), or `result
/// <i>`. A flat unit (and its gradient and states) becomes one entry per segment.
std::vector<NamedResult> nameResults(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> results);

/// Reports, at `function`, a derived argument whose next value is not its source's, rounded. Such values follow from
/// others, so that `nameResults` leaves them out.
mlir::LogicalResult checkDerived(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> results);

/// Reports every result of `actual` that differs from the one of the same name in `expected`, at `function`. Unless
/// `commonOnly`, both must have the same names; there must be at least one in common.
mlir::LogicalResult compareResults(mlir::func::FuncOp function, llvm::ArrayRef<NamedResult> actual,
                                   llvm::ArrayRef<NamedResult> expected, Tolerance tolerance, bool commonOnly);

/// Changes the element type f32 to f64 throughout a module.
void widenToF64(mlir::ModuleOp module);

/// Compares each gradient that `function` returns with central differences of its loss, at all elements of a parameter
/// or at `samples` of them chosen by `seed`.
mlir::LogicalResult checkGradients(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments, int64_t samples,
                                   uint64_t seed, Tolerance tolerance, int64_t numRanks);

} // namespace tessera::interp

#endif // TESSERA_COMPILER_INTERP_COMPARE_H
