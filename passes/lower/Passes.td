//===- Passes.td - passes of the lower phase ------------------------------===//

#ifndef TESSERA_PASSES_LOWER
#define TESSERA_PASSES_LOWER

include "mlir/Pass/PassBase.td"

def LowerAccumulate : Pass<"lower-accumulate", "::mlir::func::FuncOp"> {
  let summary = "Turns train.accumulate into a repetition with explicit accumulators";
  let description = [{
    `train.accumulate` says that results are sums over iterations; `exec.repeat` carries the sums, so that the memory plan
    sees them as buffers and fusion sees the additions.

    Precondition: none. Postcondition: no `train.accumulate` is left.

    ```mlir
    %loss = train.accumulate %tokens {count = 4 : i64} : (tensor<4x8xi32>) -> tensor<f32> {
    ^bb0(%i: tensor<i64>, %micro: tensor<8xi32>):
      train.yield %l : tensor<f32>
    }
    ```
    becomes
    ```mlir
    %zero = train.constant dense<0.0> : tensor<f32>
    %loss = exec.repeat count = 4 batch(%tokens) init(%zero) : (tensor<4x8xi32>, tensor<f32>) -> tensor<f32> {
    ^bb0(%i: tensor<i64>, %micro: tensor<8xi32>, %acc: tensor<f32>):
      %next = train.add %acc, %l : tensor<f32>
      exec.yield %next : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::tessera::exec::ExecDialect"];
}

#endif // TESSERA_PASSES_LOWER
