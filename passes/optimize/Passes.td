//===- Passes.td - passes of the optimize phase ---------------------------===//

#ifndef TESSERA_PASSES_OPTIMIZE
#define TESSERA_PASSES_OPTIMIZE

include "mlir/Pass/PassBase.td"

def FlattenParameters : Pass<"flatten-parameters", "::mlir::func::FuncOp"> {
  let summary = "Group parameters into flat units";
  let description = [{
    Each unit becomes one argument of role `"param"`, before all other arguments: a vector of the unit's parameters, those
    with weight decay first, then the others, then zeros up to a multiple of `pad-multiple`. `train.segments` lists the
    parameters with name, offset (elements), shape and initialiser; `train.decay_elements` is the number of elements that
    take weight decay. A parameter becomes `slice` + `reshape` of its unit, once for its forward and once for its
    backward uses; values that are mere views of a parameter are repeated for the backward pass. The gradient of a unit
    is the concat of its parameters' gradients, and where only some rows of a parameter are read, as of positions, the
    concat of the gradient of these rows and zeros. Frozen parameters make
    units of their own, `<unit>.frozen`, without a gradient; buffers of the model (`train.init = "given"`) stay as they are.

    With `wrap=module` a unit is a block of the model: the parameters whose names agree up to the first integer component
    (`transformer.h.3.*`). The rest are `embed` (first read before any block) and `head` (after), or one `root` if there
    are no blocks; a tied parameter exists once and belongs to the unit of its first use. Units are in the order of first
    use.

    Parameters of one module that differ in element type, in the axes that they are placed on (`train.placement`) or in
    `train.compute_type` are units apart, named `<unit>.<axis>` and `<unit>.read_f32`. A placed unit is a matrix of as many
    rows as there are parts, flattened: row r holds part r of each parameter, and `pad-multiple` is that of a row. Reading
    a placed parameter is a slice of the rows, a transposition that brings the parts to the dimension that they split, and
    a reshape. As an update's elements that decay are the first of the whole unit, what does not decay there is in
    `<unit>.<axis>.no_decay`.

    Precondition: parameters have distinct names. Usually after `differentiate`; without gradients only arguments change.
    Postcondition: every `"param"` argument is one-dimensional with `train.segments`.

    ```mlir
    func.func @step(%w: tensor<4x8xf32> {train.role = "param", train.name = "fc.weight"},
                    %b: tensor<8xf32> {train.role = "param", train.name = "fc.bias"}, …)
    // becomes, with pad-multiple=16
    func.func @step(%root: tensor<48xf32> {train.role = "param", train.name = "root", train.decay_elements = 32 : i64,
        train.segments = [#train.segment<"fc.weight", offset = 0, shape = [4, 8]>,
                          #train.segment<"fc.bias", offset = 32, shape = [8]> ]}, …)
      %0 = train.slice %root {starts = array<i64: 0>, limits = array<i64: 32>, strides = array<i64: 1>} : …
      %w = train.reshape %0 : (tensor<32xf32>) -> tensor<4x8xf32>
    ```
  }];
  let options = [
    Option<"wrap", "wrap", "std::string", "\"module\"",
           "module (by block scope), size:<bytes> (at most so many, of one part where model axes split, in order of first use) or none (one unit)">,
    Option<"padMultiple", "pad-multiple", "int64_t", "1", "Units are padded to a multiple of this many elements">,
    Option<"noDecay", "no-decay", "::tessera::OptionText", "\"\"",
           "Regular expression of the names of parameters without weight decay; default: vectors and scalars, that is "
           "norms and biases">,
  ];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def AccumulateGradients : Pass<"accumulate-gradients", "::mlir::func::FuncOp"> {
  let summary = "Split a step into micro-batches whose gradients are added up";
  let description = [{
    Wraps forward and backward into `train.accumulate`. Arguments of role `"input"` and `"target"` get a leading dimension
    of size `count`. `count_valid` moves out of the loop and counts the whole batch, so that the loss and its gradients
    are those of the whole batch. A loss that is a mean over the micro-batch (`train.loss_of_batch`, see `add-loss`; of a loss
    from elsewhere it is found out here) and its gradients are multiplied by `1/count`, those that are sums are not. A loss
    that is neither, such as a product of two means or one with `train.samples_meet`, is an error at the op in question. Seeds of random numbers are mixed
    with the iteration.

    Precondition: results are the loss and gradients.
    Postcondition: the same results, outside of the loop. With `count=1` nothing changes.

    ```mlir
    func.func @step(%u: …, %tokens: tensor<8x128xi32> {train.role = "input"}, …) -> (tensor<f32> {train.role = "loss"}, …)
    // becomes, with count=4
    func.func @step(%u: …, %tokens: tensor<4x8x128xi32> {train.role = "input"}, …)
      %n = train.count_valid %targets : (tensor<4x8x128xi32>) -> tensor<f32>
      %loss, %grad = train.accumulate %tokens, %targets {count = 4 : i64} : … {
      ^bb0(%i: tensor<i64>, %micro: tensor<8x128xi32>, …):
        …
      }
    ```
  }];
  let options = [Option<"count", "count", "int64_t", "1", "Micro-batches per step">];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def ClipGradients : Pass<"clip-gradients", "::mlir::func::FuncOp"> {
  let summary = "Compute the global gradient norm and clip to it";
  let description = [{
    Adds the result `grad_norm` (role `"metric"`): the Euclidean norm of all gradients together, before clipping. With
    `max-norm` every gradient is multiplied by `min(1, max_norm / (norm + 1e-6))`, as by PyTorch's
    `torch.nn.utils.clip_grad_norm_`.

    Precondition: gradient results. Postcondition: results in the order loss, metrics, gradients.

    ```mlir
    // before
    return %loss, %g1, %g2
    // after, with max-norm=1: %norm is the root of the sum of squares of %g1 and %g2
    return %loss, %norm, %g1 * %factor, %g2 * %factor     // %factor = min(1, 1 / (%norm + 1e-6))
    ```
  }];
  let options = [
    Option<"maxNorm", "max-norm", "::tessera::OptionNumber", "0.0", "Largest norm; 0: no clipping">,
    Option<"metric", "metric", "bool", "true", "Add the norm to the results">,
  ];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def InsertOptimizer : Pass<"insert-optimizer", "::mlir::func::FuncOp"> {
  let summary = "Replace gradient results by updates of parameters and optimizer state";
  let description = [{
    One update (`adamw_update`, `lion_update`, `sgd_update`) per unit, with the attribute `train.unit` = the unit's name. Appends
    arguments for the states (`<unit>.m`, …; role `"state"`, `train.of`, `train.state`) and for what the host computes each
    step (`lr`, and for adamw `bias_correction1`, `bias_correction2` with `train.beta`; role `"hyper"`, f32). A gradient that is
    scaled by one number (`clip-gradients`) enters unscaled with the number as `grad_scale`. Clipping by value is part of
    the update, after that scale.

    With `moments=bf16` states are bf16 and rounded at random by the step's seed, an argument that is appended if there is none,
    and a stream made from the unit's name.

    Precondition: every `"param"` argument is a flat unit with a gradient result.
    Postcondition: the results are the loss, metrics, then the new parameters and states, aliased to their arguments
    (`train.alias`) in argument order; no gradients.

    ```mlir
    // before
    func.func @step(%u: … {train.role = "param"}, …) -> (… {train.role = "loss"}, … {train.role = "grad", train.of = "u"})
    // after, for sgd without momentum
    func.func @step(%u: … {train.role = "param"}, …, %lr: tensor<f32> {train.role = "hyper"})
        -> (… {train.role = "loss"}, … {train.alias = 0}) { …; %new = train.sgd_update %u, %grad, %lr …; return %loss, %new }
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"adamw\"", "adamw, lion or sgd">,
    Option<"weightDecay", "weight-decay", "::tessera::OptionNumber", "0.01", "Decoupled (adamw, lion) or L2 (sgd) weight decay">,
    Option<"clipValue", "clip-value", "::tessera::OptionNumber", "0.0", "Largest absolute value of a gradient's element; 0: any">,
    ListOption<"numbers", "settings", "std::string",
               "<name>=<number> for what the optimizer is told (docs/optimize.md); default: its own">,
    Option<"moments", "moments", "std::string", "\"fp32\"", "What states are stored in: fp32, or bf16 (adamw)">,
    Option<"noDecay", "no-decay", "::tessera::OptionText", "\"\"",
           "Checks that flatten-parameters was given this regular expression; default: no check">,
  ];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def AverageParameters : Pass<"average-parameters", "::mlir::func::FuncOp"> {
  let summary = "Keep an exponential moving average of each parameter";
  let description = [{
    Appends for each unit that the step updates a state `<unit>.average` (role `"state"`, `train.state` = `"average"`; of the
    accumulation type), whose next value is `average + (1 - decay) * (p' - average)` with the unit's new value p':
    `torch.optim.swa_utils.get_ema_multi_avg_fn`. The host lets it begin as the parameter. With `decay=0` nothing changes.

    Precondition: updates (`insert-optimizer`), and no guard yet: `guard-updates` then keeps averages of steps that are left out.
    Postcondition: every updated unit has an average, aliased to its argument.

    ```mlir
    // before
    %new = train.sgd_update %u, %grad lr(%lr) …
    return %loss, %new
    // after
    %new = train.sgd_update %u, %grad lr(%lr) …
    %next = %average + (1 - decay) * (%new - %average)
    return %loss, %new, %next
    ```
  }];
  let options = [Option<"decay", "decay", "::tessera::OptionNumber", "0.0", "Share of the old average, in [0, 1); 0: no averages">];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def NarrowFrozen : Pass<"narrow-frozen", "::mlir::func::FuncOp"> {
  let summary = "Hold frozen parameters in bf16";
  let description = [{
    Frozen parameters of f32 become arguments of bf16, which are widened before the first op of each phase that reads them.
    They take half the memory, and half the bytes where a strategy gathers them; `train.model_type` says that weights are
    rounded when they are loaded. Under `--precision bf16`, which reads bf16 of them anyway, no bit of the step changes.

    Not applied to buffers and single numbers (`train.init = "given"`), parameters of other types, and those that are computed in f32
    (`train.compute_type`). That nothing is left is an error.

    Precondition: before `flatten-parameters`. Postcondition: types of results are as before.

    ```mlir
    func.func @step(%w: tensor<4xf32> {train.role = "frozen", train.name = "w"}, …)
      %y = train.mul %x, %w : tensor<4xf32>
    // becomes
    func.func @step(%w: tensor<4xbf16> {train.role = "frozen", train.name = "w", train.model_type = f32}, …)
      %0 = train.convert %w : (tensor<4xbf16>) -> tensor<4xf32>
      %y = train.mul %x, %0 : tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def GuardUpdates : Pass<"guard-updates", "::mlir::func::FuncOp"> {
  let summary = "A step whose loss or gradient norm is not finite changes nothing";
  let description = [{
    Computes whether the loss and the metric `grad_norm` are finite, in their own types, or'ed with a new argument
    `update_always` (role `"hyper"`, f32: 0 or 1, set by the host). Every optimizer update takes that as `apply`; every other
    result that is an argument's next value becomes a select between it and the argument. Adds the result `updated` (role
    `"updated"`, f32): 1 if the step changed something, else 0.

    With the guard no update begins before the norm of all gradients is known. That is so anyway where they are clipped.

    Precondition: optimizer updates, and a metric `grad_norm` (`clip-gradients`); a function without any result that is an
    argument's next value stays as it is.
    Postcondition: the results are the loss, metrics, `updated`, then as before; every next value is the old one where
    `updated` is 0.

    ```mlir
    // before
    %new = train.sgd_update %u, %grad lr(%lr) …
    return %loss, %norm, %new
    // after
    %finite = |%loss| < inf and |%norm| < inf
    %apply = %finite or %update_always != 0
    %new = train.sgd_update %u, %grad lr(%lr) apply(%apply) …
    return %loss, %norm, %apply ? 1.0 : 0.0, %new
    ```
  }];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def AddEvaluation : Pass<"add-evaluation", "::mlir::ModuleOp"> {
  let summary = "Add a function that computes the loss of a batch and trains nothing";
  let description = [{
    Clones the step function to `@evaluate` (`train.program = "evaluate"`) and leaves of it what the loss needs. Its
    results are two f32 scalars: `"loss_sum"` and `"loss_count"`. The loss of a data set is that of one batch that holds all of
    its samples: S / (max(C, `train.at_least`) + `train.plus`), where S and C are the sums of the two over the batches.

    | loss of a batch | sum | count |
    |---|---|---|
    | a sum divided by a `count_valid` | that sum | the values that are not ignored; `train.of` names the target |
    | a sum divided by a sum over the batch of what follows from data alone (weights, a mask) | that sum | that sum |
    | the same, with the divisor's maximum with a number or plus a number | that sum | the divisor before it; the numbers are `train.at_least` and `train.plus` |
    | a mean over the batch | the loss | 1 |

    Each result of role `"evaluated"` becomes two more, `"metric_sum"` and `"metric_count"`, by the same table, or with a
    count of 0 and `train.plus` 1 if it is a plain sum over the batch; the step function loses it.

    The loss may be a number times one of these. Any other loss is an error: a mean that depends on another number of the
    whole batch (`(x * w).mean() / w.mean()`), a divisor that is a mean, a power or a product, several quotients. Dropout
    (`keep ? x / (1 - p) : 0`, where `keep` is `random >= p` and the random numbers have `train.dropout`) becomes `x`; a sum
    that names its running buffer (`train.running`, of a batch normalisation) becomes that buffer times the number of its terms. Other
    random numbers, and statistics of the batch that name none, are errors: whether the model has them in evaluation,
    too, the step does not say. Index checks stay. Arguments
    keep their names: parameters are those of the step. A scalar of the host that is not read any more (`seed`) is
    dropped. Where samples of a batch may influence each other (`train.samples_meet`) a warning says that batches of
    another size have another loss.

    Precondition: `differentiate`, `flatten-parameters`; before `accumulate-gradients`, so that a batch of evaluation is a
    micro-batch. Postcondition: the step function is as it was, without results of role `"evaluated"`.

    ```mlir
    func.func @step(%w: … {train.role = "param", train.name = "embed"}, %tokens: …, %targets: …, %seed: …)
        -> (tensor<f32> {train.role = "loss"}, … {train.role = "grad", train.of = "embed"})
    // is followed by
    func.func @evaluate(%w: … {train.role = "param", train.name = "embed"}, %tokens: …, %targets: …)
        -> (tensor<f32> {train.role = "loss_sum"}, tensor<f32> {train.role = "loss_count", train.of = "targets"})
        attributes {train.program = "evaluate"}
    ```
  }];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

#endif // TESSERA_PASSES_OPTIMIZE
