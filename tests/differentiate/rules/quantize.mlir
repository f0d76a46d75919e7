// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s

// Straight-through: rounding counts as the identity, and the gradient is never narrowed.
// CHECK-LABEL: func @quantize
// CHECK: train.quantize
// CHECK: train.div %{{.*}} {train.backward} : tensor<3x4xf32>
// CHECK: train.mul %{{.*}} {train.backward} : tensor<3x4xf32>
func.func @quantize(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %s = train.constant dense<4.0> : tensor<f32>
  %q = train.quantize %w, %s : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf8E4M3FN>
  %y = train.dequantize %q, %s : (tensor<3x4xf8E4M3FN>, tensor<f32>) -> tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
