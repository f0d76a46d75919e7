// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet
// RUN: tessera-opt %S/Inputs/reduce-ties.mlir --differentiate | tessera-interp - --digest | FileCheck %s --check-prefix=TIES
// RUN: tessera-opt %S/Inputs/reduce-first.mlir --differentiate | tessera-interp - --digest | FileCheck %s --check-prefix=FIRST

// With train.first the first in row-major order takes all: of the rows' maxima, and of the minimum of six zeros.
// FIRST: sum 3 l2 1.73205 = [1, 1, 0, 0

// Ties share the gradient of an extreme equally. A product's factor that is the only zero has a gradient.
// TIES: [0.5, 0, 0.5]
// TIES: [0, 12, 0]

// CHECK-LABEL: func @reduce_sum
// CHECK-NOT: train.compare
// CHECK: train.broadcast %{{.*}} {broadcast_dimensions = array<i64: 1>, train.backward} : (tensor<4xf32>) -> tensor<3x4x2xf32>
func.func @reduce_sum(
    %w: tensor<3x4x2xf32> {train.role = "param", train.name = "w"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.reduce sum, %w {dimensions = array<i64: 0, 2>} : (tensor<3x4x2xf32>) -> tensor<4xf32>
  %weighted = train.mul %y, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @reduce_max
// CHECK: %[[E:.*]] = train.compare eq, %arg0, %{{.*}} {train.backward}
// CHECK: train.reduce sum, %{{.*}} {dimensions = array<i64: 0, 2>, train.backward}
// CHECK: train.select %[[E]]
func.func @reduce_max(
    %w: tensor<3x4x2xf32> {train.role = "param", train.name = "w"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.reduce max, %w {dimensions = array<i64: 0, 2>} : (tensor<3x4x2xf32>) -> tensor<4xf32>
  %weighted = train.mul %y, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @reduce_min
// CHECK: train.compare eq, %arg0, %{{.*}} {train.backward}
func.func @reduce_min(
    %w: tensor<3x4x2xf32> {train.role = "param", train.name = "w"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.reduce min, %w {dimensions = array<i64: 0, 2>} : (tensor<3x4x2xf32>) -> tensor<4xf32>
  %weighted = train.mul %y, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @reduce_mul
// CHECK: train.reduce mul, %{{.*}} {dimensions = array<i64: 0, 2>, train.backward}
func.func @reduce_mul(
    %w: tensor<3x4x2xf32> {train.role = "param", train.name = "w"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.reduce mul, %w {dimensions = array<i64: 0, 2>} : (tensor<3x4x2xf32>) -> tensor<4xf32>
  %weighted = train.mul %y, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Columns with no, one and two zeros.
// CHECK-LABEL: func @reduce_mul_zeros
// CHECK: return
func.func @reduce_mul_zeros(
    %w: tensor<2x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %mask = train.constant dense<[[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0]]> : tensor<2x4xf32>
  %z = train.mul %w, %mask : tensor<2x4xf32>
  %y = train.reduce mul, %z {dimensions = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<4xf32>
  %weighted = train.mul %y, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
