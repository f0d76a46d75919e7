//===- TrainVerify.cpp - verifiers of the train dialect -------------------===//

#include "compiler/dialect/train/Train.h"

using namespace mlir;
using namespace tessera::train;

LogicalResult IotaOp::verify() { return success(); }
LogicalResult RngUniformOp::verify() { return success(); }
LogicalResult ReshapeOp::verify() { return success(); }
LogicalResult TransposeOp::verify() { return success(); }
LogicalResult BroadcastOp::verify() { return success(); }
LogicalResult SliceOp::verify() { return success(); }
LogicalResult PadOp::verify() { return success(); }
LogicalResult ConcatOp::verify() { return success(); }
LogicalResult DynamicSliceOp::verify() { return success(); }
LogicalResult DynamicUpdateSliceOp::verify() { return success(); }
LogicalResult GatherRowsOp::verify() { return success(); }
LogicalResult ScatterAddRowsOp::verify() { return success(); }
LogicalResult ReduceOp::verify() { return success(); }
LogicalResult ArgmaxOp::verify() { return success(); }
LogicalResult DotGeneralOp::verify() { return success(); }
LogicalResult Conv2dOp::verify() { return success(); }
LogicalResult Conv2dInputGradOp::verify() { return success(); }
LogicalResult Conv2dFilterGradOp::verify() { return success(); }
LogicalResult SoftmaxOp::verify() { return success(); }
LogicalResult LayerNormOp::verify() { return success(); }
LogicalResult CrossEntropyOp::verify() { return success(); }
LogicalResult AttentionOp::verify() { return success(); }
LogicalResult AttentionGradOp::verify() { return success(); }
LogicalResult QuantizeOp::verify() { return success(); }
LogicalResult DequantizeOp::verify() { return success(); }
LogicalResult AccumulateOp::verify() { return success(); }
LogicalResult CheckpointOp::verify() { return success(); }
LogicalResult AdamwUpdateOp::verify() { return success(); }
LogicalResult SgdUpdateOp::verify() { return success(); }
