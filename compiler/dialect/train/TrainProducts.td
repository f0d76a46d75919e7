//===- TrainProducts.td - what the products of a model are computed in ----===//
//
// Declared apart from the other attributes (Products.h): few files need it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TRAIN_PRODUCTS
#define TESSERA_TRAIN_PRODUCTS

include "compiler/dialect/train/TrainBase.td"

def Train_ProductAttr : AttrDef<Train_Dialect, "Product"> {
  let mnemonic = "product";
  let summary = "A product of the forward pass, and what it and those of its gradients are computed in";
  let description = [{
    The module attribute `train.products` lists them in their order, for people. `weight` is the parameter, or empty;
    `reason` says why a product is not as the recipe has it.

    ```mlir
    #train.product<"/h.0/fc/MatMul", weight = "h.0.fc.weight", inputs = 128, outputs = 512, output = "e4m3 x e4m3, by row",
                   input_grad = "bf16", weight_grad = "bf16", reason = "">
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::StringAttr":$weight, "int64_t":$inputs, "int64_t":$outputs,
                        "::mlir::StringAttr":$output, "::mlir::StringAttr":$inputGrad, "::mlir::StringAttr":$weightGrad,
                        "::mlir::StringAttr":$reason);
  let assemblyFormat = [{
    `<` $name `,` `weight` `=` $weight `,` `inputs` `=` $inputs `,` `outputs` `=` $outputs `,` `output` `=` $output `,`
    `input_grad` `=` $inputGrad `,` `weight_grad` `=` $weightGrad `,` `reason` `=` $reason `>`
  }];
}

#endif // TESSERA_TRAIN_PRODUCTS
