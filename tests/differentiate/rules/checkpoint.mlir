// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// The region is evaluated again for the backward pass.
// CHECK-LABEL: func @checkpoint
// CHECK: train.checkpoint
// CHECK: train.yield
// CHECK: train.mul %arg0, %{{.*}} {train.backward}
// CHECK: train.tanh %{{.*}} {train.backward}
func.func @checkpoint(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %v: tensor<3x4xf32> {train.role = "param", train.name = "v"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %a = train.exp %v : tensor<3x4xf32>
  %y:2 = train.checkpoint : () -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %e = train.mul %w, %a : tensor<3x4xf32>
  %t = train.tanh %e : tensor<3x4xf32>
  %u = train.sin %t : tensor<3x4xf32>
  train.yield %t, %u : tensor<3x4xf32>, tensor<3x4xf32>
  }
  %z = train.mul %y#0, %y#1 : tensor<3x4xf32>
  %weighted = train.mul %z, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
