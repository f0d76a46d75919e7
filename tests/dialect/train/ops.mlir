// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: func @roundtrip
// CHECK: train.accumulate
func.func @roundtrip(%w: tensor<4x8xf32> {train.role = "param", train.name = "w"}, %x: tensor<2x3x4xf32>) -> tensor<f32> {
  %loss = train.accumulate %x {count = 2 : i64} : (tensor<2x3x4xf32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %m: tensor<3x4xf32>):
    // CHECK: train.dot_general
    %y = train.dot_general %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    // CHECK: train.compare gt
    %zero = train.constant dense<0.0> : tensor<3x8xf32>
    %p = train.compare gt, %y, %zero : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xi1>
    %r = train.select %p, %y, %zero : tensor<3x8xi1>, tensor<3x8xf32>
    // CHECK: train.layer_norm layer
    %n, %mean, %rstd = train.layer_norm layer, %r {epsilon = 1.0e-05} : (tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3xf32>, tensor<3xf32>)
    // CHECK: train.reduce sum
    %s = train.reduce sum, %n {dimensions = array<i64: 0, 1>} : (tensor<3x8xf32>) -> tensor<f32>
    train.yield %s : tensor<f32>
  }
  return %loss : tensor<f32>
}
