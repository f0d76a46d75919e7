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
    is rounded once, where its result is stored. Products accumulate in f32. A finite number that bf16 would round to an
    infinity, and what follows from it or from inputs by moving, choosing, adding and scaling elements, is held at bf16's
    largest number where it is rounded.

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

def ChooseFp8 : Pass<"choose-fp8", "::mlir::ModuleOp"> {
  let summary = "Say which products are computed in 8-bit floats";
  let description = [{
    A product of a parameter and an activation gets `scaling`, the recipe and what its operands are, and its parameter the
    compute type f8E4M3FN; `differentiate` gives the products of its gradients their own. Left in bf16, each with a
    remark, are:

    - products of no parameter or of two, with a batch, without elements, or in another type than f32; attentions;
      convolutions;
    - what `--keep-f32` names or is made of what it names, what `filter` does not, and the blocks of `keepBf16`;
    - a head, from which nothing but the loss and outputs follows, and a router, which goes into a softmax or chooses;
    - inputs or outputs that the recipe's multiple does not divide, of a rank's part where model axes split the weight;
    - layers that would not be faster (`select`);
    - parameters with other readers, such as an embedding that is also the head.

    What a product is for follows from the graph, never from a name. If nothing is left, the error lists all products.
    The module attribute `train.products` says of each what it and the products of its gradients are computed in, and why.

    Precondition: the loss is there, `differentiate` has not run. Postcondition: a parameter with the compute type
    f8E4M3FN is read by products with `scaling` alone.

    ```mlir
    %y = train.dot_general %x, %w {lhs_contract = array<i64: 1>, …}
    ```
    becomes
    ```mlir
    %y = train.dot_general %x, %w {lhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>, …}
    ```
  }];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"rowwise\"", "tensorwise, rowwise, rowwise_hp, block128 or mxfp8">,
    Option<"filter", "filter", "::tessera::OptionText", "", "Regular expression of parameters; empty: all">,
    Option<"keepBf16", "keep-bf16", "::tessera::OptionText", "",
           "first:<n>,last:<n>: so many blocks of the model, from its beginning and its end, stay in bf16">,
    Option<"select", "select", "std::string", "\"all\"",
           "all; rules: without the small layers that the recipe's authors leave out; auto: those that `target` is faster with">,
    Option<"target", "target", "std::string", "\"cpu-host\"", "Name or file of the target of `auto`">,
    Option<"parts", "parts", "int64_t", "1", "Ranks times micro-batches that tokens are split over, for `auto`">,
  ];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def CastFp8 : Pass<"cast-fp8", "::mlir::func::FuncOp"> {
  let summary = "Turn products with a scaling into products of 8-bit floats";
  let description = [{
    Each operand becomes a matrix of tokens, inputs or outputs, and is quantised as the recipe's table says: the largest
    absolute value of what shares a scale, the scale (`quantize_scale`), the values (`quantize`) and the inverse of the
    scale. Activations and gradients are quantised from their bf16 values, weights from the f32 ones. What the
    recipe leaves in bf16 is so, and loses its `scaling`.

    Where a scale is shared by all tokens, it is by those of the micro-batch over all ranks: their maximum is one of
    partial maxima once tokens are split. With `groups` it is by those of as many equal groups of samples, so that ranks
    need not ask each other. Where some tokens share a scale and others do not, tokens are in the order of samples,
    whatever the order of dimensions: which one counts samples follows from the batch (`train.dims`). A remark says which
    weights are not quantised in their unit, and why.

    Precondition: `cast-precision`. Postcondition: no product has a `scaling`. Tokens of which a rank would have a
    part of a block are an error, which names the products. Products without elements are bf16.

    ```mlir
    %y = train.dot_general %x, %w {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>,
        scaling = #train.scaling<rowwise, activation, weight>, …} : (tensor<64x32xbf16>, tensor<16x32xf32>) -> tensor<64x16xbf16>
    ```
    becomes
    ```mlir
    %0 = train.convert %x : (tensor<64x32xbf16>) -> tensor<64x32xf32>
    %1 = train.abs %0 : tensor<64x32xf32>
    %2 = train.reduce max, %1 {dimensions = array<i64: 1>} : (tensor<64x32xf32>) -> tensor<64xf32>
    %3 = train.reshape %2 : (tensor<64xf32>) -> tensor<64x1xf32>
    %sx = train.quantize_scale down, %3 {format = f8E4M3FN} : tensor<64x1xf32>
    %qx = train.quantize %x, %sx : (tensor<64x32xbf16>, tensor<64x1xf32>) -> tensor<64x32xf8E4M3FN>
    %ix = train.div %one, %sx : tensor<64x1xf32>
    …
    %y = train.scaled_dot %qx, %qw scaled %ix, %iw {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two} : …
    ```
  }];
  let options = [
    Option<"groups", "groups", "int64_t", "1", "Equal groups of samples whose tokens have scales of their own, at least 1">,
    Option<"nonfinite", "nonfinite", "std::string", "\"propagate\"",
           "propagate: a NaN or an infinity makes all that shares its scale NaN or 0; scale1: the scale is then 1">,
  ];
  let statistics = [Statistic<"numScaled", "scaled", "Products of 8-bit floats">];
  let dependentDialects = ["::tessera::train::TrainDialect", "::tessera::dist::DistDialect"];
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
