//===- TrainOps.td - all ops of the train dialect -------------------------===//

#ifndef TESSERA_TRAIN_OPS
#define TESSERA_TRAIN_OPS

include "compiler/dialect/train/TrainOpsElementwise.td"
include "compiler/dialect/train/TrainOpsShape.td"
include "compiler/dialect/train/TrainOpsCompute.td"
include "compiler/dialect/train/TrainOpsState.td"

#endif // TESSERA_TRAIN_OPS
