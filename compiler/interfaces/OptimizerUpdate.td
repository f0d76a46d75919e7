//===- OptimizerUpdate.td - one step of an optimizer on a flat unit -------===//

#ifndef TESSERA_INTERFACES_OPTIMIZERUPDATE
#define TESSERA_INTERFACES_OPTIMIZERUPDATE

include "mlir/IR/OpBase.td"

def OptimizerUpdateOpInterface : OpInterface<"OptimizerUpdateOpInterface"> {
  let cppNamespace = "::tessera::train";
  let description = [{
    The update of a flat unit by its gradient. All that passes, the interpreter and the artifact ask of an optimizer they
    ask here, so that they know none by name. The results are the new parameter and then the new states, in their order.

    Before an optimizer's own formula every update does the same: `g = grad * grad_scale` where a scale is given, then each
    element of `g` is brought into `[-clip_value, clip_value]` where that is given (what is no number stays so), and
    `weight_decay` is 0 where the global index, `i + offset`, is not below `decay_elements`. Where `apply` is given and
    false the results are the operands, bit for bit.
  }];
  let methods = [
    InterfaceMethod<"The parameter, a vector.", "::mlir::Value", "getParam", (ins), [{ return $_op.getParam(); }]>,
    InterfaceMethod<"Its gradient, neither scaled nor clipped, of the parameter's shape.",
      "::mlir::Value", "getGrad", (ins), [{ return $_op.getGrad(); }]>,
    InterfaceMethod<"The number that multiplies the gradient; null: 1.",
      "::mlir::Value", "getGradScale", (ins), [{ return $_op.getGradScale(); }]>,
    InterfaceMethod<"The global index of the first element; null: 0.",
      "::mlir::Value", "getOffset", (ins), [{ return $_op.getOffset(); }]>,
    InterfaceMethod<"Whether anything changes (i1); null: it does.",
      "::mlir::Value", "getApply", (ins), [{ return $_op.getApply(); }]>,
    InterfaceMethod<"Where `offset` is.", "::mlir::MutableOperandRange", "getOffsetMutable", (ins),
      [{ return $_op.getOffsetMutable(); }]>,
    InterfaceMethod<"Where `apply` is.", "::mlir::MutableOperandRange", "getApplyMutable", (ins),
      [{ return $_op.getApplyMutable(); }]>,
    InterfaceMethod<"What an element's weight decay is, where it has one.", "double", "getDecay", (ins),
      [{ return $_op.getWeightDecay().convertToDouble(); }]>,
    InterfaceMethod<"How many of the whole unit's first elements take weight decay.", "int64_t", "getDecayElements", (ins),
      [{ return static_cast<int64_t>($_op.getDecayElements()); }]>,
    InterfaceMethod<"The largest absolute value of a gradient; none: any.", "::std::optional<double>", "getClip", (ins),
      [{ return $_op.getClipValue() ? ::std::optional<double>($_op.getClipValue()->convertToDouble()) : ::std::nullopt; }]>,
    InterfaceMethod<"The states as they are before, in the order of the results behind the first.",
      "::llvm::SmallVector<::mlir::Value>", "getStates">,
    InterfaceMethod<"The scalars that the host computes each step, in the order of the optimizer's row; `lr` comes first.",
      "::llvm::SmallVector<::mlir::Value>", "getHyper">,
    InterfaceMethod<"How narrow states are rounded at random; none: to nearest.", "::std::optional<::tessera::train::StateRounding>",
      "getRounding", (ins), [{}], [{ return ::std::nullopt; }]>,
    InterfaceMethod<[{
        The reference: one element's update in f64, by the formula of the op's description. Returns the new parameter and
        replaces `element.states` by the new ones.
      }], "double", "updateElement", (ins "::tessera::train::UpdateElement":$element)>,
    InterfaceMethod<[{
        Builds the update of elementwise ops at `build`'s insertion point and returns the op's results.
      }], "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::tessera::train::UpdateBuilder &":$build)>,
  ];
}

#endif // TESSERA_INTERFACES_OPTIMIZERUPDATE
