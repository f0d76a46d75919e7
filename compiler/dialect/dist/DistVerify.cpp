//===- DistVerify.cpp - verifiers of the dist dialect ---------------------===//

#include "compiler/dialect/dist/Dist.h"

using namespace mlir;
using namespace tessera::dist;

LogicalResult ConstrainOp::verify() { return success(); }
LogicalResult ReshardOp::verify() { return success(); }
LogicalResult AllGatherOp::verify() { return success(); }
LogicalResult ReduceScatterOp::verify() { return success(); }
LogicalResult AllReduceOp::verify() { return success(); }
LogicalResult AllToAllOp::verify() { return success(); }
LogicalResult PermuteOp::verify() { return success(); }
LogicalResult AllGatherStartOp::verify() { return success(); }
LogicalResult ReduceScatterStartOp::verify() { return success(); }
LogicalResult AllReduceStartOp::verify() { return success(); }
LogicalResult AllToAllStartOp::verify() { return success(); }
LogicalResult PermuteStartOp::verify() { return success(); }
LogicalResult DoneOp::verify() { return success(); }
LogicalResult SliceLocalOp::verify() { return success(); }
