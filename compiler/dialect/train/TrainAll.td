//===- TrainAll.td - everything of the train dialect, for definitions -----===//

include "compiler/dialect/train/TrainDims.td"
include "compiler/dialect/train/TrainOps.td"
include "compiler/dialect/train/TrainProducts.td"
include "compiler/dialect/train/TrainSegments.td"
