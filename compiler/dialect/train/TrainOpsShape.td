//===- TrainOpsShape.td - shape and index ops -----------------------------===//

#ifndef TESSERA_TRAIN_OPS_SHAPE
#define TESSERA_TRAIN_OPS_SHAPE

include "compiler/dialect/train/TrainAttrs.td"

def Train_ReshapeOp : Train_Op<"reshape", [IndexMappingOpInterface]> {
  let summary = "Same elements in row-major order, another shape";
  let arguments = (ins Train_Tensor:$operand);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static ElementMap getElementMap() { return ElementMap::Permutation; }
  }];
}

def Train_TransposeOp : Train_Op<"transpose", [IndexMappingOpInterface]> {
  let summary = "Permutes the dimensions";
  let description = [{ Dimension `i` of the result is dimension `permutation[i]` of the operand. }];
  let arguments = (ins Train_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static ElementMap getElementMap() { return ElementMap::Permutation; }
  }];
}

def Train_BroadcastOp : Train_Op<"broadcast", [IndexMappingOpInterface]> {
  let summary = "Repeats the operand along new or unit dimensions";
  let description = [{
    Dimension `i` of the operand becomes dimension `broadcast_dimensions[i]` of the result (strictly increasing). Its size
    is 1 or that of the result dimension. StableHLO's `broadcast_in_dim`.
  }];
  let arguments = (ins Train_Tensor:$operand, DenseI64ArrayAttr:$broadcast_dimensions);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static ElementMap getElementMap() { return ElementMap::Repetition; }
  }];
}

def Train_SliceOp : Train_Op<"slice", [IndexMappingOpInterface]> {
  let summary = "A strided box of the operand";
  let description = [{ `result[i…] = operand[starts + i * strides …]`, for indices below `limits`. }];
  let arguments = (ins Train_Tensor:$operand, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$limits,
                       DenseI64ArrayAttr:$strides);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    static ElementMap getElementMap() { return ElementMap::Selection; }
  }];
}

def Train_PadOp : Train_Op<"pad"> {
  let summary = "Surrounds the operand, and the gaps between its elements, with one value";
  let description = [{
    `low` and `high` elements before and after each dimension (not negative), `interior` between two neighbours.
  }];
  let arguments = (ins Train_Tensor:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior, DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type($operand, $result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Train_ConcatOp : Train_Op<"concat"> {
  let summary = "Joins tensors along one dimension";
  let arguments = (ins Variadic<Train_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operands attr-dict `:` functional-type($operands, $result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Train_DynamicSliceOp : Train_Op<"dynamic_slice", [IndexMappingOpInterface]> {
  let summary = "A box of the operand whose corner is known at run time";
  let description = [{
    `starts` are clamped so that the box lies inside the operand. `sizes` is the shape of the result.
  }];
  let arguments = (ins Train_Tensor:$operand, Variadic<Train_IntScalar>:$starts, DenseI64ArrayAttr:$sizes);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand `[` $starts `]` attr-dict `:` functional-type(operands, $result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static ElementMap getElementMap() { return ElementMap::Selection; }
    static IndexSource getIndexSource() { return IndexSource::Data; }
  }];
}

def Train_DynamicUpdateSliceOp : Train_Op<"dynamic_update_slice", [AllTypesMatch<["operand", "result"]>]> {
  let summary = "The operand with a box of it replaced";
  let arguments = (ins Train_Tensor:$operand, Train_Tensor:$update, Variadic<Train_IntScalar>:$starts);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$operand `,` $update `[` $starts `]` attr-dict `:` functional-type(operands, $result)";
  let hasVerifier = 1;
}

def Train_GatherRowsOp : Train_Op<"gather_rows"> {
  let summary = "Rows of a table by index (embedding lookup)";
  let description = [{
    `result[i…, j…] = table[indices[i…], j…]`; the result's shape is the shape of `indices` followed by the table's
    trailing dimensions. A negative index or one beyond the table is an error at run time: data is checked on load.

    `padding_index` is a row to which lookups give no gradient (`padding_idx` of `torch.nn.functional.embedding`); the
    result does not depend on it.
  }];
  let arguments = (ins Train_Tensor:$table, Train_IntTensor:$indices, OptionalAttr<I64Attr>:$padding_index);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$table `,` $indices attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Train_ScatterAddRowsOp : Train_Op<"scatter_add_rows", [AllTypesMatch<["init", "result"]>]> {
  let summary = "Adds rows into a table by index (embedding gradient)";
  let description = [{
    `result = init; result[indices[i…], j…] += updates[i…, j…]`, in row-major order of `i…` (so the sum is deterministic);
    an index may occur many times.
  }];
  let arguments = (ins Train_NumericTensor:$init, Train_IntTensor:$indices, Train_NumericTensor:$updates);
  let results = (outs Train_NumericTensor:$result);
  let assemblyFormat = "$init `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // TESSERA_TRAIN_OPS_SHAPE
