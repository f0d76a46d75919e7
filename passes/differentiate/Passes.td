//===- Passes.td - passes of the differentiate phase ----------------------===//

#ifndef TESSERA_PASSES_DIFFERENTIATE
#define TESSERA_PASSES_DIFFERENTIATE

include "mlir/Pass/PassBase.td"

def AddLoss : Pass<"add-loss", "::mlir::func::FuncOp"> {
  let summary = "Turn a model's outputs into one loss";
  let description = [{
    Makes a scalar loss the step function's result. The other outputs disappear, and with them what only they needed.

    - `cross-entropy`: the output `[batch…, classes]` holds logits; a `targets` argument `tensor<batch…xi32>` of role
      `"target"` holds class indices. The loss is the sum of the rows' cross-entropies divided by the number of targets
      that are not `ignore-index`, over the whole batch (`count_valid`).
    - `mse`: a `targets` argument has the output's type; the loss is the mean of the squared differences.
    - `output:<name>`: that output is the loss already.

    Each metric is one more result, of role `"evaluated"`, which `add-evaluation` takes: an output that is one number, or
    `accuracy`, the share of the targets that are not ignored whose class has the largest logit.

    `train.loss_of_batch` on the function says how the loss of a batch is made of the losses of its micro-batches: "sum" or
    "mean", or "terms" (see below), which is found by following the samples through the model. A loss that is an output may
    have terms of several kinds: what is added up over the batch (perhaps divided by a count of the whole batch) is a sum;
    a mean over the batch (a `reduce` with `train.mean`) and what does not depend on the batch are means. Where sums and means are added, the means
    are divided by the number of micro-batches, a `barrier` of 1 with `train.micro_batches` until `accumulate-gradients` puts
    the number there, so that everything is a sum. Without the attribute the loss cannot be split. Nor can `cross-entropy` and `mse` with
    `train.samples_meet`: samples may influence each other in front of them (a mean over the batch, attention over it, a
    sort).

    With `train.batch_groups` on the function all that follows from the size of the batch is marked: numbers are barriers
    (`train.of_batch`, `train.of_batch_number`) that stand for those of the whole batch, `train.grows` says which dimension
    of a reshape, slice or concatenation grows with it, `train.by_place` which constants have other values for other
    samples, and `train.follows_batch_size` which results are other ones for a batch of another size. Any other number is
    taken as it is, and consecutive samples may be kept together in groups, of which a micro-batch has this many.

    Precondition: results are outputs (`train.role = "output"`, `train.name`).
    Postcondition: one result of role `"loss"`, a floating-point scalar, and one for each metric.

    ```mlir
    func.func @step(…) -> (tensor<8x256x50257xf32> {train.role = "output", train.name = "logits"})
    // becomes
    func.func @step(…, %targets: tensor<8x256xi32> {train.role = "target", train.name = "targets"})
        -> (tensor<f32> {train.role = "loss"})
    ```
  }];
  let options = [
    Option<"kind", "kind", "::tessera::OptionText", "\"cross-entropy\"", "cross-entropy, mse or output:<name>">,
    Option<"of", "of", "::tessera::OptionText", "\"\"",
           "Name of the output that the loss is made of; default the only output, or the one called logits">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100", "Target value of rows that do not count (a class index)">,
    Option<"labelSmoothing", "label-smoothing", "::tessera::OptionNumber", "0.0",
           "Share of the target distribution that is spread evenly over all classes, in [0, 1]">,
    ListOption<"metrics", "metrics", "::tessera::OptionText",
               "What evaluation computes besides the loss: accuracy (of cross-entropy), or output:<name>">,
  ];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def FuseLoss : Pass<"fuse-loss", "::mlir::func::FuncOp"> {
  let summary = "Joins a cross-entropy with the product that computes its logits"
                " where the logits would be large";
  let description = [{
    A `cross_entropy` whose logits are a product of activations and a matrix, and that nothing else reads, becomes a
    `linear_cross_entropy`, of which `tile-loss` computes some rows at a time. Where rows were cut off the logits before the
    loss (a model that shifts its labels itself), all rows get a loss and the same rows are cut off the losses, so that logits need not be
    moved: a row whose loss nothing reads has no gradient.

    Not where the logits of one of `parts` equal parts of the rows take at most `bytes`, where they are computed in a type of their own
    (`compute_type`, 8 bits), or where the matrix is placed on model axes: a remark says why.

    Precondition: a loss (`add-loss`). Postcondition: none.

    ```mlir
    %y = train.dot_general %x, %w … : (tensor<8x4xf32>, tensor<10x4xf32>) -> tensor<8x10xf32>
    %loss, %lse = train.cross_entropy %y, %t : …
    ```
    becomes
    ```mlir
    %loss, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : …
    ```
  }];
  let options = [
    Option<"bytes", "bytes", "int64_t", "0", "Bytes of f32 logits that may be whole; -1: any">,
    Option<"parts", "parts", "int64_t", "1", "Ranks and micro-batches that share the rows">,
  ];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def JoinChunks : Pass<"join-chunks", "func::FuncOp"> {
  let summary = "Gradients by slices of one weight, added up, as one product";
  let description = [{
    What several products by slices of one weight read (`chunk-heads`) has a gradient that is a sum of products by the same slices.
    It becomes one product, of concatenations along the dimension that is contracted: the gradients of the chunks are smaller than
    the products, which all lived until they were added up, and a product rounds once.

    Precondition: `differentiate`. Postcondition: equal values but for rounding. Not applied to products with other readers,
    with batch dimensions, several contracted dimensions or a recipe of 8 bits.

    ```mlir
    // before
    %w0 = train.slice %w [0:8]
    %w1 = train.slice %w [8:16]
    %dx = train.add (train.dot_general %dq0, %w0 …), (train.dot_general %dq1, %w1 …)
    // after
    %dx = train.dot_general (train.concat %dq0, %dq1), (train.concat %w0, %w1) …
    ```
  }];
  let dependentDialects = ["train::TrainDialect"];
}

def JoinLoss : Pass<"join-loss", "::mlir::func::FuncOp"> {
  let summary = "Computes the loss of a linear layer and its gradient from the same logits";
  let description = [{
    A `linear_cross_entropy_grad` takes the place of the `linear_cross_entropy` that it is the gradient of, if the gradient of
    each row's loss does not depend on the loss: of a sum, or of a mean over targets. What it depends on moves in front, and is
    part of the forward pass then.

    Precondition: `differentiate`. Postcondition: none. Where the gradient depends on the loss, a remark says so, and logits are computed
    twice.

    ```mlir
    %loss, %lse = train.linear_cross_entropy %x, %w, %t …
    %l, %s, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {train.backward, …}
    ```
    becomes
    ```mlir
    %loss, %lse, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g …
    ```
  }];
}

def FreezeUnused : Pass<"freeze-unused", "::mlir::func::FuncOp"> {
  let summary = "Freeze parameters that have no gradient";
  let description = [{
    A `"param"` argument through which no gradient of the loss flows becomes `"frozen"`, with a warning: the loss does not depend on
    it, or only where there are no gradients (indices, comparisons, `stop_gradient`). PyTorch leaves such a parameter as it is, and
    so weight decay does not change it here either. A parameter whose gradient is zero by a rule (through `floor`) stays
    `"param"`, and weight decay changes it, as in PyTorch.

    Precondition: the step function has a loss (`add-loss`).
    Postcondition: gradients flow to every `"param"` argument. Not applied, with a warning, if they flow to none.

    ```mlir
    func.func @step(%w: tensor<4xf32> {train.role = "param"}, %unused: tensor<4xf32> {train.role = "param"}) -> …
    // becomes
    func.func @step(%w: tensor<4xf32> {train.role = "param"}, %unused: tensor<4xf32> {train.role = "frozen"}) -> …
    ```
  }];
}

def CheckDifferentiable : Pass<"check-differentiable", "::mlir::func::FuncOp"> {
  let summary = "Report every op between a parameter and the loss that has no gradient rule";
  let description = [{
    An op is active if it depends on a `"param"` argument through floating-point values and the loss depends on it. All
    active ops without a gradient rule are reported at once, each at its location with a shortest path
    `loss <- … <- op`. Changes nothing.

    Precondition: the step function has a loss (`add-loss`).
    Postcondition: `differentiate` finds a rule for every op that it meets.

    ```
    error: 'train.attention_grad' has no gradient rule
    note: path: loss <- train.reduce <- train.mul <- train.attention_grad
    ```
  }];
}

def Differentiate : Pass<"differentiate", "::mlir::func::FuncOp"> {
  let summary = "Append the backward pass";
  let description = [{
    Adds one result of role `"grad"` (`train.of` = the parameter's name) for each `"param"` argument, in argument order,
    and the ops that compute them. Each new op carries the unit attribute `train.backward` and the location
    `NameLoc("grad", <forward op>)`. The gradient of a parameter that none reaches is zero.

    Contributions to one value's gradient are added in the order in which the walk meets them; gradients of slices that do
    not overlap become one concat. Ops without users are removed.

    Precondition: the step function has a loss; `check-differentiable` passes.
    Postcondition: every parameter has a gradient result.

    ```mlir
    %y = train.mul %w, %x : tensor<4xf32>
    %loss = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
    // becomes
    …
    %one = train.constant {train.backward} dense<1.0> : tensor<f32>
    %dy = train.broadcast %one {broadcast_dimensions = array<i64>, train.backward} : (tensor<f32>) -> tensor<4xf32>
    %dw = train.mul %dy, %x {train.backward} : tensor<4xf32>
    return %loss, %dw : tensor<f32>, tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def Rematerialise : Pass<"rematerialise", "::mlir::func::FuncOp"> {
  let summary = "Compute values of the forward pass again in the backward pass instead of keeping them";
  let description = [{
    What the backward pass reads of the forward pass lives from one to the other. This pass keeps only some of it. The
    rest is computed again right before its first reader in the backward pass, by copies of the forward ops that carry
    `train.backward` and `train.recompute` and the location `NameLoc("recompute", <forward op>)`, and that read what is
    kept through a `barrier`, behind which no later pass looks: the copies are neither merged with the forward ops nor
    moved to them. Random numbers come from the same seeds and are the same. Parameters are read directly, and thus from the copy
    that the strategy gives to the backward pass.

    A *segment* is a block of the model, as for `flatten-parameters{wrap=module}`: ops whose names (or the names of whose
    parameters) agree up to the first integer component. A model without such names is one segment, `root`. What one
    segment reads of another is always kept, and ops outside of segments are never recomputed.

    | policy | kept in a segment |
    |---|---|
    | `none` | everything; the pass changes nothing |
    | `full` | nothing but what it reads of other segments |
    | `attention` | the same, and attention outputs |
    | `selective` | products, or their sums with a bias, convolutions and attention outputs as far as they are needed |
    | `budget` | what makes recomputation cheapest (in flops) while the kept bytes are at most `budget` |

    Views (reshape, transpose, slice, broadcast), casts of parameters and what follows from constants alone cost nothing
    and are always repeated or shared. `budget` minimises flops per segment and price of a byte by a minimum cut, and
    combines segments by steps in the order of flops per byte. A budget that cannot be met is an error that says what
    can.

    A remark says how many bytes are kept of how many. `report` writes a table (`-`: to stderr) or JSON, with the kept
    values and the front of all budgets. With `precision=bf16` an f32 value counts as the bf16 value that `cast-precision`
    keeps in its place; reductions, statistics and random numbers, which stay f32, count in full.

    Precondition: `differentiate`, then `canonicalize` and `cse`. Postcondition: the same results, bit for bit, of each op.

    ```mlir
    %h = train.tanh %x : tensor<4xf32>             // segment h.0; %x is computed in another segment
    …
    %dx = train.mul %dh, %h {train.backward} : tensor<4xf32>
    // becomes with policy=full
    %h = train.tanh %x : tensor<4xf32>
    …
    %b = train.barrier %x {segment = "h.0", train.backward, train.recompute} : tensor<4xf32>
    %h2 = train.tanh %b {train.backward, train.recompute} : tensor<4xf32>
    %dx = train.mul %dh, %h2 {train.backward} : tensor<4xf32>
    ```
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"none\"", "none, full, attention, selective or budget">,
    Option<"budget", "budget", "int64_t", "0", "Bytes of one rank and micro-batch that may be kept (policy budget)">,
    Option<"parts", "parts", "int64_t", "1", "Ranks that share the batch: each keeps this part of the bytes">,
    Option<"precision", "precision", "std::string", "\"fp32\"",
           "fp32 or bf16: what the precision phase will keep f32 values in; bytes are counted so">,
    Option<"report", "report", "::tessera::OptionText", "\"\"", "File for a report in JSON; - prints a table; default: none">,
    Option<"twice", "twice", "bool", "false",
           "What gradients of attention read of a block, and what follows reads, is computed again for them, however much of it was "
           "computed before, except attention itself: no recomputed queries and keys live while the rest of the block is differentiated">,
  ];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

#endif // TESSERA_PASSES_DIFFERENTIATE
