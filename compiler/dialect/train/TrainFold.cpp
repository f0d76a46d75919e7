//===- TrainFold.cpp - folders and canonicalisation of the train dialect --===//

#include "compiler/dialect/train/Train.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tessera::train;

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }
OpFoldResult ConvertOp::fold(FoldAdaptor) { return {}; }
OpFoldResult AddOp::fold(FoldAdaptor) { return {}; }
OpFoldResult SubOp::fold(FoldAdaptor) { return {}; }
OpFoldResult MulOp::fold(FoldAdaptor) { return {}; }
OpFoldResult DivOp::fold(FoldAdaptor) { return {}; }
OpFoldResult CompareOp::fold(FoldAdaptor) { return {}; }
OpFoldResult SelectOp::fold(FoldAdaptor) { return {}; }
OpFoldResult ReshapeOp::fold(FoldAdaptor) { return {}; }
OpFoldResult TransposeOp::fold(FoldAdaptor) { return {}; }
OpFoldResult BroadcastOp::fold(FoldAdaptor) { return {}; }
OpFoldResult SliceOp::fold(FoldAdaptor) { return {}; }
OpFoldResult ConcatOp::fold(FoldAdaptor) { return {}; }
OpFoldResult ReduceOp::fold(FoldAdaptor) { return {}; }
void AddOp::getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) {}
void PowOp::getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) {}
