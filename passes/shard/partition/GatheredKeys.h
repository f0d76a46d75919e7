//===- GatheredKeys.h - attention of some gathered heads at a time -*- C++ -*-===//
//
// The partition of an attention, or its gradient, that says by dist::KeyGather how its keys are gathered.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_PARTITION_GATHEREDKEYS_H
#define TESSERA_PASSES_SHARD_PARTITION_GATHEREDKEYS_H

#include "compiler/dialect/dist/KeyGather.h"
#include "compiler/dialect/train/Train.h"
#include "compiler/interfaces/Partition.h"

namespace tessera::shard {

/// Why the keys of `op` cannot be gathered for some heads at a time; empty if they can.
std::string gatherRefusal(mlir::Operation *op);

/// For PartitionOpInterface, of an op that has the attributes.
std::vector<PartitionChoice> gatherChoices(mlir::Operation *op);
llvm::SmallVector<PartitionCollective> gatherCollectives(mlir::Operation *op, llvm::ArrayRef<dist::Layout> operands,
                                                         dist::MeshAttr mesh);
/// Each block of heads is gathered before the one in front of it is computed. A remark where one key head alone takes
/// more than it may.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildGathered(mlir::Operation *op, mlir::OpBuilder &builder,
                                                              mlir::ValueRange operands, mlir::TypeRange types,
                                                              PartitionContext &context);

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_PARTITION_GATHEREDKEYS_H
