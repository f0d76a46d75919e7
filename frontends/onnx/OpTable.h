//===- OpTable.h - which ONNX ops the importer knows ------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_ONNX_OPTABLE_H
#define TESSERA_FRONTENDS_ONNX_OPTABLE_H

#include "frontends/onnx/Node.h"

namespace tessera::onnx_import {

/// The newest opset of the default domain that handlers were written against; the oldest that exporters still use.
inline constexpr int kMinOpset = 11, kMaxOpset = 23;
/// Rows whose handler is right in all of them.
inline constexpr int kAny = kMinOpset, kNew = kMaxOpset;

using Handler = mlir::LogicalResult (*)(Node &);

struct OpRow {
  llvm::StringLiteral domain, name;
  int minOpset, maxOpset; ///< opsets of the model in which the handler is right
  int minInputs;          ///< inputs that must be there
  Handler handler;
};

/// The row of an op, or null.
const OpRow *findOp(llvm::StringRef domain, llvm::StringRef name);
/// All rows of one source file.
llvm::ArrayRef<OpRow> activationOps();
llvm::ArrayRef<OpRow> elementwiseOps();
llvm::ArrayRef<OpRow> contractOps();
llvm::ArrayRef<OpRow> convolutionOps();
llvm::ArrayRef<OpRow> lossOps();
llvm::ArrayRef<OpRow> neuralOps();
llvm::ArrayRef<OpRow> reduceOps();
llvm::ArrayRef<OpRow> partOps();
llvm::ArrayRef<OpRow> shapeOps();
llvm::ArrayRef<OpRow> indexOps();
llvm::ArrayRef<OpRow> scatterOps();
llvm::ArrayRef<OpRow> selectOps();
llvm::ArrayRef<OpRow> leafOps();
llvm::ArrayRef<OpRow> resizeOps();
llvm::ArrayRef<OpRow> recurrentOps();
llvm::ArrayRef<OpRow> rotaryOps();
llvm::ArrayRef<OpRow> poolOps();
llvm::ArrayRef<OpRow> padOps();
llvm::ArrayRef<OpRow> imageOps();
llvm::ArrayRef<OpRow> gridOps();

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_OPTABLE_H
