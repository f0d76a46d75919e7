// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// The start of the second dimension is clamped, in both directions alike.
// CHECK-LABEL: func @dynamic_slice
// CHECK: train.dynamic_update_slice %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] {train.backward}
func.func @dynamic_slice(
    %w: tensor<5x7xf32> {train.role = "param", train.name = "w"},
    %c: tensor<2x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %s = train.constant dense<2> : tensor<i32>
  %far = train.constant dense<9> : tensor<i32>
  %y = train.dynamic_slice %w [%s, %far] {sizes = array<i64: 2, 3>} : (tensor<5x7xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %weighted = train.mul %y, %c : tensor<2x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
