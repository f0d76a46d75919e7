//===- TrainBase.td - the train dialect, its types and op classes ---------===//
//
// What every op definition of the dialect includes: the dialect, the tensor
// types and the base classes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRAIN_BASE
#define TESSERA_TRAIN_BASE

include "compiler/interfaces/IndexMapping.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::tessera::train";
  let summary = "Training steps on ranked tensors of static shape";
  let description = [{
    The `train` dialect holds a whole training step: forward, loss, backward, clipping and optimizer, as one function on
    ranked tensors of static shape. Where an op shares its name with a StableHLO op it shares its meaning. Broadcasts and
    casts are explicit ops; there is no implicit promotion.

    A function argument carries `train.role`:

    | role | meaning |
    |---|---|
    | `"param"` | trainable parameter; `train.name` is its name |
    | `"frozen"` | a parameter that takes no gradient (also buffers that stay as they are); `train.name` |
    | `"buffer"` | what the model's own code changes in each forward pass, running statistics for instance; `train.name`. Its next value is a result from the import on |
    | `"state"` | optimizer state; `train.name`, `train.of` = name of its parameter, and `train.state` = what it is to the optimizer, or `"average"` of the parameter |
    | `"derived"` | the parameter `train.of` (f32) in bf16, made by the host when it sets the parameter and renewed by the step; `train.name` |
    | `"input"`, `"target"` | one batch of data; `train.name`, and `train.dims` = what each of its dimensions counts |
    | `"hyper"` | a scalar that the host sets before each step; `train.name` is `lr`, `bias_correction1` and `bias_correction2` (1 - b^update, with `train.beta` = b), `update_always` or `seed` |

    and a result carries `train.role` = `"loss"`, `"metric"`, `"updated"` (1 if the step changed parameters and states, 0 if
    it left them as they were), `"output"`, `"evaluated"` (a number that only evaluation computes) or `"grad"` (with
    `train.of`), or `train.alias = <argument number>`: the result
    is the argument's next value and is written in its place.
  }];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
}

// --- Types -------------------------------------------------------------------

def Train_Float : AnyTypeOf<[F8E4M3FN, F8E5M2, F8E8M0FNU, BF16, F16, F32, F64], "floating point">;
def Train_Int : AnyTypeOf<[I8, I16, I32, I64, UI8], "integer">;
def Train_Bool : TypeAlias<I1, "boolean">;
def Train_Element : AnyTypeOf<[Train_Float, Train_Int, I1], "tensor element">;

class Train_TensorOf<Type element, string what>
    : Type<And<[RankedTensorOf<[element]>.predicate, HasStaticShapePred]>, "statically shaped tensor of " # what,
           "::mlir::RankedTensorType">;
class Train_ScalarOf<Type element, string what>
    : Type<And<[Train_TensorOf<element, what>.predicate,
                CPred<"::llvm::cast<::mlir::ShapedType>($_self).getRank() == 0">]>,
           "rank-0 tensor of " # what, "::mlir::RankedTensorType">;

def Train_Tensor : Train_TensorOf<Train_Element, "floating point, integer or boolean">;
def Train_FloatTensor : Train_TensorOf<Train_Float, "floating point">;
def Train_NumericTensor : Train_TensorOf<AnyTypeOf<[Train_Float, Train_Int]>, "floating point or integer">;
def Train_IntTensor : Train_TensorOf<Train_Int, "integer">;
def Train_BoolTensor : Train_TensorOf<I1, "boolean">;
def Train_FloatScalar : Train_ScalarOf<Train_Float, "floating point">;
def Train_IntScalar : Train_ScalarOf<Train_Int, "integer">;
def Train_BoolScalar : Train_ScalarOf<I1, "boolean">;

// --- Op classes --------------------------------------------------------------

class Train_Op<string mnemonic, list<Trait> traits = []> : Op<Train_Dialect, mnemonic, !listconcat(traits, [Pure])>;

/// Elementwise, one operand, same type in and out.
class Train_UnaryOp<string mnemonic, Type type, list<Trait> traits = []>
    : Train_Op<mnemonic, !listconcat(traits, [Elementwise, SameOperandsAndResultType])> {
  let arguments = (ins type:$operand);
  let results = (outs type:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

/// Elementwise, two operands of one type, same type out.
class Train_BinaryOp<string mnemonic, Type type, list<Trait> traits = []>
    : Train_Op<mnemonic, !listconcat(traits, [Elementwise, SameOperandsAndResultType])> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

#endif // TESSERA_TRAIN_BASE
