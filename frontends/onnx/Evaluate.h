//===- Evaluate.h - evaluates train ops on constants ------------*- C++ -*-===//
//
// An ONNX node whose inputs are all known is built as train ops in a scratch
// block, evaluated here and dropped: one evaluator serves every op, and shape
// arithmetic leaves no IR behind.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_ONNX_EVALUATE_H
#define TESSERA_FRONTENDS_ONNX_EVALUATE_H

#include "frontends/onnx/HostTensor.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"

namespace tessera::onnx_import {

using ConstantMap = llvm::DenseMap<mlir::Value, Constant>;

/// Evaluates all ops of `block` in order, adding their results to `values`. False if an op is not one that is evaluated
/// here, a result is too large, or an integer division by zero occurs. Adds the number of elements computed to `work`.
bool evaluate(mlir::Block &block, ConstantMap &values, int64_t &work);

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_EVALUATE_H
