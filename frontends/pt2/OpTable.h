//===- OpTable.h - which operators the importer knows -----------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_PT2_OPTABLE_H
#define TESSERA_FRONTENDS_PT2_OPTABLE_H

#include "frontends/pt2/Call.h"

namespace tessera::pt2 {

using Handler = mlir::LogicalResult (*)(Call &);

struct OpRow {
  llvm::StringLiteral target; ///< "aten.linear.default"
  Handler handler;
  const char *needs = "self"; ///< names of tensors that must be there, by commas
};

/// An operator that is refused for a reason.
struct RefusedOp {
  llvm::StringLiteral target, reason;
};

/// Why what is not taught complex numbers is refused where it meets them.
inline constexpr llvm::StringLiteral kNoComplex = "complex numbers are not supported";

/// "aten.linear.default" of "torch.ops.aten.linear.default", as the tables name operators.
inline llvm::StringRef shortTarget(llvm::StringRef target) {
  target.consume_front("torch.ops.");
  return target;
}

/// The row of an operator on real numbers, or null.
const OpRow *findOp(llvm::StringRef target);
/// The row of an operator that reads or gives complex numbers, or null.
const OpRow *findComplexOp(llvm::StringRef target);
/// Why an operator without a row is refused.
llvm::StringRef whyRefused(llvm::StringRef target);
/// All rows, by the operators' names.
std::vector<const OpRow *> allOps();
llvm::ArrayRef<RefusedOp> refusedOps();
/// All rows of one source file.
llvm::ArrayRef<OpRow> activationOps();
llvm::ArrayRef<OpRow> arithmeticOps();
llvm::ArrayRef<OpRow> arrangeOps();
llvm::ArrayRef<OpRow> complexFunctionOps();
llvm::ArrayRef<OpRow> complexOps();
llvm::ArrayRef<OpRow> complexProductOps();
llvm::ArrayRef<OpRow> convolutionOps();
llvm::ArrayRef<OpRow> countOps();
llvm::ArrayRef<OpRow> diagonalOps();
llvm::ArrayRef<OpRow> distanceOps();
llvm::ArrayRef<OpRow> dropoutOps();
llvm::ArrayRef<OpRow> elementwiseOps();
llvm::ArrayRef<OpRow> fourierOps();
llvm::ArrayRef<OpRow> functionOps();
llvm::ArrayRef<OpRow> imageOps();
llvm::ArrayRef<OpRow> indexOps();
llvm::ArrayRef<OpRow> joinOps();
llvm::ArrayRef<OpRow> leafOps();
llvm::ArrayRef<OpRow> lossOps();
llvm::ArrayRef<OpRow> memoryOps();
llvm::ArrayRef<OpRow> neuralOps();
llvm::ArrayRef<OpRow> orderOps();
llvm::ArrayRef<OpRow> padOps();
llvm::ArrayRef<OpRow> partOps();
llvm::ArrayRef<OpRow> placeOps();
llvm::ArrayRef<OpRow> poolOps();
llvm::ArrayRef<OpRow> productOps();
llvm::ArrayRef<OpRow> quantizeOps();
llvm::ArrayRef<OpRow> randomOps();
llvm::ArrayRef<OpRow> recurrentOps();
llvm::ArrayRef<OpRow> reduceOps();
llvm::ArrayRef<OpRow> resizeOps();
llvm::ArrayRef<OpRow> scatterOps();
llvm::ArrayRef<OpRow> shapeOps();
llvm::ArrayRef<OpRow> solveOps();
llvm::ArrayRef<OpRow> spectrumOps();

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_OPTABLE_H
