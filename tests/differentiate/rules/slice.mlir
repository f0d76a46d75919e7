// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @slice
// CHECK: train.pad %{{.*}} {high = array<i64: 1, 2>, interior = array<i64: 0, 1>, low = array<i64: 1, 0>, train.backward}
func.func @slice(
    %w: tensor<5x7xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.slice %w {starts = array<i64: 1, 0>, limits = array<i64: 4, 6>, strides = array<i64: 1, 2>} : (tensor<5x7xf32>) -> tensor<3x3xf32>
  %weighted = train.mul %y, %c : tensor<3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Slices that tile a dimension; see also passes/differentiate/differentiate.mlir.
// CHECK-LABEL: func @slices_of_one
// CHECK-NOT: train.pad
// CHECK: train.concat %{{.*}}, %{{.*}}, %{{.*}} {dim = 0 : i64, train.backward}
// CHECK: return
func.func @slices_of_one(
    %w: tensor<6x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<2x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %a = train.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<2x4xf32>
  %b = train.slice %w {starts = array<i64: 2, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<2x4xf32>
  %c2 = train.slice %w {starts = array<i64: 4, 0>, limits = array<i64: 6, 4>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<2x4xf32>
  %ab = train.mul %a, %b : tensor<2x4xf32>
  %abc = train.mul %ab, %c2 : tensor<2x4xf32>
  %y = train.mul %abc, %a : tensor<2x4xf32>
  %weighted = train.mul %y, %c : tensor<2x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
