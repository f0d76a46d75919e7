//===- TrainSegments.td - what a flat unit is made of ---------------------===//
//
// Declared apart from the other attributes (Segments.h): few files need it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRAIN_SEGMENTS
#define TESSERA_TRAIN_SEGMENTS

include "compiler/dialect/train/TrainBase.td"

def Train_PlacementAttr : AttrDef<Train_Dialect, "Placement"> {
  let mnemonic = "placement";
  let summary = "Which axes of the mesh split a parameter at all times, in how many parts, and along which dimension";
  let description = [{
    `train.placement` of a parameter's argument, until it is flattened, and then part of its `#train.segment`. Each rank
    along the axes holds one part, from step to step and while it computes. On all other axes the parameter is whole, or
    what the strategy makes of it. The axes are of a role that splits parameters, the first is the major one, and `parts`
    the product of their sizes.

    ```mlir
    func.func @step(%w: tensor<8x32xf32> {train.placement = #train.placement<dim = 1, axes = ["tp"], parts = 2>, train.role = "param"})
    ```
  }];
  let parameters = (ins "int64_t":$dim, "::mlir::ArrayAttr":$axes, "int64_t":$parts);
  let assemblyFormat = "`<` `dim` `=` $dim `,` `axes` `=` $axes `,` `parts` `=` $parts `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether a parameter of this shape has the dimension, and the parts divide it.
    bool fits(::llvm::ArrayRef<int64_t> shape) const;
  }];
}

def Train_SegmentAttr : AttrDef<Train_Dialect, "Segment"> {
  let mnemonic = "segment";
  let summary = "A parameter in a flat unit";
  let description = [{
    `train.segments` of a unit lists its parameters in the order of their offsets. `offset` is in elements, `shape` that of
    the whole parameter, `init` how it begins (Initializer.h).

    The parameters of one unit are placed on the same axes. With more than one part the unit is a matrix of as many rows,
    flattened: row r holds part r of each parameter, and `offset` is that in a row.

    ```mlir
    #train.segment<"fc.weight", offset = 0, shape = [8, 32], init = "normal:0.02", placement = <dim = 1, axes = ["tp"], parts = 2>>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$offset, ArrayRefParameter<"int64_t">:$shape,
                        OptionalParameter<"::mlir::StringAttr">:$init,
                        OptionalParameter<"::tessera::train::PlacementAttr">:$placement);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Parts of the parameter; 1 without a placement.
    int64_t getParts() const;
    /// Elements of one part.
    int64_t getNumElements() const;
    /// The shape of one part.
    ::llvm::SmallVector<int64_t> getPartShape() const;
    /// Which element of the parameter is element `index` of part `part`, both in row-major order.
    int64_t getParameterElement(int64_t part, int64_t index) const;
  }];
}

#endif // TESSERA_TRAIN_SEGMENTS
