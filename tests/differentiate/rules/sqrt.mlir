// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet
// RUN: tessera-opt %S/Inputs/norm-zero.mlir --differentiate | tessera-interp - --digest | FileCheck %s --check-prefix=ZERO

// The norm of a zero vector has the gradient 0, by a root or by another power.
// ZERO: [0, 0, 0, 0]
// ZERO: [0, 0, 0, 0]

// CHECK-LABEL: func @sqrt
// CHECK: %[[Y:.*]] = train.sqrt
// CHECK: train.div %{{.*}}, %[[Y]] {train.backward}
func.func @sqrt(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %w : tensor<3x4xf32>
  %y = train.sqrt %x : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// A sum with an addend is no norm, and needs no case.
// CHECK-LABEL: func @not_a_norm
// CHECK-NOT: train.select
// CHECK: return
func.func @not_a_norm(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %epsilon = train.constant dense<1.0e-6> : tensor<3xf32>
  %square = train.mul %w, %w : tensor<3x4xf32>
  %sum = train.reduce sum, %square {dimensions = array<i64: 1>} : (tensor<3x4xf32>) -> tensor<3xf32>
  %x = train.add %sum, %epsilon : tensor<3xf32>
  %y = train.sqrt %x : tensor<3xf32>
  %weighted = train.mul %y, %c : tensor<3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
