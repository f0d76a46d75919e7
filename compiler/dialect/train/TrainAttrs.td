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

def Train_TensorRole : Train_Enum<"TensorRole", "what a tensor of the model file is in the step", [
  I32EnumAttrCase<"Param", 0, "param">, I32EnumAttrCase<"Frozen", 1, "frozen">,
  I32EnumAttrCase<"Constant", 2, "constant">, I32EnumAttrCase<"Unused", 3, "unused">]>;

def Train_TensorInfoAttr : AttrDef<Train_Dialect, "TensorInfo"> {
  let mnemonic = "tensor";
  let summary = "A tensor of the model file: what it is in the step, and who decided so";
  let description = [{
    The module attribute `train.tensors` lists those of a model file in their order there:

    ```mlir
    module attributes {train.tensors = [#train.tensor<"fc.weight", tensor<4x8xf32>, param, "--parameters">]} {…}
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::RankedTensorType":$type,
                        EnumParameter<Train_TensorRole>:$role, "::mlir::StringAttr":$reason);
  let assemblyFormat = "`<` $name `,` $type `,` $role `,` $reason `>`";
}

#endif // TESSERA_TRAIN_ATTRS
