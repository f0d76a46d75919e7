//===- ShardingRule.td - ops that say how they may be sharded -------------===//

#ifndef TESSERA_INTERFACES_SHARDING_RULE
#define TESSERA_INTERFACES_SHARDING_RULE

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::tessera";
  let description = [{
    An op that declares its dimensions as einsum factors. Propagation, resharding and localisation know ops through this
    interface only. Rules are attached as external models (passes/shard/rules).
  }];
  let methods = [
    InterfaceMethod<"Returns the factors of the op's operand and result dimensions; see ShardingRule.h.",
      "::tessera::ShardingRule", "getShardingRule", (ins)>,
    InterfaceMethod<[{
        Builds the op on local shapes: `operands` are the local operands and `resultTypes` the local result types.
        `context` gives the global index of the first local element along a dimension where an op needs it (iota, random
        numbers, optimizer segments). Returns one value per result. The default clones the op with new result types.
      }],
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildLocal",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands, "::mlir::TypeRange":$resultTypes,
           "::tessera::LocalizeContext &":$context),
      [{}], [{ return ::tessera::cloneWithLocalTypes($_op.getOperation(), builder, operands, resultTypes); }]>,
  ];
}

#endif // TESSERA_INTERFACES_SHARDING_RULE
