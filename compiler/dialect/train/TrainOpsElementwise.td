//===- TrainOpsElementwise.td - leaf and elementwise ops ------------------===//

#ifndef TESSERA_TRAIN_OPS_ELEMENTWISE
#define TESSERA_TRAIN_OPS_ELEMENTWISE

include "compiler/dialect/train/TrainAttrs.td"

// --- Leaf --------------------------------------------------------------------

def Train_ConstantOp : Train_Op<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A tensor known at compile time";
  let description = [{
    Holds small tensors: scalars, splats, shape arithmetic, tables. Weights are function arguments, never constants.

    ```mlir
    %half = train.constant dense<5.0e-01> : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Train_IotaOp : Train_Op<"iota"> {
  let summary = "Counts 0, 1, 2, … along one dimension";
  let description = [{
    `result[i0, …, in] = i_dim`, plus `offset` if that operand is given (sharding sets it to the global index of the local
    tensor's first element along `dim`).
  }];
  let arguments = (ins Optional<Train_IntScalar>:$offset, I64Attr:$dim);
  let results = (outs Train_NumericTensor:$result);
  let assemblyFormat = "(`offset` `(` $offset^ `:` type($offset) `)`)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Train_RngUniformOp : Train_Op<"rng_uniform"> {
  let summary = "Uniform random numbers in [0, 1), a pure function of (seed, stream, global index)";
  let description = [{
    Counter-based (Philox 4x32-10, Salmon et al., SC'11): element `i` (row-major index in the *global* tensor) is made from
    key `seed` and counter `(i, stream)`: the top 24 bits of the counter's first output word, divided by 2^24. The same op
    therefore gives the same numbers in forward and backward and on every mesh. After sharding, `offsets` holds the global
    index of the local tensor's first element, one i64 per dimension, and `global_shape` the global shape.
  }];
  let arguments = (ins Train_IntScalar:$seed, Variadic<Train_IntScalar>:$offsets, I64Attr:$stream,
                       OptionalAttr<DenseI64ArrayAttr>:$global_shape);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$seed (`offsets` `(` $offsets^ `)`)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

// --- Unary -------------------------------------------------------------------

def Train_ConvertOp : Train_Op<"convert", [Elementwise, SameOperandsAndResultShape]> {
  let summary = "Converts the element type";
  let description = [{
    Float to float rounds to nearest even; float to integer truncates toward zero; any to i1 is `x != 0`.
  }];
  let arguments = (ins Train_Tensor:$operand);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $result)";
  let hasFolder = 1;
}

def Train_NegOp : Train_UnaryOp<"neg", Train_NumericTensor> { let summary = "Elementwise `-x`"; let hasFolder = 1; }
def Train_AbsOp : Train_UnaryOp<"abs", Train_NumericTensor> {
  let summary = "Elementwise `|x|`; its gradient at 0 is 0";
}
def Train_ExpOp : Train_UnaryOp<"exp", Train_FloatTensor> { let summary = "Elementwise `e^x`"; }
def Train_LogOp : Train_UnaryOp<"log", Train_FloatTensor> { let summary = "Elementwise natural logarithm"; }
def Train_SqrtOp : Train_UnaryOp<"sqrt", Train_FloatTensor> { let summary = "Elementwise square root"; }
def Train_RsqrtOp : Train_UnaryOp<"rsqrt", Train_FloatTensor> { let summary = "Elementwise `1/sqrt(x)`"; }
def Train_TanhOp : Train_UnaryOp<"tanh", Train_FloatTensor> { let summary = "Elementwise hyperbolic tangent"; }
def Train_ErfOp : Train_UnaryOp<"erf", Train_FloatTensor> { let summary = "Elementwise error function"; }
def Train_SinOp : Train_UnaryOp<"sin", Train_FloatTensor> { let summary = "Elementwise sine, in radians"; }
def Train_CosOp : Train_UnaryOp<"cos", Train_FloatTensor> { let summary = "Elementwise cosine, in radians"; }
def Train_Expm1Op : Train_UnaryOp<"expm1", Train_FloatTensor> {
  let summary = "Elementwise `e^x - 1`, exact to rounding near 0";
}
def Train_Log1pOp : Train_UnaryOp<"log1p", Train_FloatTensor> {
  let summary = "Elementwise `log(1 + x)`, exact to rounding near 0";
}
def Train_SigmoidOp : Train_UnaryOp<"sigmoid", Train_FloatTensor> {
  let summary = "Elementwise `1 / (1 + e^-x)`, without cancellation where x is negative";
}
def Train_SoftplusOp : Train_UnaryOp<"softplus", Train_FloatTensor> {
  let summary = "Elementwise `log(1 + e^x)`, without overflow; its gradient is `sigmoid(x)`";
}
def Train_GeluOp : Train_Op<"gelu", [Elementwise, SameOperandsAndResultType]> {
  let summary = "Elementwise Gaussian error linear unit, exact or in its tanh approximation";
  let description = [{
    | form | value |
    |---|---|
    | `exact` | `0.5 x (1 + erf(x / sqrt(2)))` |
    | `tanh` | `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))` |

    The forms differ by up to 5e-4 and are never exchanged. Narrow types are computed in f32 and rounded once.

    ```mlir
    %y = train.gelu tanh, %x : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Train_GeluFormAttr:$form, Train_FloatTensor:$operand);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$form `,` $operand attr-dict `:` type($result)";
}
def Train_GeluGradOp : Train_Op<"gelu_grad", [Elementwise, SameOperandsAndResultType]> {
  let summary = "The gradient of `gelu`: `grad` times the derivative of the form at `operand`";
  let description = [{
    Linear in `grad`. Only the backward pass has it; it has no gradient rule of its own.

    ```mlir
    %dx = train.gelu_grad tanh, %dy, %x : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Train_GeluFormAttr:$form, Train_FloatTensor:$grad, Train_FloatTensor:$operand);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$form `,` $grad `,` $operand attr-dict `:` type($result)";
}
def Train_AtanOp : Train_UnaryOp<"atan", Train_FloatTensor> { let summary = "Elementwise arc tangent, in radians"; }
def Train_AsinOp : Train_UnaryOp<"asin", Train_FloatTensor> { let summary = "Elementwise arc sine, in radians"; }
def Train_AcosOp : Train_UnaryOp<"acos", Train_FloatTensor> { let summary = "Elementwise arc cosine, in radians"; }
def Train_RoundOp : Train_UnaryOp<"round", Train_FloatTensor> {
  let summary = "Elementwise nearest integer, halves to even; its gradient is 0";
}
def Train_FloorOp : Train_UnaryOp<"floor", Train_FloatTensor> {
  let summary = "Elementwise largest integer not above x; its gradient is 0";
}

// --- Binary ------------------------------------------------------------------

def Train_AddOp : Train_BinaryOp<"add", Train_NumericTensor, [Commutative]> {
  let summary = "Elementwise `a + b`"; let hasFolder = 1; let hasCanonicalizer = 1;
}
def Train_SubOp : Train_BinaryOp<"sub", Train_NumericTensor> { let summary = "Elementwise `a - b`"; let hasFolder = 1; }
def Train_MulOp : Train_BinaryOp<"mul", Train_Tensor, [Commutative]> {
  let summary = "Elementwise `a * b`; logical and on booleans"; let hasFolder = 1;
}
def Train_DivOp : Train_BinaryOp<"div", Train_NumericTensor> {
  let summary = "Elementwise `a / b`; on integers truncates toward zero"; let hasFolder = 1;
}
def Train_MaxOp : Train_BinaryOp<"max", Train_Tensor, [Commutative]> {
  let summary = "Elementwise maximum; logical or on booleans";
  let description = [{ NaN if either operand is NaN. At a tie each gets half of the gradient. }];
}
def Train_PowOp : Train_BinaryOp<"pow", Train_FloatTensor> {
  let summary = "Elementwise `a^b`"; let hasFolder = 1; let hasCanonicalizer = 1;
}

def Train_CompareOp : Train_Op<"compare", [Elementwise, SameTypeOperands, SameOperandsAndResultShape]> {
  let summary = "Elementwise comparison; false where an operand is NaN, except `ne`";
  let arguments = (ins Train_CompareDirectionAttr:$direction, Train_Tensor:$lhs, Train_Tensor:$rhs);
  let results = (outs Train_BoolTensor:$result);
  let assemblyFormat = "$direction `,` $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasFolder = 1;
}

def Train_SelectOp
    : Train_Op<"select", [Elementwise, SameOperandsAndResultShape, AllTypesMatch<["on_true", "on_false", "result"]>]> {
  let summary = "Elementwise `predicate ? on_true : on_false`";
  let arguments = (ins Train_BoolTensor:$predicate, Train_Tensor:$on_true, Train_Tensor:$on_false);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$predicate `,` $on_true `,` $on_false attr-dict `:` type($predicate) `,` type($result)";
  let hasFolder = 1;
}

#endif // TESSERA_TRAIN_OPS_ELEMENTWISE
