//===- TrainAttrs.td - enumerations and attributes of the train dialect ------------------===//

#ifndef TESSERA_TRAIN_ATTRS
#define TESSERA_TRAIN_ATTRS

include "compiler/dialect/train/TrainBase.td"

class Train_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tessera::train";
  let genSpecializedAttr = 0;
}
class Train_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<Train_Dialect, info, mnemonic>;

def Train_CompareDirection : Train_Enum<"CompareDirection", "how two elements are compared", [
  I32EnumAttrCase<"Eq", 0, "eq">, I32EnumAttrCase<"Ne", 1, "ne">, I32EnumAttrCase<"Lt", 2, "lt">,
  I32EnumAttrCase<"Le", 3, "le">, I32EnumAttrCase<"Gt", 4, "gt">, I32EnumAttrCase<"Ge", 5, "ge">]>;
def Train_CompareDirectionAttr : Train_EnumAttr<Train_CompareDirection, "direction">;

def Train_ReduceKind : Train_Enum<"ReduceKind", "what a reduction computes", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"Min", 2, "min">,
  I32EnumAttrCase<"Mul", 3, "mul">]>;
def Train_ReduceKindAttr : Train_EnumAttr<Train_ReduceKind, "reduction">;

def Train_NormMode : Train_Enum<"NormMode", "what a normalisation subtracts and divides by", [
  I32EnumAttrCase<"Layer", 0, "layer">, I32EnumAttrCase<"Rms", 1, "rms">]>;
def Train_NormModeAttr : Train_EnumAttr<Train_NormMode, "norm">;

def Train_GeluForm : Train_Enum<"GeluForm", "which function is called GELU", [
  I32EnumAttrCase<"Exact", 0, "exact">, I32EnumAttrCase<"Tanh", 1, "tanh">]>;
def Train_GeluFormAttr : Train_EnumAttr<Train_GeluForm, "gelu">;

def Train_AttentionSplit : Train_Enum<"AttentionSplit", "what travels where queries and keys are split along the sequence", [
  I32EnumAttrCase<"Gather", 0, "gather">, I32EnumAttrCase<"Ring", 1, "ring">]>;
def Train_AttentionSplitAttr : Train_EnumAttr<Train_AttentionSplit, "attention_split">;

def Train_ArgRole : Train_Enum<"ArgRole", "what an argument of a step function is (`train.role`, a string in the IR)", [
  I32EnumAttrCase<"Param", 0, "param">, I32EnumAttrCase<"Frozen", 1, "frozen">, I32EnumAttrCase<"State", 2, "state">,
  I32EnumAttrCase<"Derived", 3, "derived">, I32EnumAttrCase<"Input", 4, "input">,
  I32EnumAttrCase<"Target", 5, "target">, I32EnumAttrCase<"Hyper", 6, "hyper">,
  I32EnumAttrCase<"Buffer", 7, "buffer">]>;

def Train_ResultRole : Train_Enum<"ResultRole", "what a result of a step function is (`train.role`, a string in the IR)", [
  I32EnumAttrCase<"Loss", 0, "loss">, I32EnumAttrCase<"Metric", 1, "metric">, I32EnumAttrCase<"Updated", 2, "updated">,
  I32EnumAttrCase<"Output", 3, "output">, I32EnumAttrCase<"Grad", 4, "grad">,
  I32EnumAttrCase<"IndexCheck", 5, "index_check">, I32EnumAttrCase<"LossSum", 6, "loss_sum">,
  I32EnumAttrCase<"LossCount", 7, "loss_count">, I32EnumAttrCase<"Evaluated", 8, "evaluated">,
  I32EnumAttrCase<"MetricSum", 9, "metric_sum">, I32EnumAttrCase<"MetricCount", 10, "metric_count">]>;

def Train_OfBatch : Train_Enum<"OfBatch", "what a value of a batch is of those of its micro-batches (`train.loss_of_batch` and "
                              "`train.of_batch`, strings in the IR)", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Mean", 1, "mean">, I32EnumAttrCase<"Terms", 2, "terms">]>;

def Train_TensorRole : Train_Enum<"TensorRole", "what a tensor of the model file is in the step", [
  I32EnumAttrCase<"Param", 0, "param">, I32EnumAttrCase<"Frozen", 1, "frozen">,
  I32EnumAttrCase<"Constant", 2, "constant">, I32EnumAttrCase<"Unused", 3, "unused">,
  I32EnumAttrCase<"Buffer", 4, "buffer">]>;

def Train_ScaleRounding : Train_Enum<"ScaleRounding", "how the scale of a quantised value is rounded", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Down", 1, "down">, I32EnumAttrCase<"E8M0", 2, "e8m0">]>;
def Train_ScaleRoundingAttr : Train_EnumAttr<Train_ScaleRounding, "scale_rounding">;

def Train_Fp8Recipe : Train_Enum<"Fp8Recipe", "how products are computed in 8-bit floats; the table is in Fp8Policy.cpp", [
  I32EnumAttrCase<"Tensorwise", 0, "tensorwise">, I32EnumAttrCase<"Rowwise", 1, "rowwise">,
  I32EnumAttrCase<"RowwiseHp", 2, "rowwise_hp">, I32EnumAttrCase<"Block128", 3, "block128">,
  I32EnumAttrCase<"Mxfp8", 4, "mxfp8">]>;

def Train_ProductOperand : Train_Enum<"ProductOperand", "what a product reads", [
  I32EnumAttrCase<"Activation", 0, "activation">, I32EnumAttrCase<"Weight", 1, "weight">,
  I32EnumAttrCase<"Gradient", 2, "gradient">]>;

def Train_ScalingAttr : AttrDef<Train_Dialect, "Scaling"> {
  let mnemonic = "scaling";
  let summary = "A product that is to be computed in 8-bit floats, and what its operands are";
  let description = [{
    What the operands are says which product it is: `activation` and `weight` give the output, `gradient` (of the output)
    and `weight` the gradient of the input, `gradient` and `activation` that of the weight. The products of a product's
    gradients have the attribute of their own kind. `cast-fp8` reads it:

    ```mlir
    train.dot_general %x, %w {scaling = #train.scaling<rowwise, activation, weight>, …}
    ```
  }];
  let parameters = (ins EnumParameter<Train_Fp8Recipe>:$recipe, EnumParameter<Train_ProductOperand>:$lhs,
                        EnumParameter<Train_ProductOperand>:$rhs);
  let assemblyFormat = "`<` $recipe `,` $lhs `,` $rhs `>`";
}

def Train_TensorInfoAttr : AttrDef<Train_Dialect, "TensorInfo"> {
  let mnemonic = "tensor";
  let summary = "A tensor of the model file: what it is in the step, and who decided so";
  let description = [{
    The module attribute `train.tensors` lists those of a model file in their order there, and behind them those that
    `add-adapters` has added:

    ```mlir
    module attributes {train.tensors = [#train.tensor<"fc.weight", tensor<4x8xf32>, param, "--parameters">]} {…}
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::RankedTensorType":$type,
                        EnumParameter<Train_TensorRole>:$role, "::mlir::StringAttr":$reason);
  let assemblyFormat = "`<` $name `,` $type `,` $role `,` $reason `>`";
}

def Train_AdapterAttr : AttrDef<Train_Dialect, "Adapter"> {
  let mnemonic = "adapter";
  let summary = "Two parameters whose product is added to a frozen matrix";
  let description = [{
    The matrix `parameter` counts as `parameter + scale * (b a)`, with `a` of shape [rank, inputs] and `b` of [outputs, rank]
    (Hu et al. 2021, LoRA). `inputs` is dimension `input_dim` of the matrix: 1 in PyTorch's `Linear`, 0 in Hugging Face's
    `Conv1D`, whose matrix takes (b a) transposed. The module attribute `train.adapters` lists all of them, for those that
    save or merge them:

    ```mlir
    module attributes {train.adapters =
        [#train.adapter<"fc.weight", a = "fc.lora_A.weight", b = "fc.lora_B.weight", rank = 8, input_dim = 1, scale = 2.0>]} {…}
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$parameter, "::mlir::StringAttr":$a, "::mlir::StringAttr":$b,
                        "int64_t":$rank, "int64_t":$inputDim, "::mlir::FloatAttr":$scale);
  let assemblyFormat = [{
    `<` $parameter `,` `a` `=` $a `,` `b` `=` $b `,` `rank` `=` $rank `,` `input_dim` `=` $inputDim `,` `scale` `=` $scale `>`
  }];
}

def Train_WeightPieceAttr : AttrDef<Train_Dialect, "WeightPiece"> {
  let mnemonic = "piece";
  let summary = "Elements of a parameter that are elements of a tensor of Hugging Face's files";
  let description = [{
    Nested loops of `sizes` visit the elements of both: of the parameter from `offset` on in steps of `strides`, of the
    tensor, whose shape is `shape`, from `tensor_offset` on in steps of `tensor_strides`; all in elements of row-major
    order.
  }];
  let parameters = (ins "::mlir::StringAttr":$tensor, "::mlir::DenseI64ArrayAttr":$shape,
                        ArrayRefParameter<"int64_t">:$sizes, "int64_t":$offset, ArrayRefParameter<"int64_t">:$strides,
                        "int64_t":$tensorOffset, ArrayRefParameter<"int64_t">:$tensorStrides);
  let assemblyFormat = [{
    `<` $tensor `,` `shape` `=` $shape `,` `sizes` `=` `[` $sizes `]` `,` `offset` `=` $offset `,`
    `strides` `=` `[` $strides `]` `,` `tensor_offset` `=` $tensorOffset `,` `tensor_strides` `=` `[` $tensorStrides `]` `>`
  }];
  let genVerifyDecl = 1;
}

def Train_StoredParameterAttr : AttrDef<Train_Dialect, "StoredParameter"> {
  let mnemonic = "stored";
  let summary = "A parameter that files of Hugging Face do not have as the tensor of its name";
  let description = [{
    `pieces` are #train.piece; none: files have it under its own name. `others` are names that they may have it under
    instead, as a whole.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::ArrayAttr":$pieces, "::mlir::ArrayAttr":$others);
  let assemblyFormat = "`<` $name `,` `pieces` `=` $pieces `,` `others` `=` $others `>`";
  let genVerifyDecl = 1;
}

def Train_WeightMapAttr : AttrDef<Train_Dialect, "WeightMap"> {
  let mnemonic = "weight_map";
  let summary = "Which tensors of Hugging Face's files the parameters of a program are";
  let description = [{
    Names of the program's parameters begin with `root`, which those of files do not. Files may have all names with
    `prefix`, or without it. `parameters` are #train.stored, those that are not the tensor of their name; `unread` are
    tensors that the model does not take. `refused` says why there is no map. The module attribute `train.weight_map`:

    ```mlir
    module attributes {train.weight_map = #train.weight_map<root = "model", prefix = "transformer", parameters =
        [#train.stored<"model.lm_head.weight", pieces = [#train.piece<"transformer.wte.weight", shape = [64, 8],
          sizes = [512], offset = 0, strides = [1], tensor_offset = 0, tensor_strides = [1]>], others = ["lm_head.weight"]>],
        unread = [], refused = "">} {…}
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$root, "::mlir::StringAttr":$prefix, "::mlir::ArrayAttr":$parameters,
                        "::mlir::ArrayAttr":$unread, "::mlir::StringAttr":$refused);
  let assemblyFormat = [{
    `<` `root` `=` $root `,` `prefix` `=` $prefix `,` `parameters` `=` $parameters `,` `unread` `=` $unread `,`
    `refused` `=` $refused `>`
  }];
  let genVerifyDecl = 1;
}

#endif // TESSERA_TRAIN_ATTRS
