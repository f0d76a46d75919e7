//===- Partition.td - ops that ranks compute together ---------------------===//

#ifndef TESSERA_INTERFACES_PARTITION
#define TESSERA_INTERFACES_PARTITION

include "mlir/IR/OpBase.td"

def PartitionOpInterface : OpInterface<"PartitionOpInterface"> {
  let cppNamespace = "::tessera";
  let description = [{
    An op that can run on parts which its sharding rule alone would have to gather: the ranks of a group compute it
    together, by collectives of its own (a loss over split classes), or each does the part that is its own (rows of a
    split table). The op lists its choices; which one runs, or that none does, follows from the layouts of operands and
    results by what has to be sent (passes/shard/Candidates.h). Models are attached (passes/shard/partition).
  }];
  let methods = [
    InterfaceMethod<"Returns the ways to run the op, besides that of its sharding rule; see Partition.h.",
      "::std::vector<::tessera::PartitionChoice>", "getPartitionChoices", (ins)>,
    InterfaceMethod<[{
        Returns the collectives that choice `choice` runs inside of the op where its operands and results are laid out as
        given. What results still owe does not belong to them.
      }],
      "::llvm::SmallVector<::tessera::PartitionCollective>", "getPartitionCollectives",
      (ins "unsigned":$choice, "::llvm::ArrayRef<::tessera::dist::Layout>":$operands,
           "::llvm::ArrayRef<::tessera::dist::Layout>":$results, "::tessera::dist::MeshAttr":$mesh)>,
    InterfaceMethod<[{
        Builds the op by choice `choice` on local values: `operands` are the local operands and `resultTypes` the local
        result types. Returns one value per result, or failure after an error.
      }],
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildPartition",
      (ins "unsigned":$choice, "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "::mlir::TypeRange":$resultTypes, "::tessera::PartitionContext &":$context)>,
  ];
}

#endif // TESSERA_INTERFACES_PARTITION
