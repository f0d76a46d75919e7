// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// Rows that are read more than once receive the sum.
// CHECK-LABEL: func @gather_rows
// CHECK: train.scatter_add_rows %{{.*}}, %arg1, %{{.*}} {train.backward}
func.func @gather_rows(
    %w: tensor<5x3xf32> {train.role = "param", train.name = "w"},
    %i: tensor<2x4xi32> {train.role = "input", train.name = "i"},
    %c: tensor<2x4x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.gather_rows %w, %i : (tensor<5x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>
  %weighted = train.mul %y, %c : tensor<2x4x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
