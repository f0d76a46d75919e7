//===- TrainDims.td - what the dimensions of batch arguments count --------===//
//
// Declared apart from the other attributes (Dims.h): few files need it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRAIN_DIMS
#define TESSERA_TRAIN_DIMS

include "compiler/dialect/train/TrainBase.td"

def Train_DimRole : I32EnumAttr<"DimRole", "what a dimension of a batch argument counts", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Sample", 1, "sample">,
  I32EnumAttrCase<"Position", 2, "position">, I32EnumAttrCase<"MicroBatch", 3, "micro_batch">]> {
  let cppNamespace = "::tessera::train";
  let genSpecializedAttr = 0;
}

def Train_DimsAttr : AttrDef<Train_Dialect, "Dims"> {
  let mnemonic = "dims";
  let summary = "What the dimensions of an input or target count";
  let description = [{
    One role for each dimension: samples of the batch, positions of a sequence, micro-batches, or nothing that data
    are divided by. `train.dims` of an argument that has none is assumed (Dims.h).

    ```mlir
    func.func @step(%x: tensor<16x4x8xf32> {train.dims = #train.dims<[position, sample, none]>, train.role = "input"})
    ```
  }];
  let parameters = (ins ArrayRefParameter<"DimRole">:$roles);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The dimension that counts samples, or -1.
    int64_t getSampleDim() const;
    /// The dimension that counts positions, or -1.
    int64_t getPositionDim() const;
    /// The roles without those of samples and micro-batches, which the dimensions of one sample have.
    ::llvm::SmallVector<DimRole> getSampleRoles() const;
    /// The same with a leading dimension that counts micro-batches.
    DimsAttr withMicroBatches() const;
  }];
}

#endif // TESSERA_TRAIN_DIMS
