//===- Passes.td - passes of the precision phase ------------------------------===//

#ifndef TESSERA_PASSES_PRECISION
#define TESSERA_PASSES_PRECISION

include "mlir/Pass/PassBase.td"

def CastPrecision : Pass<"cast-precision", "::mlir::func::FuncOp"> {
  let summary = "Compute in bf16 from f32 master parameters";
  let description = [{
    Parameters, gradients and optimizer state stay f32. Each f32 unit is converted to bf16 once, before its first use, and
    the model reads the converted unit; a strategy that gathers units gathers the narrow value (`annotate-sharding`).

    What is bf16 afterwards is what libraries read and write, and what is kept: operands and results of `dot_general`,
    `attention` and `attention_grad`, operands and results of `layer_norm` and `softmax`, the logits of `cross_entropy`,
    and every elementwise result that one of these, a concatenation or (for a value of the forward pass) the backward pass
    reads. What lies between is f32: elementwise ops widen their operands, so that constants are exact and a chain of ops
    is rounded once, where its result is stored. Products accumulate in f32.

    What stays f32: reductions, norms' statistics, log-sum-exps, losses and what is computed elementwise from targets,
    the gradients of parameters (products write them in f32), clipping and the optimizer; what depends on no parameter
    and no input; results of the function. A remark says for which convolutions and products this holds and why. Values of
    other element types are not touched.

    A parameter with `train.compute_type = f32` is not converted. Products with `compute_type = f32` (those that read it, and
    those of its gradient) and norms that it scales read f32: their results go on in f32 until they meet data elementwise or
    are read in bf16; the gradient that they send back is rounded where other data would be.

    Precondition: `flatten-parameters` has made units. Runs before sharding is decided.
    Postcondition: arguments and results of the function have the types they had.

    ```mlir
    func.func @step(%u: tensor<32xf32> {train.role = "param", …}, %x: tensor<2x4xf32> {train.role = "input", …}, …)
      %w = train.reshape %u : (tensor<32xf32>) -> tensor<4x8xf32>
      %0 = train.dot_general %x, %w … : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
      %1 = train.tanh %0 : tensor<2x8xf32>
    // becomes
      %c = train.convert %u : (tensor<32xf32>) -> tensor<32xbf16>
      %w = train.reshape %c : (tensor<32xbf16>) -> tensor<4x8xbf16>
      %n = train.convert %x : (tensor<2x4xf32>) -> tensor<2x4xbf16>
      %0 = train.dot_general %n, %w … : (tensor<2x4xbf16>, tensor<4x8xbf16>) -> tensor<2x8xbf16>
      %2 = train.convert %0 : (tensor<2x8xbf16>) -> tensor<2x8xf32>
      %1 = train.tanh %2 : tensor<2x8xf32>
    ```
  }];
  let statistics = [
    Statistic<"numUnits", "units", "Units that are converted">,
    Statistic<"numProducts", "products", "Products and attentions in bf16">,
    Statistic<"numRounded", "rounded", "Elementwise results that are rounded">,
  ];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def KeepCopies : Pass<"keep-copies", "::mlir::func::FuncOp"> {
  let summary = "Keep bf16 copies of parameters from step to step";
  let description = [{
    Each f32 parameter (also a frozen one) that is converted to bf16 gets an argument of the role `"derived"` with the
    converted value, `<parameter>.bf16`, which takes the place of all such conversions, also of those of the parameter in
    another shape. Where the parameter has a next value, this is converted, too, and is the next value of the copy: fusion
    makes it part of the update. The host makes copies from the parameters before the first step.

    Parts of a frozen parameter that are converted alone stay conversions, and so do parameters without a name (a remark says so).

    Precondition: `cast-precision`, and `localize`: under a strategy that gathers, a copy is of this rank's part.
    Postcondition: the step converts no named f32 parameter to bf16 as a whole but to give a copy its next value.

    ```mlir
    func.func @step(%u: tensor<32xf32> {train.role = "param", train.name = "u"}, …)
      %c = train.convert %u : (tensor<32xf32>) -> tensor<32xbf16>
      …
      %new:3 = train.adamw_update %u, …
      return %new#0 …
    // becomes
    func.func @step(%u: tensor<32xf32> {train.role = "param", train.name = "u"}, …,
                    %c: tensor<32xbf16> {train.role = "derived", train.name = "u.bf16", train.of = "u"})
      …
      %new:3 = train.adamw_update %u, …
      %next = train.convert %new#0 : (tensor<32xf32>) -> tensor<32xbf16>
      return %new#0 …, %next
    ```
  }];
  let statistics = [Statistic<"numCopies", "copies", "Copies that are kept">];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

#endif // TESSERA_PASSES_PRECISION
