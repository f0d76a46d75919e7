// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @transpose
// CHECK: train.transpose %{{.*}} {permutation = array<i64: 1, 2, 0>, train.backward}
func.func @transpose(
    %w: tensor<2x3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<4x2x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.transpose %w {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %weighted = train.mul %y, %c : tensor<4x2x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<4x2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// The gradient of a transposed weight is computed in the layout of the weight.
// CHECK-LABEL: func @transposed_weight
// CHECK-NOT: train.transpose {{.*}}train.backward
// CHECK: train.dot_general %{{.*}}, %arg1 {{.*}}train.backward} : (tensor<5x3xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
func.func @transposed_weight(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %x: tensor<5x4xf32> {train.role = "input", train.name = "x"},
    %c: tensor<5x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %t = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %y = train.dot_general %x, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
  %weighted = train.mul %y, %c : tensor<5x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<5x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @not_exchanged
// CHECK: train.transpose {{.*}}train.backward
func.func @not_exchanged(
    %w: tensor<4x2x3xf32> {train.role = "param", train.name = "w"},
    %x: tensor<5x4xf32> {train.role = "input", train.name = "x"},
    %c: tensor<5x3x2xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %t = train.transpose %w {permutation = array<i64: 2, 0, 1>} : (tensor<4x2x3xf32>) -> tensor<3x4x2xf32>
  %y = train.dot_general %x, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<5x4xf32>, tensor<3x4x2xf32>) -> tensor<5x3x2xf32>
  %weighted = train.mul %y, %c : tensor<5x3x2xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<5x3x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
