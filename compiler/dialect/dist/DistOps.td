//===- DistOps.td - meshes, shardings and collectives ---------------------===//

#ifndef TESSERA_DIST_OPS
#define TESSERA_DIST_OPS

include "compiler/dialect/dist/Collective.td"
include "compiler/dialect/train/TrainBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::tessera::dist";
  let summary = "Sharding of a training step over a mesh of ranks";
  let description = [{
    The mesh is a module attribute `dist.mesh = #dist.mesh<replicate = 2, shard = 4>`: named axes with a role each, major
    first; the rank of a process is its row-major position. Names are free, roles are those of AxisRole.h: an axis whose
    name does not say its role by default has it written out, `#dist.mesh<nodes : replica = 2, gpus : data = 8>`. A value of global shape is annotated with `#dist.sharding<[{"shard"}, {} ],
    unreduced = {"seq"}>`: for each dimension the axes (major first) that split it into equal parts, and the *unreduced* axes over which the
    ranks hold partial sums of it, or, with `{"seq": max}`, partial maxima. An axis occurs at most once in a sharding. Before localisation types are global and
    `dist.sharding` annotates function arguments and results, `dist.shardings` (one per result) ops; after it types are
    local, arguments keep `dist.sharding` and `dist.global` (their global type), and only collectives communicate.

    Collectives are pure: all ranks run the same sequence, so that one may be moved or removed like any other op.
    Each names its mesh axes; the ranks that differ only in their position on those axes form one group, ordered by that
    position, row-major in the order in which the group names its axes. `*_start` begins a collective and returns a future; `done` waits for it.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Attributes live in DistAttrs.cpp; called by initialize().
    void registerAttributes();
  }];
}

def Dist_ReductionKind : I32EnumAttr<"ReductionKind", "what ranks make of the values that they hold", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"Min", 2, "min">]> {
  let cppNamespace = "::tessera::dist";
  let genSpecializedAttr = 0;
}
def Dist_ReductionKindAttr : EnumAttr<Dist_Dialect, Dist_ReductionKind, "reduction">;

class Dist_Attr<string name, string attrMnemonic> : AttrDef<Dist_Dialect, name> { let mnemonic = attrMnemonic; }

def Dist_MeshAttr : Dist_Attr<"Mesh", "mesh"> {
  let summary = "Named axes of the mesh, their sizes and what they are for, major first";
  let parameters = (ins "::mlir::ArrayAttr":$names, ArrayRefParameter<"int64_t">:$sizes,
                        ArrayRefParameter<"AxisRole">:$roles);
  let builders = [
    /// With the roles that the names have by default, which all must have.
    AttrBuilder<(ins "::mlir::ArrayAttr":$names, "::llvm::ArrayRef<int64_t>":$sizes)>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Number of ranks: the product of the axis sizes.
    int64_t getNumRanks() const;
    /// Size of an axis; 1 if the mesh has no such axis.
    int64_t getAxisSize(::llvm::StringRef name) const;
    /// Product of the sizes of the axes in `axes` (an array of strings).
    int64_t getGroupSize(::mlir::ArrayAttr axes) const;
    /// Position of an axis in the mesh, or -1.
    int64_t getAxisIndex(::llvm::StringRef name) const;
    /// Name of the axis at a position of the mesh.
    ::llvm::StringRef getAxisName(unsigned index) const;
    /// What the table says of the axis at a position of the mesh.
    const AxisRoleInfo &getAxisInfo(unsigned index) const { return getInfo(getRoles()[index]); }
  }];
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding"> {
  let summary = "How one value is split over the mesh, and which reductions it still owes";
  let description = [{
    `dims` is an array with one array per dimension: names of axes, the major one first, and in front of a name, where it is
    more than one, the number of whole blocks that the axis splits inside of (a number), and behind it `zigzag` (a unit) or
    `dealt` (`#dist.dealt`) where its parts are no ranges. `unreduced` is an array of axis names, `kinds` what is owed over each of these; empty
    where all are sums.

    ```
    {"data", 4, "seq"}    each of data's parts is 4 blocks, and seq splits each of these
    {"seq": zigzag}       of 2n ranges position p has p and 2n - 1 - p
    {"seq": dealt 16}     of 16 ranges position p has the p-th n-th of those that the `dist.deal` in front lists
    ```
  }];
  let parameters = (ins "::mlir::ArrayAttr":$dims, "::mlir::ArrayAttr":$unreduced,
                        ArrayRefParameter<"::tessera::dist::ReductionKind">:$kinds);
  let builders = [AttrBuilder<(ins "::mlir::ArrayAttr":$dims, "::mlir::ArrayAttr":$unreduced), [{
    return $_get($_ctxt, dims, unreduced, ::llvm::ArrayRef<::tessera::dist::ReductionKind>());
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static ShardingAttr replicated(::mlir::MLIRContext *context, int64_t rank);
    int64_t getRank() const { return getDims().size(); }
    /// Axes that split dimension `dim`, an array of strings.
    ::mlir::ArrayAttr getAxes(int64_t dim) const;
    bool isReplicated() const;
    bool hasUnreduced() const { return !getUnreduced().empty(); }
    /// What is owed over the unreduced axes; of a value that owes nothing a sum.
    ReductionKind getReduction() const { return getKinds().empty() ? ReductionKind::Sum : getKinds().front(); }
    /// The type of one rank's part; null if a dimension does not divide.
    ::mlir::RankedTensorType getLocalType(::mlir::RankedTensorType global, MeshAttr mesh) const;
    /// The same sharding without unreduced axes.
    ShardingAttr reduced() const;
  }];
}

def Dist_DealtAttr : Dist_Attr<"Dealt", "dealt"> {
  let summary = "How many blocks a dimension is dealt in, in the order that the `dist.deal` in front says";
  let parameters = (ins "int64_t":$blocks);
  let assemblyFormat = "`<` $blocks `>`";
}

def Dist_OriginPhase : I32EnumAttr<"OriginPhase", "what a value is moved for", [
    I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
    I32EnumAttrCase<"Step", 2, "step">, I32EnumAttrCase<"Gradient", 3, "gradient">,
    I32EnumAttrCase<"Update", 4, "update">, I32EnumAttrCase<"Result", 5, "result">]> {
  let cppNamespace = "::tessera::dist";
  let genSpecializedAttr = 0;
}

def Dist_OriginAttr : Dist_Attr<"Origin", "origin"> {
  let summary = "What a value is moved for: a phase of the step, and the units it serves";
  let description = [{
    `forward` and `backward`: units (or activations) that this pass reads; `step`: units that both read; `gradient`: the
    gradients of units; `update`: what the optimizer reads and writes; `result`: results of the step. There is more than
    one unit where collectives were joined. Two constraints of one value with different origins stay apart.
  }];
  let parameters = (ins EnumParameter<Dist_OriginPhase>:$phase, ArrayRefParameter<"::mlir::StringAttr">:$units);
  let builders = [AttrBuilder<(ins "OriginPhase":$phase, "::llvm::StringRef":$unit)>];
  let assemblyFormat = "`<` $phase `,` `[` $units `]` `>`";
  let extraClassDeclaration = [{
    /// For people: the phase, a colon and the units; of results the names alone.
    std::string getText() const;
    /// The units of all of `origins` (nulls aside) with the phase of the first; null if there are none.
    static OriginAttr join(::llvm::ArrayRef<OriginAttr> origins);
  }];
}

def Dist_FutureType : TypeDef<Dist_Dialect, "Future"> {
  let mnemonic = "future";
  let summary = "The result of a collective that is under way";
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, !listconcat(traits, [Pure])>;

// --- On global values --------------------------------------------------------

def Dist_ConstrainOp : Dist_Op<"constrain", [SameOperandsAndResultType]> {
  let summary = "Fixes the sharding of a value; the identity";
  let description = [{
    `origin` keeps two constraints apart that must not be merged, e.g. the gathers of one unit for forward and backward.
    `reduce_type` is the element type in which ranks add up what is unreduced; without it, that of the value.
  }];
  let arguments = (ins Train_Tensor:$operand, Dist_ShardingAttr:$sharding, OptionalAttr<Dist_OriginAttr>:$origin,
                       OptionalAttr<TypeAttrOf<Train_Float>>:$reduce_type);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand $sharding attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dist_MoveAxesOp : Dist_Op<"move_axes", [SameOperandsAndResultType]> {
  let summary = "Splits dimension `to` by axes that split dimension `from`; the identity";
  let description = [{
    The result is split as the operand is, but for those of `axes` that are the minor ones of dimension `from`: they are
    the minor ones of dimension `to`, dealt in a `zigzag` if it says so. Unlike `constrain` it says nothing of other
    dimensions. Where axes are not the minor ones of `from`, the result is split as the operand.

    ```mlir
    %h = dist.move_axes %q {axes = ["seq"], from = 2, to = 1} : tensor<2x8x1024x64xf32>
    ```
  }];
  let arguments = (ins Train_Tensor:$operand, StrArrayAttr:$axes, I64Attr:$from, I64Attr:$to, UnitAttr:$zigzag);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dist_DealOp : Op<Dist_Dialect, "deal"> {
  let summary = "Says which blocks of positions each rank has where a sharding behind it, in the same block of ops, says `dealt`";
  let description = [{
    `order` [d, blocks] is a permutation of 0 … blocks - 1 for the samples of each of d ranks that samples are split over, or
    with d = 1 for all samples. Of n ranks that positions are dealt to, rank r has the blocks that stand from
    r * blocks / n on; where attention is computed they ascend. No value depends on it.

    ```mlir
    dist.deal %order : tensor<2x8xi64>
    ```
  }];
  let arguments = (ins Train_IntTensor:$order);
  let assemblyFormat = "$order attr-dict `:` type($order)";
  let hasVerifier = 1;
}

def Dist_ReshardOp : Dist_Op<"reshard", [SameOperandsAndResultType]> {
  let summary = "Changes the sharding of a value; the identity on the global value";
  let description = [{ `origin` and `reduce_type` are those of the constraint that it comes from. }];
  let arguments = (ins Train_Tensor:$operand, Dist_ShardingAttr:$from, Dist_ShardingAttr:$to,
                       OptionalAttr<Dist_OriginAttr>:$origin, OptionalAttr<TypeAttrOf<Train_Float>>:$reduce_type);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand $from `to` $to attr-dict `:` type($result)";
  let hasVerifier = 1;
}

// --- On local values ---------------------------------------------------------

/// `kind` is a case of CollectiveKind; `dims` the dimensions it works along, as arguments.
class Dist_CollectiveBase<string mnemonic, string kind, dag extra, string dims> : Dist_Op<mnemonic, [CollectiveOpInterface]> {
  let arguments = !con((ins Train_Tensor:$operand, StrArrayAttr:$axes), extra, (ins OptionalAttr<Dist_OriginAttr>:$origin));
  let extraClassDeclaration = "static CollectiveKind getCollectiveKind() { return CollectiveKind::" # kind # "; }\n" #
                              "::llvm::SmallVector<int64_t, 2> getDims() { return {" # dims # "}; }\n" #
                              !if(!eq(kind, "Permute"), "", "static int64_t getShift() { return 0; }\n") #
                              !if(!or(!eq(kind, "AllReduce"), !eq(kind, "ReduceScatter")),
                                  "ReductionKind getReduction() { return getKind(); }\n",
                                  "static ReductionKind getReduction() { return ReductionKind::Sum; }\n");
  let hasVerifier = 1;
}
class Dist_Collective<string mnemonic, string kind, dag extra = (ins), string dims = "">
    : Dist_CollectiveBase<mnemonic, kind, extra, dims> {
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $result)";
}
class Dist_CollectiveStart<string mnemonic, string kind, dag extra = (ins), string dims = "">
    : Dist_CollectiveBase<mnemonic, kind, extra, dims> {
  let summary = "Begins the collective of this name and returns its future";
  let results = (outs Dist_FutureType:$future);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $future)";
}

defvar dim = "static_cast<int64_t>(getDim())";
defvar exchange = "static_cast<int64_t>(getSplitDim()), static_cast<int64_t>(getConcatDim())";

def Dist_AllGatherOp : Dist_Collective<"all_gather", "AllGather", (ins I64Attr:$dim), dim> {
  let summary = "Concatenates the operands of a group along `dim`, in group order";
}
defvar Dist_Reduction = (ins DefaultValuedAttr<Dist_ReductionKindAttr, "::tessera::dist::ReductionKind::Sum">:$kind);

def Dist_ReduceScatterOp : Dist_Collective<"reduce_scatter", "ReduceScatter", !con((ins I64Attr:$dim), Dist_Reduction), dim> {
  let summary = "Reduces the operands of a group as `all_reduce` does and keeps this rank's part along `dim`";
}
def Dist_AllReduceOp : Dist_Collective<"all_reduce", "AllReduce", Dist_Reduction> {
  let summary = "Sums the operands of a group, in group order, or takes their maximum or minimum";
  let description = [{
    A maximum or minimum is NaN where any operand is, and 0 is above -0: it is the same bits in any order.

    ```mlir
    %m = dist.all_reduce %x {axes = ["shard"], kind = #dist.reduction<max>} : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
}
def Dist_AllToAllOp : Dist_Collective<"all_to_all", "AllToAll", (ins I64Attr:$split_dim, I64Attr:$concat_dim), exchange> {
  let summary = "Splits along `split_dim`, sends part i to member i, joins what arrives along `concat_dim`";
}
def Dist_PermuteOp : Dist_Collective<"permute", "Permute", (ins I64Attr:$shift)> {
  let summary = "Sends the operand to the member `shift` further on in the group, cyclically";
}
def Dist_AllGatherStartOp : Dist_CollectiveStart<"all_gather_start", "AllGather", (ins I64Attr:$dim), dim>;
def Dist_ReduceScatterStartOp
    : Dist_CollectiveStart<"reduce_scatter_start", "ReduceScatter", !con((ins I64Attr:$dim), Dist_Reduction), dim>;
def Dist_AllReduceStartOp : Dist_CollectiveStart<"all_reduce_start", "AllReduce", Dist_Reduction>;
def Dist_AllToAllStartOp
    : Dist_CollectiveStart<"all_to_all_start", "AllToAll", (ins I64Attr:$split_dim, I64Attr:$concat_dim), exchange>;
def Dist_PermuteStartOp : Dist_CollectiveStart<"permute_start", "Permute", (ins I64Attr:$shift)>;

def Dist_CopyStartOp : Dist_Op<"copy_start"> {
  let summary = "Begins a copy between the device's memory and the host's and returns its future";
  let description = [{ The future's value is the operand; it lies in the memory `to`, "host" or "device". }];
  let arguments = (ins Train_Tensor:$operand, StrAttr:$to, OptionalAttr<Dist_OriginAttr>:$origin);
  let results = (outs Dist_FutureType:$future);
  let assemblyFormat = "$operand `to` $to attr-dict `:` functional-type($operand, $future)";
  let hasVerifier = 1;
}
def Dist_DoneOp : Dist_Op<"done"> {
  let summary = "Waits for a collective or a copy and gives its result";
  let arguments = (ins Dist_FutureType:$future);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$future attr-dict `:` functional-type($future, $result)";
  let hasVerifier = 1;
}

def Dist_SliceLocalOp : Dist_Op<"slice_local", [IndexMappingOpInterface]> {
  let summary = "This rank's part of a replicated value along `dim`; no communication";
  let arguments = (ins Train_Tensor:$operand, StrArrayAttr:$axes, I64Attr:$dim);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static ElementMap getElementMap() { return ElementMap::Selection; }
    static IndexSource getIndexSource() { return IndexSource::Rank; }
  }];
}

def Dist_AxisIndexOp : Dist_Op<"axis_index"> {
  let summary = "This rank's position in its group over `axes`";
  let arguments = (ins StrArrayAttr:$axes);
  let results = (outs Train_IntScalar:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif // TESSERA_DIST_OPS
