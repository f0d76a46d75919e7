//===- Evaluate.h - evaluates train ops on constants ------------*- C++ -*-===//
//
// A node whose inputs are all known is built as train ops in a scratch block,
// evaluated here and dropped: one evaluator serves every op, and shape
// arithmetic leaves no IR behind.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_EVALUATE_H
#define TESSERA_FRONTENDS_COMMON_EVALUATE_H

#include "frontends/common/HostTensor.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::frontend {

using ConstantMap = llvm::DenseMap<mlir::Value, Constant>;

/// Evaluates all ops of `block` in order, adding their results to `values`. False if an op is not one that is evaluated
/// here, a result is too large, or an integer division by zero occurs. Adds the number of elements computed to `work`.
bool evaluate(mlir::Block &block, ConstantMap &values, int64_t &work);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_EVALUATE_H
