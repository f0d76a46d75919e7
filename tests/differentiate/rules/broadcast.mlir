// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @broadcast
// CHECK: %[[S:.*]] = train.reduce sum, %{{.*}} {dimensions = array<i64: 0, 2>, train.backward} : (tensor<2x3x4xf32>) -> tensor<3xf32>
// CHECK: train.reshape %[[S]] {train.backward} : (tensor<3xf32>) -> tensor<3x1xf32>
func.func @broadcast(
    %w: tensor<3x1xf32> {train.role = "param", train.name = "w"},
    %c: tensor<2x3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.broadcast %w {broadcast_dimensions = array<i64: 1, 2>} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
  %weighted = train.mul %y, %c : tensor<2x3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @broadcast_scalar
// CHECK: train.reduce sum, %{{.*}} {dimensions = array<i64: 0, 1>, train.backward}
func.func @broadcast_scalar(
    %w: tensor<f32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.broadcast %w {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Nothing is repeated, nothing is summed.
// CHECK-LABEL: func @broadcast_nothing
// CHECK-NOT: train.reduce {{.*}}train.backward
// CHECK: return
func.func @broadcast_nothing(
    %w: tensor<1x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<1x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.broadcast %w {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %weighted = train.mul %y, %c : tensor<1x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<1x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
