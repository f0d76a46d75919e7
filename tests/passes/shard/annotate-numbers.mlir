// RUN: tessera-opt %s --annotate-sharding=strategy=ddp | FileCheck %s
// RUN: not tessera-opt %s --annotate-sharding=strategy=zero1 2>&1 | FileCheck %s --check-prefix=SPLIT

// A parameter that is a number is whole on each rank, and so is its gradient.
// SPLIT: error: 'scale' is not a flat unit, so its parameters cannot be sharded; run flatten-parameters first
// CHECK-LABEL: func @number
// CHECK-SAME: %[[S:arg0]]: tensor<f32> {dist.sharding = #dist.sharding<[]>
// CHECK: dist.constrain %[[S]] <[]> {origin = #dist.origin<gradient, ["scale"]>, train.backward}
module attributes {dist.mesh = #dist.mesh<fsdp = 2>} {
func.func @number(%s: tensor<f32> {train.role = "param", train.name = "scale"},
                  %x: tensor<4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "grad", train.of = "scale"}) {
  return %s : tensor<f32>
}
}
