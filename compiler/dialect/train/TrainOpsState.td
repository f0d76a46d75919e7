//===- TrainOpsState.td - optimizer, accumulation and region ops ----------===//

#ifndef TESSERA_TRAIN_OPS_STATE
#define TESSERA_TRAIN_OPS_STATE

include "compiler/dialect/train/TrainAttrs.td"
include "compiler/interfaces/OptimizerUpdate.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Train_StopGradientOp : Train_Op<"stop_gradient", [SameOperandsAndResultType, IndexMappingOpInterface]> {
  let summary = "The identity, through which no gradient flows";
  let arguments = (ins Train_Tensor:$operand);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    static ElementMap getElementMap() { return ElementMap::Identity; }
  }];
}

def Train_BarrierOp : Train_Op<"barrier", [SameOperandsAndResultType, IndexMappingOpInterface]> {
  let summary = "The identity, which optimization does not look through";
  let description = [{
    What is computed from the result is computed here or later, even if the same has been computed from the operand
    before: recomputation in the backward pass reads what it starts from through barriers. Two barriers of one value with
    different `segment`s (the part of the model that is recomputed) stay apart. A barrier is a view, it moves nothing.
  }];
  let arguments = (ins Train_Tensor:$operand, OptionalAttr<StrAttr>:$segment);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    static ElementMap getElementMap() { return ElementMap::Identity; }
  }];
}

def Train_YieldOp : Train_Op<"yield", [Terminator, ReturnLike, HasParent<"AccumulateOp">]> {
  let summary = "Ends the region of `accumulate`";
  let arguments = (ins Variadic<Train_Tensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let builders = [OpBuilder<(ins), [{ /* nothing to yield */ }]>];
}

def Train_AccumulateOp : Train_Op<"accumulate", [SingleBlockImplicitTerminator<"YieldOp">,
    RecursiveMemoryEffects]> {
  let summary = "Runs its region once per micro-batch and adds up what it yields";
  let description = [{
    Every operand has a leading dimension of size `count`. In iteration `i` the region's first argument is `i`
    (tensor<i64>), the others are `operand[i]` (without the leading dimension). Each result is the sum over the iterations,
    in order, of the corresponding yielded value. The region may use values defined above it.

    The last `carried` operands are not sliced: the region gets them whole in iteration 0, and what the iteration before
    has yielded in their places, the last ones, in all others. Their results are what the last iteration yields.

    ```mlir
    %loss, %grad = train.accumulate %tokens {count = 4 : i64} : (tensor<4x8x128xi32>) -> (tensor<f32>, tensor<1024xf32>) {
    ^bb0(%i: tensor<i64>, %micro: tensor<8x128xi32>):
      …
      train.yield %l, %g : tensor<f32>, tensor<1024xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Train_Tensor>:$operands, I64Attr:$count, DefaultValuedAttr<I64Attr, "0">:$carried);
  let results = (outs Variadic<Train_NumericTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$operands attr-dict `:` functional-type($operands, $results) $body";
  let extraClassDeclaration = [{
    /// The operands of which each iteration gets a slice, and those that are carried.
    ::mlir::OperandRange getBatch() { return getOperands().drop_back(getCarried()); }
    ::mlir::OperandRange getInit() { return getOperands().take_back(getCarried()); }
    /// Whether an operand is carried.
    bool isCarried(unsigned operand) { return operand >= getBatch().size(); }
  }];
  let hasVerifier = 1;
}

/// One step of an optimizer on a flat unit. `states` are its states, `hyper` what the host computes besides `lr`, and
/// `numbers` its constants; what all updates have comes around them.
class Train_UpdateOp<string mnemonic, dag states, dag hyper, dag numbers, list<Trait> traits = [],
                     list<string> methods = []>
    : Train_Op<mnemonic, !listconcat(traits, [AttrSizedOperandSegments, AllTypesMatch<["param", "new_param"]>,
          DeclareOpInterfaceMethods<OptimizerUpdateOpInterface, methods>])> {
  let arguments = !con((ins Train_FloatTensor:$param), states, (ins Train_FloatTensor:$grad, Train_FloatScalar:$lr), hyper,
                       (ins Optional<Train_FloatScalar>:$grad_scale, Optional<Train_IntScalar>:$offset,
                            Optional<Train_BoolScalar>:$apply),
                       numbers, (ins F64Attr:$weight_decay, I64Attr:$decay_elements, OptionalAttr<F64Attr>:$clip_value));
  let hasVerifier = 1;
}

def Train_AdamwUpdateOp : Train_UpdateOp<"adamw_update",
    (ins Train_FloatTensor:$m, Train_FloatTensor:$v),
    (ins Train_FloatScalar:$bias_correction1, Train_FloatScalar:$bias_correction2, Optional<Train_IntScalar>:$seed),
    (ins F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon, OptionalAttr<I64Attr>:$rounding_stream),
    [AllTypesMatch<["m", "new_m"]>, AllTypesMatch<["v", "new_v"]>], ["getRounding"]> {
  let summary = "One AdamW step on a flat unit";
  let description = [{
    Loshchilov and Hutter, 2019, with PyTorch's order of operations (`torch.optim.AdamW`, `foreach=False`):

    ```
    g  = clip(grad * grad_scale)                 (if given: clipping by norm, then by value)
    p  = param * (1 - lr * wd)                   wd = weight_decay where the global index < decay_elements, else 0
    m' = m + (g - m) * (1 - beta1)
    v' = v * beta2 + (1 - beta2) * g * g
    p' = p - (lr / bias_correction1) * m' / (sqrt(v') / sqrt(bias_correction2) + epsilon)
    ```
    `bias_correction_k = 1 - beta_k^step` is computed by the host in f64. The global index of element `i` is `i + offset`;
    sharding sets `offset` to the first element of the rank's shard. Where `apply` is given and false, the results are
    `param`, `m` and `v`, bit for bit.

    `m` and `v` may be bf16; all is computed in f32 then. With `seed` they are rounded at random, as by `stochastic_round` with
    `rounding_stream` and the lanes 0 and 1; p' is made from m' and v' before they are rounded.
  }];
  let results = (outs Train_FloatTensor:$new_param, Train_FloatTensor:$new_m, Train_FloatTensor:$new_v);
  let assemblyFormat = [{
    $param `,` $m `,` $v `,` $grad `lr` `(` $lr `)` `correction` `(` $bias_correction1 `,` $bias_correction2 `)`
    (`seed` `(` $seed^ `)`)? (`scale` `(` $grad_scale^ `)`)? (`offset` `(` $offset^ `)`)? (`apply` `(` $apply^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def Train_LionUpdateOp : Train_UpdateOp<"lion_update",
    (ins Train_FloatTensor:$m), (ins), (ins F64Attr:$beta1, F64Attr:$beta2), [AllTypesMatch<["m", "new_m"]>]> {
  let summary = "One Lion step on a flat unit";
  let description = [{
    Chen et al., 2023 (Symbolic Discovery of Optimization Algorithms, algorithm 2), in the order of operations of its
    published PyTorch code:

    ```
    g  = clip(grad * grad_scale)                 (if given: clipping by norm, then by value)
    p  = param * (1 - lr * wd)                   wd = weight_decay where the global index < decay_elements, else 0
    u  = m * beta1 + g * (1 - beta1)
    p' = p - lr * sign(u)                        sign(0) = 0; what is no number stays so
    m' = m * beta2 + g * (1 - beta2)
    ```
    `decay_elements`, `offset` and `apply` as for `adamw_update`.
  }];
  let results = (outs Train_FloatTensor:$new_param, Train_FloatTensor:$new_m);
  let assemblyFormat = [{
    $param `,` $m `,` $grad `lr` `(` $lr `)` (`scale` `(` $grad_scale^ `)`)? (`offset` `(` $offset^ `)`)?
    (`apply` `(` $apply^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_SgdUpdateOp : Train_UpdateOp<"sgd_update",
    (ins Optional<Train_FloatTensor>:$buffer), (ins), (ins F64Attr:$momentum, UnitAttr:$nesterov)> {
  let summary = "One step of stochastic gradient descent with momentum on a flat unit";
  let description = [{
    PyTorch's order of operations (`torch.optim.SGD`, dampening 0): `g = clip(grad * grad_scale) + wd * param`;
    `b' = momentum * b + g`; `p' = param - lr * (nesterov ? g + momentum * b' : b')`. Without momentum there is no `buffer` and no
    `new_buffer`. `decay_elements`, `offset` and `apply` as for `adamw_update`.
  }];
  let results = (outs Train_FloatTensor:$new_param, Optional<Train_FloatTensor>:$new_buffer);
  let assemblyFormat = [{
    $param `,` $grad (`buffer` `(` $buffer^ `)`)? `lr` `(` $lr `)` (`scale` `(` $grad_scale^ `)`)?
    (`offset` `(` $offset^ `)`)? (`apply` `(` $apply^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

def Train_StochasticRoundOp : Train_Op<"stochastic_round", [AllShapesMatch<["operand", "result"]>]> {
  let summary = "Rounds f32 to bf16, up or down at random, so that the mean over many roundings is the operand";
  let description = [{
    Of the two neighbours in bf16 each is taken with a probability that is the other's share of the distance: 16 random
    bits are added to the lower half of the operand's bits, and the upper half of the sum is the result. What is
    representable stays as it is, as do infinities; what is no number is quieted. Beyond the largest finite bf16 the neighbour is infinity.

    The bits of element `i` are a pure function of (seed, stream, lane, `i + offset`), with `i` its row-major index:
    Philox as for `rng_uniform`, of whose four output words a lane is a half (lane 0 the lower of the first, lane 1 its upper).
    Updates of sharded units give their `offset`, so that the bits are the same on any mesh. Made by `decompose`; it has
    no sharding rule.

    ```mlir
    %r = train.stochastic_round %x, %seed offset(%first) {lane = 0 : i64, stream = 7 : i64}
        : (tensor<64xf32>, tensor<i64>, tensor<i64>) -> tensor<64xbf16>
    ```
  }];
  let arguments = (ins Train_TensorOf<F32, "f32">:$operand, Train_IntScalar:$seed, Optional<Train_IntScalar>:$offset,
                       I64Attr:$stream, I64Attr:$lane);
  let results = (outs Train_TensorOf<BF16, "bf16">:$result);
  let assemblyFormat = "$operand `,` $seed (`offset` `(` $offset^ `)`)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // TESSERA_TRAIN_OPS_STATE
