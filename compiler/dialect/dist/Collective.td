//===- Collective.td - what all collectives and their starts answer -------===//

#ifndef TESSERA_DIST_COLLECTIVE
#define TESSERA_DIST_COLLECTIVE

include "mlir/IR/OpBase.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::tessera::dist";
  let description = [{
    A collective, or the start of one. Passes ask it for its kind and switch on that; they know no collective by name.
    What begins and ends a collective in two ops is made by `buildStart` and `buildDone` (Collective.h).
  }];
  let methods = [
    InterfaceMethod<"Which collective it is, or starts.", "::tessera::dist::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"This rank's operand.", "::mlir::TypedValue<::mlir::RankedTensorType>", "getOperand">,
    InterfaceMethod<"The names of the mesh axes whose ranks form a group.", "::mlir::ArrayAttr", "getAxes">,
    InterfaceMethod<"What the value is moved for; null if it is not known.", "::tessera::dist::OriginAttr",
      "getOriginAttr">,
    InterfaceMethod<[{
        The dimensions that it works along: of all_gather and reduce_scatter one, of all_to_all the one that is split and
        the one that is joined, of the others none.
      }], "::llvm::SmallVector<int64_t, 2>", "getDims">,
    InterfaceMethod<"What a reduction makes of the values of its group; sum of the others.",
      "::tessera::dist::ReductionKind", "getReduction">,
    InterfaceMethod<"How many members further on a permute sends; 0 of the others.", "int64_t", "getShift">,
  ];
  let extraClassDeclaration = [{
    /// It returns a future, which a `done` waits for.
    bool isStart();
    /// The type of what the rank gets, from a start as well.
    ::mlir::RankedTensorType getResultTensorType();
    /// Bytes of the whole tensor: of what the rank gets for all_gather, of its operand otherwise.
    int64_t getWholeBytes();
    /// The origin in words, or the op's name where it has none.
    std::string getText();
  }];
}

#endif // TESSERA_DIST_COLLECTIVE
