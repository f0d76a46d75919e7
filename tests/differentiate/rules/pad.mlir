// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @pad
// CHECK: train.slice %{{.*}} {limits = array<i64: 4, 7>, starts = array<i64: 1, 0>, strides = array<i64: 1, 2>, train.backward}
func.func @pad(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<4x9xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.pad %w {low = array<i64: 1, 0>, high = array<i64: 0, 2>, interior = array<i64: 0, 1>, value = 0.5} : (tensor<3x4xf32>) -> tensor<4x9xf32>
  %weighted = train.mul %y, %c : tensor<4x9xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<4x9xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
