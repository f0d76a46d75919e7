// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s

// Straight-through: rounding counts as the identity, and the gradient is never narrowed.
// CHECK-LABEL: func @quantize
// CHECK: train.quantize
// CHECK: train.mul %{{.*}} {train.backward} : tensor<3x4xf32>
// CHECK: train.mul %{{.*}} {train.backward} : tensor<3x4xf32>
func.func @quantize(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %s = train.constant dense<[[4.0, 2.0], [1.0, 8.0], [4.0, 4.0]]> : tensor<3x2xf32>
  %i = train.constant dense<[[0.25, 0.5], [1.0, 0.125], [0.25, 0.25]]> : tensor<3x2xf32>
  %q = train.quantize %w, %s : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<3x4xf8E4M3FN>
  %y = train.dequantize %q, %i : (tensor<3x4xf8E4M3FN>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
