//===- TrainOpsCompute.td - reductions, contractions and neural ops -------===//

#ifndef TESSERA_TRAIN_OPS_COMPUTE
#define TESSERA_TRAIN_OPS_COMPUTE

include "compiler/dialect/train/TrainAttrs.td"

// --- Reduce ------------------------------------------------------------------

def Train_ReduceOp : Train_Op<"reduce"> {
  let summary = "Reduces over some dimensions, which disappear";
  let description = [{
    Accumulates in f32 for element types narrower than that, else in the element type. `dimensions` is sorted and has no
    duplicates. The gradient of `max` and `min` is split equally between ties.
  }];
  let arguments = (ins Train_ReduceKindAttr:$kind, Train_NumericTensor:$operand, DenseI64ArrayAttr:$dimensions);
  let results = (outs Train_NumericTensor:$result);
  let assemblyFormat = "$kind `,` $operand attr-dict `:` functional-type($operand, $result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Train_ArgmaxOp : Train_Op<"argmax"> {
  let summary = "Index of the first maximum along one dimension, which disappears";
  let arguments = (ins Train_NumericTensor:$operand, I64Attr:$dim);
  let results = (outs Train_IntTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $result)";
  let hasVerifier = 1;
}

def Train_SortIndicesOp : Train_Op<"sort_indices"> {
  let summary = "Indices that sort the elements along one dimension";
  let description = [{
    `result[…, r, …]` is the position along `dim` of the element that comes at place `r` in ascending order, or in
    descending order. The order is stable: of equal elements the one with the lower index comes first, in both directions.
    NaN counts as greater than every number, as in PyTorch's `sort`. The integer result has the operand's shape.

    ```mlir
    %order = train.sort_indices %x {descending, dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xi64>
    ```
  }];
  let arguments = (ins Train_NumericTensor:$operand, I64Attr:$dim, UnitAttr:$descending);
  let results = (outs Train_IntTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $result)";
  let hasVerifier = 1;
}

// --- Contract ----------------------------------------------------------------

def Train_DotGeneralOp : Train_Op<"dot_general"> {
  let summary = "Generalised matrix product";
  let description = [{
    Contracts `lhs_contract` with `rhs_contract`, maps over the pairs `lhs_batch`/`rhs_batch`. The result's dimensions are
    the batch dimensions, then the remaining ones of `lhs`, then those of `rhs`. Accumulates at least in f32.

    `compute_type` is f32, the type of the operands that the precision phase must leave it; without it that phase decides.
    The products of its gradients have it, too. `scaling` says that the precision phase makes it a `scaled_dot`.
  }];
  let arguments = (ins Train_NumericTensor:$lhs, Train_NumericTensor:$rhs, DenseI64ArrayAttr:$lhs_batch,
                       DenseI64ArrayAttr:$rhs_batch, DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract,
                       OptionalAttr<TypeAttr>:$compute_type, OptionalAttr<Train_ScalingAttr>:$scaling);
  let results = (outs Train_NumericTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

class Train_ConvOp<string mnemonic, dag tensors> : Train_Op<mnemonic> {
  let arguments = !con(tensors, (ins DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations,
                                 DefaultValuedAttr<I64Attr, "1">:$groups));
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Train_Conv2dOp
    : Train_ConvOp<"conv2d", (ins Train_FloatTensor:$input, Train_FloatTensor:$filter)> {
  let summary = "2-D convolution, input NCHW, filter OIHW";
  let description = [{ `padding` is [top, left, bottom, right], `strides` and `dilations` are [height, width]. }];
}
def Train_Conv2dInputGradOp
    : Train_ConvOp<"conv2d_input_grad", (ins Train_FloatTensor:$output_grad, Train_FloatTensor:$filter)> {
  let summary = "Gradient of `conv2d` with respect to its input (the result's shape)";
}
def Train_Conv2dFilterGradOp
    : Train_ConvOp<"conv2d_filter_grad", (ins Train_FloatTensor:$input, Train_FloatTensor:$output_grad)> {
  let summary = "Gradient of `conv2d` with respect to its filter (the result's shape)";
}

// --- Neural ------------------------------------------------------------------

def Train_SoftmaxOp : Train_Op<"softmax", [SameOperandsAndResultType]> {
  let summary = "`exp(x - max) / sum exp(x - max)` along one dimension";
  let arguments = (ins Train_FloatTensor:$operand, I64Attr:$dim);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Train_LayerNormOp : Train_Op<"layer_norm", [AttrSizedOperandSegments, AllTypesMatch<["operand", "result"]>]> {
  let summary = "Layer or RMS normalisation over the last dimension";
  let description = [{
    Mode `layer`: `(x - mean) * rstd * scale + bias` with `rstd = 1/sqrt(var + epsilon)`, `var` the biased variance (Ba et
    al., 2016). Mode `rms`: `x * rstd * scale` with `rstd = 1/sqrt(mean(x²) + epsilon)` (Zhang and Sennrich, 2019); `mean`
    is then 0. `scale` and `bias` are vectors of the last dimension; `mean` and `rstd` have the shape of the operand less
    its last dimension, in f32 at least.
  }];
  let arguments = (ins Train_NormModeAttr:$mode, Train_FloatTensor:$operand, Optional<Train_FloatTensor>:$scale,
                       Optional<Train_FloatTensor>:$bias, F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$mean, Train_FloatTensor:$rstd);
  let assemblyFormat = [{
    $mode `,` $operand (`scale` `(` $scale^ `)`)? (`bias` `(` $bias^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_CrossEntropyOp : Train_Op<"cross_entropy"> {
  let summary = "Cross-entropy of each row of logits against a class index";
  let description = [{
    For `logits` [N, V] and `targets` [N]: `lse = log sum exp logits` and
    `loss = lse - (1-s)·logits[target] - s/V·sum logits` with label smoothing `s`; 0 where the target is `ignore_index`.
    No reduction over rows: the loss of a step is their sum over the global count of rows that count (`count_valid`).
  }];
  let arguments = (ins Train_FloatTensor:$logits, Train_IntTensor:$targets, OptionalAttr<I64Attr>:$ignore_index,
                       DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing);
  let results = (outs Train_FloatTensor:$loss, Train_FloatTensor:$lse);
  let assemblyFormat = "$logits `,` $targets attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_LinearCrossEntropyOp : Train_Op<"linear_cross_entropy"> {
  let summary = "Cross-entropy of a linear layer's results, which are never whole in memory";
  let description = [{
    `cross_entropy` of the logits [N, V] that are the product of `hidden` [N, K] and `weight` [V, K], or [K, V] with
    `weight_dim` 0: the dimension of the weight that is contracted. Logits are of the type in which products are added
    up. `tile-loss` computes them for some rows at a time.

    ```mlir
    %loss, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64, ignore_index = -100 : i64}
                  : (tensor<8x4xbf16>, tensor<10x4xbf16>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
    ```
  }];
  let arguments = (ins Train_FloatTensor:$hidden, Train_FloatTensor:$weight, Train_IntTensor:$targets, I64Attr:$weight_dim,
                       OptionalAttr<I64Attr>:$ignore_index, DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing);
  let results = (outs Train_FloatTensor:$loss, Train_FloatTensor:$lse);
  let assemblyFormat = "$hidden `,` $weight `,` $targets attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_LinearCrossEntropyGradOp : Train_Op<"linear_cross_entropy_grad"> {
  let summary = "`linear_cross_entropy` and its gradient, of logits that are computed once";
  let description = [{
    `loss_grad` [N] is the gradient of each row's loss; where it is known before the loss is (a mean over targets), this op
    gives both (`join-loss`), else it computes the logits again. The gradient of the logits, `(softmax - targets) * loss_grad`,
    is rounded to the type of `hidden` before it is multiplied. Gradients are of the type of what they are of, or of that in
    which they are added up.
  }];
  let arguments = (ins Train_FloatTensor:$hidden, Train_FloatTensor:$weight, Train_IntTensor:$targets,
                       Train_FloatTensor:$loss_grad, I64Attr:$weight_dim, OptionalAttr<I64Attr>:$ignore_index,
                       DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing);
  let results = (outs Train_FloatTensor:$loss, Train_FloatTensor:$lse, Train_FloatTensor:$hidden_grad,
                      Train_FloatTensor:$weight_grad);
  let assemblyFormat = [{
    $hidden `,` $weight `,` $targets `,` $loss_grad attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_CountValidOp : Train_Op<"count_valid"> {
  let summary = "How many targets are not `ignore_index`, at least 1";
  let description = [{
    The denominator of a mean loss, as a float. `accumulate-gradients` moves it out of the micro-batch loop, so that it
    counts the whole batch; sharding makes it a global count.
  }];
  let arguments = (ins Train_IntTensor:$targets, OptionalAttr<I64Attr>:$ignore_index);
  let results = (outs Train_FloatScalar:$result);
  let assemblyFormat = "$targets attr-dict `:` functional-type($targets, $result)";
}

def Train_AttentionOp : Train_Op<"attention", [AttrSizedOperandSegments]> {
  let summary = "Scaled dot-product attention";
  let description = [{
    `query` [B, H, Tq, D], `key` [B, G, Tk, D], `value` [B, G, Tk, Dv], H a multiple of G (grouped-query attention: query
    head h reads group h / (H/G)). `result` [B, H, Tq, Dv] `= softmax(scale·QKᵀ + mask) V`; `lse` [B, H, Tq] is the
    log-sum-exp of each row. What a query attends to has to pass
    all of what is given:

    | | query i attends to key j only if |
    |---|---|
    | `mask` [B or 1, H or 1, Tq or 1, Tk] | true, if boolean; else it is added to the score |
    | `causal` | `j <= i + Tk - Tq` |
    | `window` w, beside `causal` | `j > i + Tk - Tq - w` |
    | `begin`, `end` [B or 1, Tq] i64 | `begin[i] <= j < end[i]` |

    A row that attends to nothing gives 0, and lse = -inf. `result` is of the query's type, or of the type in which it is
    added up. `split` says what is sent where queries and keys are split along the sequence: all keys to all ranks
    (`gather`, the default), or blocks of keys from rank to rank (`ring`). `density`, for estimates of time, is the part of all
    pairs of a query and a key that `begin` and `end` leave, on the rank that has most. Neither changes a value.
  }];
  let arguments = (ins Train_FloatTensor:$query, Train_FloatTensor:$key, Train_FloatTensor:$value,
                       Optional<Train_Tensor>:$mask, Optional<Train_IntTensor>:$begin, Optional<Train_IntTensor>:$end,
                       F64Attr:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<F64Attr>:$density, OptionalAttr<Train_AttentionSplitAttr>:$split);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $mask^ `)`)? (`keys` `(` $begin^ `to` $end `)`)? attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_AttentionGradOp : Train_Op<"attention_grad", [AttrSizedOperandSegments]> {
  let summary = "Gradient of `attention`, recomputing the probabilities from `lse`";
  let description = [{
    Dao et al., FlashAttention, 2022, algorithm 4. `mask` takes no gradient. With `partial`, `output` and `lse` are those of
    an attention to more keys than these, and the results are the part of these in its gradients. Gradients are of the type of what they are of, or of the type
    in which they are added up.
  }];
  let arguments = (ins Train_FloatTensor:$query, Train_FloatTensor:$key, Train_FloatTensor:$value,
                       Optional<Train_Tensor>:$mask, Optional<Train_IntTensor>:$begin, Optional<Train_IntTensor>:$end,
                       Train_FloatTensor:$output, Train_FloatTensor:$lse,
                       Train_FloatTensor:$output_grad, F64Attr:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<F64Attr>:$density, OptionalAttr<Train_AttentionSplitAttr>:$split, UnitAttr:$partial);
  let results = (outs Train_FloatTensor:$query_grad, Train_FloatTensor:$key_grad, Train_FloatTensor:$value_grad);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $mask^ `)`)? (`keys` `(` $begin^ `to` $end `)`)? `,` $output `,` $lse `,`
    $output_grad attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

// --- Quant -------------------------------------------------------------------

def Train_QuantizeScaleOp : Train_Op<"quantize_scale", [Elementwise, SameOperandsAndResultType]> {
  let summary = "The scale that brings a largest absolute value to the largest number of an 8-bit float";
  let description = [{
    With `max` the largest number of `format`, 448 or 57344 (Micikevicius et al. 2022, FP8 Formats for Deep Learning):

    | `rounding` | result |
    |---|---|
    | `none` | `f32(max / max(amax, 1e-12))`, divided in f64, as in torchao |
    | `down` | the largest power of two that is not above that |
    | `e8m0` | `2^-e`, with `2^e` the smallest power of two, of an 8-bit exponent, that is not below `f32(amax / max)` (OCP Microscaling 1.0, rounded up) |

    Of an `amax` that is NaN the scale is NaN, of an infinite one 0 (`e8m0`: NaN). With `one_if_not_finite` it is 1 in both cases.

    ```mlir
    %s = train.quantize_scale down, %amax {format = f8E4M3FN} : tensor<4x1xf32>
    ```
  }];
  let arguments = (ins Train_ScaleRoundingAttr:$rounding, Train_FloatTensor:$amax, TypeAttr:$format,
                       UnitAttr:$one_if_not_finite);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$rounding `,` $amax attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Train_QuantizeOp : Train_Op<"quantize"> {
  let summary = "Casts to an 8-bit float after multiplying by a scale, saturating";
  let description = [{
    `result = saturate(f32(operand) * scale)`, rounded to the nearest, ties to even; NaN stays NaN. `scale` is a scalar or has
    the operand's rank; along each dimension its size divides the operand's, and as many neighbours as the quotient share
    an element: a scale [4, 2] of an operand [4, 256] has one for each half of a row.
  }];
  let arguments = (ins Train_FloatTensor:$operand, Train_FloatTensor:$scale);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$operand `,` $scale attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Train_DequantizeOp : Train_Op<"dequantize"> {
  let summary = "Casts an 8-bit float up and multiplies it by the inverse of its scale";
  let description = [{ `result = operand * inverse_scale`, rounded to the result's type; shapes as of `quantize`. }];
  let arguments = (ins Train_FloatTensor:$operand, Train_FloatTensor:$inverse_scale);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$operand `,` $inverse_scale attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Train_ScaledDotOp : Train_Op<"scaled_dot"> {
  let summary = "Matrix product of 8-bit floats that carry the inverses of their scales";
  let description = [{
    `dot_general` of the operands times their inverse scales, whose shapes are as of `quantize`, without a batch. Adds in
    f32. A scale that changes along a contracted dimension has as many values there as that of the other side, or that
    has one. With `power_of_two` all scales are powers of two, so that each operand times its inverse scale is a bf16.

    ```mlir
    %y = train.scaled_dot %x, %w scaled %sx, %sw {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two}
        : (tensor<64x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<64x1xf32>, tensor<128x1xf32>) -> tensor<64x128xbf16>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$lhs, Train_FloatTensor:$rhs, Train_FloatTensor:$lhs_inverse_scale,
                       Train_FloatTensor:$rhs_inverse_scale, DenseI64ArrayAttr:$lhs_contract,
                       DenseI64ArrayAttr:$rhs_contract, UnitAttr:$power_of_two);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `scaled` $lhs_inverse_scale `,` $rhs_inverse_scale attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // TESSERA_TRAIN_OPS_COMPUTE
