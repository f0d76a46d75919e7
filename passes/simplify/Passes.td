//===- Passes.td - passes of the simplify phase ------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY
#define TESSERA_PASSES_SIMPLIFY

include "mlir/Pass/PassBase.td"

def AnnotateIndexBounds : Pass<"annotate-index-bounds", "func::FuncOp"> {
  let summary = "Record which values a batch argument may hold when it is used as an index";
  let description = [{
    Data is checked when it is loaded, so that kernels need not. An `input` or `target` argument whose elements index rows of
    a table (`gather_rows`) or classes (`cross_entropy`), directly or through ops that only move elements, gets
    `train.index_bound`: values are at least 0 and below it. A target of a loss with an ignored class gets
    `train.ignore_index` too, the one value that is allowed besides. Every use counts: the bound is the smallest, and what a loss
    ignores is not allowed where a table is read with the same elements. Uses of a slice of the argument bind that part of each
    sample only, by `train.index_parts` (the next token is the target of a token; columns have tables of their own); behind a
    reshape or transposition a slice counts as the whole that it is of.

    Indices that are computed from data (positions counted from a padding mask, say) cannot be checked when they are loaded.
    If their range is not known to lie inside the table, they are clamped to it: no kernel reads or writes beyond a table. With
    `check=error` the step also gets a result of role `index_check`, for each sample an index that lies outside if there is one;
    the runtime reads it with the loss and fails if it does. With `check=clamp` there is a remark, and the nearest index inside
    is what counts.

    Precondition: the loss is there (add-loss). Postcondition: every index is below its bound, by this attribute for arguments,
    by its range or a clamp for others.

    ```mlir
    // before
    func.func @step(%ids: tensor<2x8xi32> {train.role = "input", train.name = "ids"}, …)
    // after, if %ids index a table of 50 rows
    func.func @step(%ids: tensor<2x8xi32> {train.role = "input", train.name = "ids", train.index_bound = 50 : i64}, …)
    ```
  }];
  let options = [Option<"check", "check", "std::string", "\"error\"",
                        "What an index outside of its table is that was computed from data: error or clamp">];
}

def AddAdapters : Pass<"add-adapters", "ModuleOp"> {
  let summary = "Train low-rank adapters beside frozen matrices (LoRA)";
  let description = [{
    Hu et al., 2021: a matrix W that multiplies activations counts as `W + (alpha / rank) B A`, where A is [rank, inputs] and B
    [outputs, rank]; only A and B are trained. A product `y = x Wᵀ` becomes `y + (alpha / rank) (x Aᵀ) Bᵀ`, in this order, as in
    Hugging Face's PEFT. A begins uniform in ±1/sqrt(inputs) (Kaiming's bound with a = sqrt(5)), B with zeros, so that the model
    begins as it was. Which dimension of W is its input is read from the product: `Linear` and `Conv1D` both work. Beside weights of 16 bits A
    and B are f32, and the sum is rounded once.

    Matrices that `targets` matches get adapters; parameters that `train` matches are trained themselves; all others become
    frozen, vectors that `targets` matches too: a module's name is that of its bias as well. A match of more than two
    dimensions, or that something other than a product reads (an embedding that is tied to the head), is an error, and so is
    a pattern that matches no matrix.

    Precondition: the forward function `@step`, not differentiated; parameters have initialisers. Postcondition: the module lists the
    adapters as `train.adapters`; everything else is as if the model had come with them.

    ```mlir
    // before
    func.func @step(%w: tensor<8x4xf32> {train.role = "param", train.name = "fc.weight"}, %x: tensor<2x4xf32> …)
      %y = train.dot_general %x, %w {lhs_contract = [1], rhs_contract = [1], …}
    // after, with rank=2 alpha=4 targets=fc
    func.func @step(%w: tensor<8x4xf32> {train.role = "frozen", …}, %x: tensor<2x4xf32> …,
                    %a: tensor<2x4xf32> {train.role = "param", train.name = "fc.lora_A.weight", train.init = "uniform:-0.5:0.5"},
                    %b: tensor<8x2xf32> {train.role = "param", train.name = "fc.lora_B.weight", train.init = "zeros"})
      %y = train.dot_general %x, %w …
      %low = train.dot_general %x, %a {lhs_contract = [1], rhs_contract = [1], …}
      %part = train.dot_general %low, %b {lhs_contract = [1], rhs_contract = [1], …}
      %scaled = train.mul %part, %two
      %sum = train.add %y, %scaled
    ```
  }];
  let options = [
    Option<"rank", "rank", "int64_t", "8", "Rank of the adapters, at least 1">,
    Option<"alpha", "alpha", "::tessera::OptionNumber", "8.0", "The product of an adapter counts alpha / rank times">,
    Option<"targets", "targets", "::tessera::OptionText", "", "Regular expression of the parameters that get adapters">,
    Option<"train", "train", "::tessera::OptionText", "", "Regular expression of parameters that are trained themselves; empty: none">,
  ];
}

def PlaceParameters : Pass<"place-parameters", "func::FuncOp"> {
  let summary = "Say which parameters the model axes of the mesh split, and along which dimension";
  let description = [{
    Weight-stationary model parallelism (Shoeybi et al., 2019, Megatron-LM: of two products in a row, the outputs of the first
    and the inputs of the second): each rank along the model axes holds one part of a placed parameter, of its gradient and of
    its optimizer states, and computes with that part. Placing is all that is to be said: `flatten-parameters` makes units of
    what is placed, and what has to be gathered or added up follows from the rules of the ops.

    Each rule is `<regex>=<dimension>`, on all model axes larger than 1 of the mesh, or
    `<regex>=<dimension>:<axis>[+<axis>…]`; of those that match a parameter's name the first one counts. A rule that never
    counts, a dimension that does not divide by the ranks along the axes, and a buffer of the model are errors.

    Precondition: arguments have `train.role` and `train.name`; where there are rules, the module attribute `dist.mesh` has
    a model axis larger than 1. Postcondition: parameters that rules match have `train.placement`.

    ```mlir
    // before
    func.func @step(%w: tensor<32x8xf32> {train.role = "param", train.name = "mlp.up.weight"}, …)
    // after, with rules=up=0 on #dist.mesh<tp = 2>
    func.func @step(%w: tensor<32x8xf32> {train.role = "param", train.name = "mlp.up.weight",
                                          train.placement = #train.placement<dim = 0, axes = ["tp"], parts = 2>}, …)
    ```
  }];
  let options = [
    ListOption<"rules", "rules", "::tessera::OptionText",
               "<regex>=<dimension>[:<axis>+…]; the first that matches a parameter counts">,
  ];
}

def SetComputeTypes : Pass<"set-compute-types", "func::FuncOp"> {
  let summary = "Say which parameters are computed in f32 where others are computed in bf16";
  let description = [{
    For what must not be rounded where the rest of the model is: a router, a head. Parameters of f32, trained, frozen or
    buffers, whose name matches `f32` get `train.compute_type`, and products that read them, or what follows from them
    alone (a transposed, scaled or masked weight, its norm or softmax), `compute_type`, which the products of their
    gradients inherit.
    `flatten-parameters` makes units of such parameters, which are gathered in f32, and `cast-precision` leaves what reads
    them in f32.

    Without `f32` nothing is done; that no parameter of f32 matches it is an error. Remarks say what matches and has
    another type, and where one meets other values in an op that `cast-precision` rounds: a concatenation, an update of a
    part, an attention, a norm of it whose scale does not match.

    Precondition: arguments have `train.role` and `train.name`; before `differentiate`. Postcondition: parameters that
    match, and products that read them, have their compute type.

    ```mlir
    // before
    func.func @step(%w: tensor<32x8xf32> {train.role = "param", train.name = "router.weight"}, …)
    // after, with f32=router
    func.func @step(%w: tensor<32x8xf32> {train.role = "param", train.name = "router.weight", train.compute_type = f32}, …)
      %0 = train.dot_general %x, %w {compute_type = f32, …}
    ```
  }];
  let options = [
    Option<"f32", "f32", "::tessera::OptionText", "", "Regular expression of parameters that are computed in f32">,
  ];
}

def AssignInitializers : Pass<"assign-initializers", "func::FuncOp"> {
  let summary = "Give every parameter an initialiser";
  let description = [{
    The artifact holds no weights. A parameter (role `param` or `frozen`) starts from its value in the model file or in a
    file that `tessera-run --weights` names. Where there is neither, or with `--weights fresh`, it starts from a rule: a
    distribution whose value at an element depends on the seed, the parameter's name and the element's index only. This
    pass writes the rule as `train.init` on the argument.

    Precondition: arguments have `train.role` and `train.name`. Postcondition: every parameter has `train.init`, one of
    `zeros`, `constant:<a>`, `normal:<deviation>`, `uniform:<a>:<b>`, or `given`: a file must bring the value. A rule
    that an option names has `asked:` before it and counts more than the value in the model file.

    Without a rule of an option, what is `given` stays so and numbers (rank 0) are; biases are 0, other vectors named
    weight, scale or gamma are 1, convolution filters are uniform in ±1/sqrt(fan-in), all else is normal with deviation
    0.02.

    ```mlir
    // before
    %w: tensor<64x64xf32> {train.role = "param", train.name = "h.0.fc.weight"}
    // after
    %w: tensor<64x64xf32> {train.role = "param", train.name = "h.0.fc.weight", train.init = "normal:0.02"}
    ```
  }];
  let options = [ListOption<"rules", "rules", "::tessera::OptionText",
                            "<regex>=<initialiser>, in order; the first match wins">];
}

def RecognizeFunctions : Pass<"recognize-functions", "func::FuncOp"> {
  let summary = "Turn forms that cancel or overflow into sigmoid, softplus, expm1 and log1p";
  let description = [{
    `1 - sigmoid(x)` has no correct digit where the sigmoid is nearly 1, and its logarithm is infinite; both exporters
    write `BCEWithLogits` or `logsigmoid` so. The same functions as one op are exact to rounding for every x, and so are
    their gradients.

    | form | becomes |
    |---|---|
    | `1 - sigmoid(x)`, `1 + -sigmoid(x)` | `sigmoid(-x)` |
    | `1 / (1 + exp(x))` | `sigmoid(-x)` |
    | `log(sigmoid(x))` | `-softplus(-x)` |
    | `log(1 + exp(x))` | `softplus(x)` |
    | `log(exp(x) + exp(y))` | `max(x, y) + softplus(-abs(x - y))` |
    | `log(1 + x)`, `log(1 - x)` | `log1p(x)`, `log1p(-x)` |
    | `exp(x) - 1`, `1 - exp(x)` | `expm1(x)`, `-expm1(x)` |

    and what follows from these, such as `log(1 - sigmoid(x))`, which is `-softplus(x)`.

    Precondition: broadcasts are explicit. Postcondition: none of the forms is left; what they were made of may be unused.

    ```mlir
    // before: %s = sigmoid %x; %l = log %s
    // after
    %n = train.neg %x : tensor<4x8xf32>
    %p = train.softplus %n : tensor<4x8xf32>
    %l = train.neg %p : tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["train::TrainDialect"];
}

def RecognizeGelu : Pass<"recognize-gelu", "func::FuncOp"> {
  let summary = "Turn written-out GELU into train.gelu";
  let description = [{
    Recognised is `0.5 x (1 + f)`, where `f` is `erf(x / sqrt(2))` (form `exact`) or `tanh(sqrt(2/pi) (x + 0.044715 x^3))`
    (form `tanh`), as polynomials: in any order of sums and products and however the constants are split. The two forms
    differ by up to 5e-4 and are told apart to 1e-6.

    What is computed in another way (by `exp` or `sigmoid`, say) is evaluated at 193 points in [-6, 6]. If it agrees with
    one of the forms to 2e-6 it is taken for it, with a remark; `by-values=false` leaves it as it is. Only smooth ops are
    followed, so that two functions that agree on a dense grid are one.

    Precondition: broadcasts are explicit. Postcondition: what the recognised GELU was made of may be unused. Types narrower
    than f32 are left alone: their constants are those of another function.

    ```mlir
    // before
    %s = train.mul %x, %root_half : tensor<4x8xf32>
    %e = train.erf %s : tensor<4x8xf32>
    %f = train.add %e, %one : tensor<4x8xf32>
    %h = train.mul %x, %half : tensor<4x8xf32>
    %y = train.mul %h, %f : tensor<4x8xf32>
    // after
    %y = train.gelu exact, %x : tensor<4x8xf32>
    ```
  }];
  let options = [Option<"byValues", "by-values", "bool", "true",
                        "Whether GELU in no known form is recognised by its values">];
  let dependentDialects = ["train::TrainDialect"];
}

def RecognizeNorm : Pass<"recognize-norm", "func::FuncOp"> {
  let summary = "Turn written-out layer and RMS normalisations into train.layer_norm";
  let description = [{
    Models that write a normalisation as means, squares and square roots get one op, which has a kernel of its own in
    forward and backward and keeps two numbers per row instead of the normalised tensor.

    Recognised over the last dimension, with any form of the mean (sum times 1/n, sum divided by n), of the square and of
    the inverse square root: `(x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps)` as mode `layer` and
    `x / sqrt(mean(x^2) + eps)` as mode `rms`; a following product with a vector of the last dimension becomes the scale,
    and, in mode `layer`, a following sum the bias.

    Precondition: broadcasts are explicit. Postcondition: the written-out ops are unused. A normalisation whose parts match
    except for one is left alone with a remark that names the part.

    ```mlir
    // before: %y = mul %x, broadcast(rsqrt(mean(mul %x, %x) + eps)); %z = mul broadcast(%w), %y
    // after
    %z, %mean, %rstd = train.layer_norm rms, %x scale(%w) {epsilon = 1.0e-5} : …
    ```
  }];
  let dependentDialects = ["train::TrainDialect"];
}

def RecognizeSoftmax : Pass<"recognize-softmax", "func::FuncOp"> {
  let summary = "Turn written-out softmaxes into train.softmax";
  let description = [{
    `exp(x - max(x)) / sum(exp(x - max(x)))` along one dimension, with or without the maximum, becomes one op.

    Precondition: broadcasts are explicit. Postcondition: the written-out ops are unused.

    ```mlir
    // before: %e = exp(%x - broadcast(reduce max %x)); %p = div %e, broadcast(reduce sum %e)
    // after
    %p = train.softmax %x {dim = 1 : i64} : tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["train::TrainDialect"];
}

def RecognizeAttention : Pass<"recognize-attention", "func::FuncOp"> {
  let summary = "Turn masked softmax(QKᵀ)V into train.attention";
  let description = [{
    Attention as exporters write it becomes one op, whose kernels never store the matrix of probabilities and which
    sequence sharding can handle.

    Recognised: a scale on the scores, on the query, on the key, or by a factor on each of query and key; masks that are
    added or selected before the softmax. A mask that lets query i see keys up to i + Tk - Tq becomes the flag `causal`, one
    that hides nothing disappears, all others stay as the mask operand. Masks are known if they follow from constants and
    positions, of any size: their rows are computed as few constant or ascending pieces (`KnownRows`),
    not where a type that they pass through wraps or rounds them.
    A mask that compares ids of documents along queries and keys, alone or beside known ones, becomes the operands `keys`, where equal ids are known to lie
    side by side (`runsOf`): two numbers a query, from running maxima of the places at which documents begin. Of integers that are an input nothing is
    known: with `document-ids=contiguous` the argument gets `train.has_runs`, by which the runtime refuses a batch where equal ids are apart.
    Otherwise it stays a mask, and a remark says how to write it. Keys and values that are repeated for
    grouped-query attention (broadcast, then reshape) are used unrepeated. Batch dimensions are [B, H], or one, which
    becomes B with H = 1.

    Precondition: softmaxes are `train.softmax`. Postcondition: the written-out ops are unused. A product of a softmax with
    another tensor that is not converted gets a remark with the reason.

    ```mlir
    // before: %p = softmax(dot(%q, %k) * 0.125 + %causal); %y = dot(%p, %v)
    // after
    %y, %lse = train.attention %q, %k, %v {scale = 1.25e-1, causal} : …
    ```
  }];
  let options = [Option<"documentIds", "document-ids", "std::string", "\"contiguous\"",
                        "contiguous: equal ids of documents lie side by side in an input, which is checked in every batch; any">];
  let dependentDialects = ["train::TrainDialect"];
}

def ChunkHeads : Pass<"chunk-heads", "func::FuncOp"> {
  let summary = "Write attention out for some heads at a time";
  let description = [{
    Each attention of H query heads and G key heads becomes H / U of U query heads (UPipe, "untied Ulysses", arXiv 2602.21196), so that
    what is exchanged and computed for one chunk can lie where that of the chunk before lay. If U is a multiple of G, a chunk has
    U / G query heads of every key head, and all chunks read the same keys and values; else, if U is a multiple of H / G, all query
    heads of U / (H / G) key heads. What is computed for heads of this attention alone (rotary positions, norms of
    heads, biases, the product that projects) is computed for the chunk's heads, down to slices of weights, by the sharding rules
    of the ops; so differentiation and rematerialisation treat each chunk on its own. Results are concatenated in the order of all heads.

    Precondition: before differentiation and `join-products`, which would compute the projections as one. Postcondition: equal values
    but for rounding of gradients, whose sums over chunks are added up in another order. Refused: U heads that are neither. Not
    applied, with a remark, to what other ops read too, does not keep heads apart (a norm over all heads), or is scaled to 8 bits as
    a whole: it is computed for all heads, and sliced. A second run changes nothing.

    ```mlir
    // before: 4 query heads, 2 key heads
    %q = train.dot_general %x, %wq …   : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %y, %lse = train.attention (heads of %q), %k, %v …
    // after heads=2: the first and the second query head of each key head
    %w0 = train.slice (train.reshape %wq) [0:2, 0:1]
    %q0 = train.dot_general %x, %w0 …  : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
    %y0, %lse0 = train.attention (heads of %q0), %k, %v …
    …
    %y = train.concat %y0, %y1 {dim = 2}
    ```
  }];
  let options = [Option<"heads", "heads", "int64_t", "0", "Query heads of a chunk, U; 0: all, nothing is changed">];
  let dependentDialects = ["train::TrainDialect"];
}

def JoinProducts : Pass<"join-products", "func::FuncOp"> {
  let summary = "Multiply a value by several weights at once";
  let description = [{
    Products of one value by weights of the same block (query, key and value; gate and up) become one product by the concatenation of
    the weights along their rows, and slices of its columns; so do the biases that are added to them, if each has one. Then
    `flatten-parameters` lays these parameters side by side, so that the concatenation is a part of the unit and costs nothing, and
    differentiation gives one product for the weights' gradients and one for the value's.

    Precondition: before differentiation; parameters are arguments of role `param`. Postcondition: equal values but for rounding.
    Not applied, with a remark, to weights of `[in, out]` (their columns do not lie one behind the other), and to weights with other
    readers; nor, without one, to weights of other blocks, element types, or of which only one decays.

    ```mlir
    // before
    %q = train.dot_general %x, %wq …   : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %k = train.dot_general %x, %wk …   : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
    // after
    %w = train.concat %wq, %wk {dim = 0}
    %qk = train.dot_general %x, %w …   : (tensor<8x16xf32>, tensor<20x16xf32>) -> tensor<8x20xf32>
    %q = train.slice %qk [0:16]
    %k = train.slice %qk [16:20]
    ```
  }];
  let options = [Option<"noDecay", "no-decay", "::tessera::OptionText", "\"\"",
                        "Regular expression of parameters without weight decay, as of flatten-parameters">];
  let dependentDialects = ["train::TrainDialect"];
}

def JoinHeads : Pass<"join-heads", "func::FuncOp"> {
  let summary = "Do once what is done alike to queries and keys";
  let description = [{
    Where the queries and keys of an attention are the same function of two neighbouring slices of one value (rotary positions, of the
    product that `join-products` made), the function is applied to the slices as one, and the attention reads the heads of its result.
    It is one kernel then instead of two, and one backwards.

    Precondition: `join-products`. Postcondition: the same values. Not applied to values with other readers, where something
    differs (a norm of queries and keys with weights of their own), or where nothing is computed.

    ```mlir
    // before
    %q = mul (slice %x [0:32]), (broadcast %cos)
    %k = mul (slice %x [32:40]), (broadcast %cos)
    %y, %lse = train.attention %q, %k, %v …
    // after
    %qk = mul (slice %x [0:40]), (broadcast %cos)
    %y, %lse = train.attention (slice %qk [0:32]), (slice %qk [32:40]), %v …
    ```
  }];
  let dependentDialects = ["train::TrainDialect"];
}

def VerifyPhases : Pass<"verify-phases", "func::FuncOp"> {
  let summary = "Verify that what is marked as backward is of the backward pass";
  let description = [{
    Which phase an op belongs to follows from what results need (`PhaseAnalysis`): forward is what the loss, outputs and
    checks of indices need; backward is what else gradients need; the rest is the update. The mark `train.backward` keeps
    what the backward pass repeats apart from what the forward pass has, and must agree: an op that the forward pass needs
    has none. A constant may: folding shares constants between the phases.

    Precondition: none; a function without a loss has no forward pass. Postcondition: the same IR.

    Refused:

    ```mlir
    func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}) {
      %loss = train.reduce sum, %w {dimensions = array<i64: 0>, train.backward} : (tensor<4xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    ```
  }];
}

#endif // TESSERA_PASSES_SIMPLIFY
