//===- Differentiable.td - ops that have a gradient rule ------------------===//

#ifndef TESSERA_INTERFACES_DIFFERENTIABLE
#define TESSERA_INTERFACES_DIFFERENTIABLE

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::tessera";
  let description = [{
    An op that knows how cotangents of its results become cotangents of its operands. Rules are attached as external
    models (passes/differentiate/vjp), so that a dialect does not depend on autodiff.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the vector-Jacobian product at the builder's insertion point.

        `cotangents` has one value per result, null where the cotangent is zero (not all are null). `needs` has one entry
        per operand. On success `grads` has one value per operand with the operand's type: null where `needs` is false or
        the gradient is zero. All new IR goes through `builder`. Failure means the op cannot be differentiated with
        respect to a needed operand; the rule has then emitted an error that says why.
      }],
      "::llvm::LogicalResult", "buildVJP",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents, "::llvm::ArrayRef<bool>":$needs,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$grads)>,
    InterfaceMethod<[{
        True if no gradient ever flows to this operand, whatever its type (indices, seeds, masks).
      }],
      "bool", "isNonDifferentiableOperand", (ins "unsigned":$index), [{}], [{ return false; }]>,
  ];
}

#endif // TESSERA_INTERFACES_DIFFERENTIABLE
