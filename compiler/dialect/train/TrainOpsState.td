//===- TrainOpsState.td - optimizer, accumulation and region ops ----------===//

#ifndef TESSERA_TRAIN_OPS_STATE
#define TESSERA_TRAIN_OPS_STATE

include "compiler/dialect/train/TrainAttrs.td"
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

    ```mlir
    %loss, %grad = train.accumulate %tokens {count = 4 : i64} : (tensor<4x8x128xi32>) -> (tensor<f32>, tensor<1024xf32>) {
    ^bb0(%i: tensor<i64>, %micro: tensor<8x128xi32>):
      …
      train.yield %l, %g : tensor<f32>, tensor<1024xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Train_Tensor>:$operands, I64Attr:$count);
  let results = (outs Variadic<Train_NumericTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$operands attr-dict `:` functional-type($operands, $results) $body";
  let hasVerifier = 1;
}

def Train_AdamwUpdateOp : Train_Op<"adamw_update", [AttrSizedOperandSegments,
    AllTypesMatch<["param", "new_param"]>, AllTypesMatch<["m", "new_m"]>, AllTypesMatch<["v", "new_v"]>]> {
  let summary = "One AdamW step on a flat unit";
  let description = [{
    Loshchilov and Hutter, 2019, with PyTorch's order of operations (`torch.optim.AdamW`, `foreach=False`):

    ```
    g  = grad * grad_scale                       (if given: global-norm clipping)
    p  = param * (1 - lr * wd)                   wd = weight_decay where the global index < decay_elements, else 0
    m' = m + (g - m) * (1 - beta1)
    v' = v * beta2 + (1 - beta2) * g * g
    p' = p - (lr / bias_correction1) * m' / (sqrt(v') / sqrt(bias_correction2) + epsilon)
    ```
    `bias_correction_k = 1 - beta_k^step` is computed by the host in f64. The global index of element `i` is `i + offset`;
    sharding sets `offset` to the first element of the rank's shard. Where `apply` is given and false, the results are
    `param`, `m` and `v`, bit for bit.
  }];
  let arguments = (ins Train_FloatTensor:$param, Train_FloatTensor:$m, Train_FloatTensor:$v, Train_FloatTensor:$grad,
                       Train_FloatScalar:$lr, Train_FloatScalar:$bias_correction1, Train_FloatScalar:$bias_correction2,
                       Optional<Train_FloatScalar>:$grad_scale, Optional<Train_IntScalar>:$offset,
                       Optional<Train_BoolScalar>:$apply,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon, F64Attr:$weight_decay, I64Attr:$decay_elements);
  let results = (outs Train_FloatTensor:$new_param, Train_FloatTensor:$new_m, Train_FloatTensor:$new_v);
  let assemblyFormat = [{
    $param `,` $m `,` $v `,` $grad `lr` `(` $lr `)` `correction` `(` $bias_correction1 `,` $bias_correction2 `)`
    (`scale` `(` $grad_scale^ `)`)? (`offset` `(` $offset^ `)`)? (`apply` `(` $apply^ `)`)? attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Train_SgdUpdateOp : Train_Op<"sgd_update", [AttrSizedOperandSegments, AllTypesMatch<["param", "new_param"]>]> {
  let summary = "One step of stochastic gradient descent with momentum on a flat unit";
  let description = [{
    PyTorch's order of operations (`torch.optim.SGD`, dampening 0): `g = grad * grad_scale + wd * param`;
    `b' = momentum * b + g`; `p' = param - lr * (nesterov ? g + momentum * b' : b')`. Without momentum there is no `buffer` and no
    `new_buffer`. `decay_elements`, `offset` and `apply` as for `adamw_update`.
  }];
  let arguments = (ins Train_FloatTensor:$param, Optional<Train_FloatTensor>:$buffer, Train_FloatTensor:$grad,
                       Train_FloatScalar:$lr, Optional<Train_FloatScalar>:$grad_scale, Optional<Train_IntScalar>:$offset,
                       Optional<Train_BoolScalar>:$apply,
                       F64Attr:$momentum, F64Attr:$weight_decay, I64Attr:$decay_elements, UnitAttr:$nesterov);
  let results = (outs Train_FloatTensor:$new_param, Optional<Train_FloatTensor>:$new_buffer);
  let assemblyFormat = [{
    $param `,` $grad (`buffer` `(` $buffer^ `)`)? `lr` `(` $lr `)` (`scale` `(` $grad_scale^ `)`)?
    (`offset` `(` $offset^ `)`)? (`apply` `(` $apply^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // TESSERA_TRAIN_OPS_STATE
