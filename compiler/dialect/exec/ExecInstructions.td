//===- ExecInstructions.td - planned memory and the runtime's instructions ===//
//
// One op per table of runtime/artifact/artifact.fbs. A program is the form of a step after lowering: arenas, slots
// (planned allocations), buffers (strided views of slots) and, in order, the instructions on them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_INSTRUCTIONS
#define TESSERA_EXEC_INSTRUCTIONS

include "compiler/dialect/exec/ExecBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Exec_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tessera::exec";
  let genSpecializedAttr = 0;
}
class Exec_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<Exec_Dialect, info, mnemonic>;

def Exec_ArenaKind : Exec_Enum<"ArenaKind", "what an arena is for", [
  I32EnumAttrCase<"State", 0, "state">, I32EnumAttrCase<"Activations", 1, "activations">,
  I32EnumAttrCase<"Host", 2, "host">]>;
def Exec_ArenaKindAttr : Exec_EnumAttr<Exec_ArenaKind, "arena_kind">;

def Exec_MemoryClass : Exec_Enum<"MemoryClass", "what a slot holds, for reports", [
  I32EnumAttrCase<"Parameters", 0, "parameters">, I32EnumAttrCase<"Gradients", 1, "gradients">,
  I32EnumAttrCase<"Optimizer", 2, "optimizer">, I32EnumAttrCase<"Activations", 3, "activations">,
  I32EnumAttrCase<"Communication", 4, "communication">, I32EnumAttrCase<"Workspace", 5, "workspace">,
  I32EnumAttrCase<"Inputs", 6, "inputs">]>;
def Exec_MemoryClassAttr : Exec_EnumAttr<Exec_MemoryClass, "memory_class">;

def Exec_ConvKind : Exec_Enum<"ConvKind", "which of a convolution's tensors is computed", [
  I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"InputGrad", 1, "input_grad">,
  I32EnumAttrCase<"FilterGrad", 2, "filter_grad">]>;
def Exec_ConvKindAttr : Exec_EnumAttr<Exec_ConvKind, "conv_kind">;

def Exec_Epilogue : Exec_Enum<"Epilogue", "what a product does to its result besides", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Bias", 1, "bias">, I32EnumAttrCase<"Gelu", 2, "gelu">,
  I32EnumAttrCase<"GeluAux", 3, "gelu_aux">, I32EnumAttrCase<"GeluBias", 4, "gelu_bias">,
  I32EnumAttrCase<"GeluAuxBias", 5, "gelu_aux_bias">, I32EnumAttrCase<"GeluGrad", 6, "gelu_grad">,
  I32EnumAttrCase<"GeluGradBiasGrad", 7, "gelu_grad_bias_grad">, I32EnumAttrCase<"BiasGradA", 8, "bias_grad_a">,
  I32EnumAttrCase<"BiasGradB", 9, "bias_grad_b">]>;
def Exec_EpilogueAttr : Exec_EnumAttr<Exec_Epilogue, "epilogue">;

def Exec_ScaleMode : Exec_Enum<"ScaleMode", "which elements of an operand in 8 bits share a scale, and how scales lie", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Tensor", 1, "tensor">, I32EnumAttrCase<"Row", 2, "row">,
  I32EnumAttrCase<"Block128", 3, "block128">, I32EnumAttrCase<"Block128x128", 4, "block128x128">,
  I32EnumAttrCase<"Block32", 5, "block32">]>;
def Exec_ScaleModeAttr : Exec_EnumAttr<Exec_ScaleMode, "scale_mode">;

def Exec_CollectiveKind : Exec_Enum<"CollectiveKind", "what a group of ranks does together", [
  I32EnumAttrCase<"AllGather", 0, "all_gather">, I32EnumAttrCase<"ReduceScatter", 1, "reduce_scatter">,
  I32EnumAttrCase<"AllReduce", 2, "all_reduce">, I32EnumAttrCase<"AllToAll", 3, "all_to_all">,
  I32EnumAttrCase<"Permute", 4, "permute">]>;
def Exec_CollectiveKindAttr : Exec_EnumAttr<Exec_CollectiveKind, "collective_kind">;

def Exec_ReductionKind : Exec_Enum<"ReductionKind", "what a collective makes of the values of its ranks", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"Min", 2, "min">]>;
def Exec_ReductionKindAttr : Exec_EnumAttr<Exec_ReductionKind, "reduction_kind">;

def Exec_Slot : MemRefRankOf<[I8], [1]>;
def Exec_Buffer : StaticShapeMemRefOf<[AnyType]>;

// --- Program and memory ------------------------------------------------------

def Exec_ProgramOp : Exec_Op<"program", [IsolatedFromAbove, NoTerminator, NoRegionArguments, SingleBlock, SymbolTable,
                                         Symbol]> {
  let summary = "A training step as the runtime executes it";
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def Exec_ArenaOp : Exec_Op<"arena", [HasParent<"ProgramOp">, Symbol]> {
  let summary = "One allocation that the runtime makes at start; `bytes` is set by memory planning";
  let arguments = (ins SymbolNameAttr:$sym_name, Exec_ArenaKindAttr:$kind, DefaultValuedAttr<I64Attr, "0">:$bytes);
  let assemblyFormat = "$sym_name $kind `bytes` $bytes attr-dict";
}

def Exec_SlotOp : Exec_Op<"slot", [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A planned allocation in an arena";
  let description = [{
    Memory planning sets `offset`, in bytes, and `live`: the first and the last instruction of the flattened list at which
    the slot is in use.
  }];
  let arguments = (ins StrAttr:$name, FlatSymbolRefAttr:$arena, Exec_MemoryClassAttr:$memory_class,
                       OptionalAttr<I64Attr>:$offset, OptionalAttr<DenseI64ArrayAttr>:$live);
  let results = (outs Exec_Slot:$result);
  let assemblyFormat = "$name `in` $arena $memory_class (`at` $offset^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getBytes() { return getType().getDimSize(0); }
  }];
}

def Exec_BufferOp : Exec_Op<"buffer", [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A strided view of a slot";
  let description = [{
    `offset` is that of the element at index 0, in bytes. In iteration `i` of the enclosing loop, on the rank at position
    `r` of its group over `rank_axes`, the view begins `i * iteration_stride + r * rank_stride` bytes further on.
  }];
  let arguments = (ins Exec_Slot:$slot, I64Attr:$offset, DefaultValuedAttr<I64Attr, "0">:$iteration_stride,
                       DefaultValuedAttr<I64Attr, "0">:$rank_stride, OptionalAttr<StrArrayAttr>:$rank_axes);
  let results = (outs Exec_Buffer:$result);
  let assemblyFormat = "$slot `+` $offset attr-dict `:` type($slot) `to` type($result)";
  let hasVerifier = 1;
}

// --- Interface of the step ---------------------------------------------------

def Exec_ArgumentOp : Exec_Op<"argument", [HasParent<"ProgramOp">]> {
  let summary = "An argument of the step; its attributes are those of the function's argument";
  let description = [{
    `type` is the argument's local type, `dist.global` (if there) its global type, `train.dims` (of an input or
    target) what its dimensions count.
  }];
  let hasVerifier = 1;
  let arguments = (ins Exec_Buffer:$buffer);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer)";
}
def Exec_ResultOp : Exec_Op<"result", [HasParent<"ProgramOp">]> {
  let summary = "A result of the step that is not an argument's next value; attributes as the function's result";
  let hasVerifier = 1;
  let arguments = (ins Exec_Buffer:$buffer);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer)";
}
def Exec_ProbeOp : Exec_Op<"probe", [HasParent<"ProgramOp">]> {
  let summary = "Here the buffer holds the gradient of the parameter `unit`";
  let arguments = (ins Exec_Buffer:$buffer, StrAttr:$unit);
  let assemblyFormat = "$buffer `of` $unit attr-dict `:` type($buffer)";
}

// --- Instructions ------------------------------------------------------------

def Exec_Stream : ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<15>]>;

/// Runs on a stream: 0 compute, 1 gather, 2 reduce, 3 copies, and those of further axes (exec::collectiveStream).
class Exec_Instruction<string mnemonic, dag args, list<Trait> traits = []>
    : Exec_Op<mnemonic, !listconcat(traits, [ParentOneOf<["ProgramOp", "LoopOp"]>])> {
  let arguments = !con(args, (ins DefaultValuedAttr<Exec_Stream, "0">:$stream));
}

def Exec_LaunchOp : Exec_Instruction<"launch", (ins FlatSymbolRefAttr:$kernel, Variadic<Exec_Buffer>:$inputs,
    Variadic<Exec_Buffer>:$outputs, I64Attr:$extent, DefaultValuedAttr<I64Attr, "1">:$grain), [AttrSizedOperandSegments]> {
  let summary = "Runs a generated kernel over [0, extent), split over threads in multiples of `grain`";
  let description = [{ The kernel's buffers are the inputs, then the outputs. All are contiguous. }];
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `->` `(` $outputs `)` `extent` $extent `grain` $grain attr-dict
    `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
}

def Exec_GemmOp : Exec_Instruction<"gemm", (ins Exec_Buffer:$a, Exec_Buffer:$b, Exec_Buffer:$c,
    Optional<Exec_Buffer>:$epilogue_input, Optional<Exec_Buffer>:$epilogue_output,
    Optional<Exec_Buffer>:$a_scales, Optional<Exec_Buffer>:$b_scales,
    DefaultValuedAttr<F32Attr, "1.0f">:$alpha, DefaultValuedAttr<F32Attr, "0.0f">:$beta,
    DefaultValuedAttr<Exec_EpilogueAttr, "::tessera::exec::Epilogue::None">:$epilogue,
    DefaultValuedAttr<Exec_ScaleModeAttr, "::tessera::exec::ScaleMode::None">:$a_scale_mode,
    DefaultValuedAttr<Exec_ScaleModeAttr, "::tessera::exec::ScaleMode::None">:$b_scale_mode,
    UnitAttr:$fast_accumulation), [AttrSizedOperandSegments]> {
  let summary = "`c = alpha * a @ b + beta * c` over `[batch…, m, k]` and `[batch…, k, n]`";
  let description = [{
    One of the two innermost strides of `a` and of `b` is 1, and the innermost of `c`; dimensions of size 1 do not count.

    An epilogue is that of `exec.epilogue_product`. Then there is no batch, the epilogue's input and output are contiguous
    and of the type of `c`: a pre-activation `[m, n]`, a bias or its gradient `[n]` (`bias_grad_a`: `[m]`). `c` is contiguous
    and `beta` 0, but for `bias_grad_a` and `bias_grad_b`.

    Operands of 8-bit floats have scales, as those of `exec.scaled_product`: no batch and no epilogue, `a` and `b` with
    stride 1 along `k`, and scales for the rows of `a` and the columns of `b`.
  }];
  let assemblyFormat = [{
    $a `,` $b `->` $c (`with` `(` $epilogue_input^ `:` type($epilogue_input) `)`)?
    (`giving` `(` $epilogue_output^ `:` type($epilogue_output) `)`)?
    (`scaled` `(` $a_scales^ `:` type($a_scales) `,` $b_scales `:` type($b_scales) `)`)? attr-dict
    `:` type($a) `,` type($b) `->` type($c)
  }];
  let hasVerifier = 1;
}

def Exec_ConvOp : Exec_Instruction<"conv", (ins Exec_ConvKindAttr:$kind, Exec_Buffer:$x, Exec_Buffer:$w, Exec_Buffer:$y,
    DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations,
    DefaultValuedAttr<I64Attr, "1">:$groups)> {
  let summary = "2-D convolution or one of its gradients; x is NCHW, w is OIHW";
  let description = [{ `forward` writes y, `input_grad` writes x, `filter_grad` writes w. All are contiguous. }];
  let assemblyFormat = "$kind $x `,` $w `,` $y attr-dict `:` type($x) `,` type($w) `,` type($y)";
  let hasVerifier = 1;
}

def Exec_AttentionOp : Exec_Instruction<"attention", (ins Exec_Buffer:$q, Exec_Buffer:$k, Exec_Buffer:$v,
    Optional<Exec_Buffer>:$mask, Optional<Exec_Buffer>:$begin, Optional<Exec_Buffer>:$end, Exec_Buffer:$out, Exec_Buffer:$lse,
    F64Attr:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$density), [AttrSizedOperandSegments]> {
  let summary = "Attention, as `train.attention`";
  let description = [{ Innermost strides are 1; `lse`, `mask`, `begin` and `end` are contiguous. }];
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` `(` $mask^ `:` type($mask) `)`)? (`keys` `(` $begin^ `to` $end `:` type($begin) `,` type($end) `)`)? `->` $out `,` $lse attr-dict
    `:` type($q) `,` type($k) `,` type($v) `->` type($out) `,` type($lse)
  }];
  let hasVerifier = 1;
}

def Exec_AttentionGradOp : Exec_Instruction<"attention_grad", (ins Exec_Buffer:$q, Exec_Buffer:$k, Exec_Buffer:$v,
    Optional<Exec_Buffer>:$mask, Optional<Exec_Buffer>:$begin, Optional<Exec_Buffer>:$end, Exec_Buffer:$out, Exec_Buffer:$lse,
    Exec_Buffer:$dout, Exec_Buffer:$dq, Exec_Buffer:$dk, Exec_Buffer:$dv, Optional<Exec_Buffer>:$workspace, F64Attr:$scale,
    UnitAttr:$causal, OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$density, UnitAttr:$partial), [AttrSizedOperandSegments]> {
  let summary = "Gradient of attention, as `train.attention_grad`";
  let description = [{ Layouts as `attention`; `workspace` is f32 [B, H, Tq]. }];
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` `(` $mask^ `:` type($mask) `)`)? (`keys` `(` $begin^ `to` $end `:` type($begin) `,` type($end) `)`)?
    `,` $out `,` $lse `,` $dout `->` $dq `,` $dk `,` $dv
    (`workspace` `(` $workspace^ `:` type($workspace) `)`)? attr-dict `:` type($q) `,` type($k) `,` type($v) `,` type($out)
    `,` type($lse) `,` type($dout) `->` type($dq) `,` type($dk) `,` type($dv)
  }];
  let hasVerifier = 1;
}

/// Defined by `dist`, whose collective it is.
def Exec_Origin : Attr<CPred<"::llvm::isa<::tessera::dist::OriginAttr>($_self)">, "origin of a collective"> {
  let storageType = "::tessera::dist::OriginAttr";
  let returnType = "::tessera::dist::OriginAttr";
  let convertFromStorage = "$_self";
}

def Exec_CollectiveOp : Exec_Instruction<"collective", (ins Exec_CollectiveKindAttr:$kind, Exec_Buffer:$input,
    Exec_Buffer:$output, StrArrayAttr:$axes, DefaultValuedAttr<I64Attr, "0">:$shift,
    DefaultValuedAttr<Exec_ReductionKindAttr, "::tessera::exec::ReductionKind::Sum">:$reduction, OptionalAttr<Exec_Origin>:$origin,
    OptionalAttr<StrAttr>:$reason, OptionalAttr<StrAttr>:$done_reason)> {
  let summary = "A collective over the groups that `axes` make";
  let description = [{
    Buffers are contiguous; those of `all_reduce` may be one, those of the others do not overlap. `reduction` is a sum for
    those that do not reduce. `reason` says in words
    why it starts here, `done_reason` why it is waited for where it is.
  }];
  let assemblyFormat = "$kind $input `->` $output `over` $axes attr-dict `:` type($input) `->` type($output)";
  let hasVerifier = 1;
}

def Exec_CopyOp : Exec_Instruction<"copy", (ins Exec_Buffer:$source, Exec_Buffer:$target)> {
  let summary = "Copies elements between views of one shape";
  let assemblyFormat = "$source `->` $target attr-dict `:` type($source) `->` type($target)";
  let hasVerifier = 1;
}
def Exec_FillOp : Exec_Instruction<"fill", (ins Exec_Buffer:$target, F64Attr:$value)> {
  let summary = "Writes one value to all elements";
  let assemblyFormat = "$target `with` $value attr-dict `:` type($target)";
}
def Exec_AxisIndexOp : Exec_Instruction<"axis_index", (ins Exec_Buffer:$target, StrArrayAttr:$axes)> {
  let summary = "Writes this rank's position in its group";
  let assemblyFormat = "$target `over` $axes attr-dict `:` type($target)";
  let hasVerifier = 1;
}
def Exec_RecordOp : Exec_Instruction<"record", (ins I64Attr:$event)> {
  let summary = "Marks this point of the stream";
  let assemblyFormat = "$event attr-dict";
}
def Exec_WaitOp : Exec_Instruction<"wait", (ins I64Attr:$event)> {
  let summary = "The stream goes on when the event's latest record has been reached";
  let assemblyFormat = "$event attr-dict";
}
def Exec_LoopOp : Exec_Op<"loop", [HasParent<"ProgramOp">, NoTerminator, NoRegionArguments, SingleBlock]> {
  let summary = "Runs its instructions `count` times; the artifact's Repeat";
  let arguments = (ins I64Attr:$count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

#endif // TESSERA_EXEC_INSTRUCTIONS
