//===- ExecOps.td - what the runtime executes -----------------------------===//

#ifndef TESSERA_EXEC_OPS
#define TESSERA_EXEC_OPS

include "compiler/dialect/exec/ExecInstructions.td"
include "compiler/dialect/train/TrainBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Exec_YieldOp : Exec_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["FusionOp", "RepeatOp"]>]> {
  let summary = "Ends the body of a fusion or a repetition";
  let arguments = (ins Variadic<Train_Tensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let builders = [OpBuilder<(ins), [{ /* nothing to yield */ }]>];
}

def Exec_FusionOp : Exec_Op<"fusion", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A group of train ops that becomes one generated kernel";
  let description = [{
    The body holds `train` ops on its block arguments and yields the results. `kind` says how the kernel is made:

    | kind | outer extent | meaning |
    |---|---|---|
    | `elementwise` | elements | every result has the same number of elements, each computed alone |
    | `row` | rows | reductions over trailing dimensions, and what is computed per row before and after them |
    | `column` | columns | sums over leading dimensions |
    | `reduce_all` | chunks | sums of everything to scalars; the first of two launches, see below |
    | `scatter` | columns | rows added into a table in a fixed order |
    | `rows_columns` | chunks of rows | on GPUs: what `row` does, and the sums of the columns of each chunk |

    Operands and results are contiguous row-major buffers; the kernel's buffers are the operands, then the results. A
    launch runs it over the outer indices [0, `extent`), split over threads at multiples of `grain`. `inplace` holds for
    each result the number of the operand whose buffer it may share, or -1. After outlining, `kernel` names the code.
  }];
  let arguments = (ins Variadic<Train_Tensor>:$operands, StrAttr:$kind, OptionalAttr<FlatSymbolRefAttr>:$kernel,
                       OptionalAttr<I64Attr>:$extent, OptionalAttr<I64Attr>:$grain,
                       OptionalAttr<DenseI64ArrayAttr>:$inplace);
  let results = (outs Variadic<Train_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kind ($kernel^)? `(` $operands `)` attr-dict `:` functional-type($operands, $results) $body";
  let hasVerifier = 1;
}

def Exec_RepeatOp : Exec_Op<"repeat", [AttrSizedOperandSegments, SingleBlockImplicitTerminator<"YieldOp">,
                                       RecursiveMemoryEffects]> {
  let summary = "Runs its body `count` times, carrying values from one iteration to the next";
  let description = [{
    The body's arguments are the iteration number (tensor<i64>), then for each `batch` operand its slice `i` (the operand
    has a leading dimension of size `count`), then the carried values, which start as `init` and become what the body
    yields. The results are the last values. The body may use values defined above it.

    ```mlir
    %sum = exec.repeat count = 4 batch(%tokens) init(%zero) : (tensor<4x8xi32>, tensor<f32>) -> tensor<f32> {
    ^bb0(%i: tensor<i64>, %micro: tensor<8xi32>, %acc: tensor<f32>):
      …
      exec.yield %next : tensor<f32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$count, Variadic<Train_Tensor>:$batch, Variadic<Train_Tensor>:$init);
  let results = (outs Variadic<Train_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `count` `=` $count (`batch` `(` $batch^ `)`)? (`init` `(` $init^ `)`)? attr-dict `:`
    functional-type(operands, results) $body
  }];
  let hasVerifier = 1;
}

def Exec_AddProductOp : Exec_Op<"add_product", [Pure, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "`accumulator + dot_general(lhs, rhs)`, written by the product itself";
  let description = [{
    The dimensions are those of `train.dot_general`. The accumulator is read only by this op where memory planning can
    give the result its place; the instruction is then one product with `beta` = 1. Made by `accumulate-products`.
  }];
  let arguments = (ins Train_NumericTensor:$accumulator, Train_NumericTensor:$lhs, Train_NumericTensor:$rhs,
                       DenseI64ArrayAttr:$lhs_batch, DenseI64ArrayAttr:$rhs_batch, DenseI64ArrayAttr:$lhs_contract,
                       DenseI64ArrayAttr:$rhs_contract);
  let results = (outs Train_NumericTensor:$result);
  let assemblyFormat = "$accumulator `,` $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Exec_EpilogueProductOp : Exec_Op<"epilogue_product", [Pure, AttrSizedOperandSegments]> {
  let summary = "A product that also adds a bias, applies GELU or its gradient, or sums a bias gradient";
  let description = [{
    The dimensions are those of `train.dot_general`, without a batch. With `p` the product in f32, rows being the free
    dimensions of `lhs` and columns those of `rhs`:

    | epilogue | input | result | output |
    |---|---|---|---|
    | `bias` | bias, per column | `p + bias` | |
    | `gelu`, `gelu_bias` | none, bias | `gelu(p)`, `gelu(p + bias)` | |
    | `gelu_aux`, `gelu_aux_bias` | none, bias | the same | pre-activation `p`, `p + bias` |
    | `gelu_grad` | pre-activation `z` | `p * gelu'(z)` | |
    | `gelu_grad_bias_grad` | pre-activation `z` | `p * gelu'(z)` | its sum over rows |
    | `bias_grad_a` | | `p` | sum of `lhs` over what is contracted, per row |
    | `bias_grad_b` | | `p` | sum of `rhs` over what is contracted, per column |

    GELU is its tanh approximation, `0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))`. Values are rounded once, when they are
    written. Input and output have the result's element type. `plus`: a sum that the product adds to, as `add_product`;
    for `bias_grad_a` and `bias_grad_b` alone, and the bias gradient is not added to anything. Made by `fuse-epilogues`.

    ```mlir
    %y, %z = exec.epilogue_product gelu_aux_bias %x, %w with %b {lhs_contract = array<i64: 1>, …}
        : (tensor<8x64xbf16>, tensor<64x256xbf16>, tensor<256xbf16>) -> (tensor<8x256xbf16>, tensor<8x256xbf16>)
    ```
  }];
  let arguments = (ins Exec_EpilogueAttr:$epilogue, Train_FloatTensor:$lhs, Train_FloatTensor:$rhs,
                       Optional<Train_FloatTensor>:$accumulator, Optional<Train_FloatTensor>:$input,
                       DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract);
  let results = (outs Train_FloatTensor:$result, Optional<Train_FloatTensor>:$output);
  let assemblyFormat = [{
    $epilogue $lhs `,` $rhs (`plus` $accumulator^)? (`with` $input^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Exec_ScaledProductOp : Exec_Op<"scaled_product", [Pure]> {
  let summary = "A product of 8-bit floats with scales as a library takes them";
  let description = [{
    `plus + (lhs * lhs_scales) (rhs * rhs_scales)ᵀ` of `lhs [m, k]` and `rhs [n, k]`, added in f32: what is contracted is
    innermost in both. A mode says which elements of an operand share a scale, and how its scales, the factors that its
    elements are multiplied by, lie in memory. With `r` rows (`m` or `n`):

    | mode | share a scale | scales |
    |---|---|---|
    | `tensor` | all | `f32 []` |
    | `row` | a row | `f32 [r]` |
    | `block128` | 128 of a row | `f32 [k / 128, r]`, `r` a multiple of 4 |
    | `block128x128` | 128 x 128 | `f32 [r / 128, k / 128 up to a multiple of 4]`, the rest is padding |
    | `block32` | 32 of a row | `f8E8M0FNU [r / 128, k / 128, 32, 4, 4]`, both rounded up: that of row `i` of a tile of 128 rows and block `j` of 4 is at `[…, i % 32, i / 32, j]`, the rest is padding |

    These are the layouts of cuBLASLt (NVIDIA cuBLAS documentation, 3.1.4, "Narrow precision data types usage"), which reads
    a scale that lies elsewhere without a word. `m`, `n` and `k` are multiples of 16. With `fast_accumulation` sums may
    keep fewer digits, where the hardware has that. Made by `scaled-products`.

    ```mlir
    %y = exec.scaled_product %x by %sx block128, %w by %sw block128x128
        : (tensor<64x256xf8E4M3FN>, tensor<2x64xf32>, tensor<128x256xf8E4M3FN>, tensor<1x4xf32>) -> tensor<64x128xbf16>
    ```
  }];
  let arguments = (ins Train_FloatTensor:$lhs, Train_FloatTensor:$lhs_scales, Exec_ScaleModeAttr:$lhs_mode,
                       Train_FloatTensor:$rhs, Train_FloatTensor:$rhs_scales, Exec_ScaleModeAttr:$rhs_mode,
                       Optional<Train_FloatTensor>:$accumulator, UnitAttr:$fast_accumulation);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `by` $lhs_scales $lhs_mode `,` $rhs `by` $rhs_scales $rhs_mode (`plus` $accumulator^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // TESSERA_EXEC_OPS
