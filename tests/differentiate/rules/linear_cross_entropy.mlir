// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet
// RUN: tessera-opt %s --differentiate --join-loss | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @by_class
// CHECK: train.linear_cross_entropy %arg0, %arg1, %arg2 {weight_dim = 1 : i64}
// CHECK: %{{.*}}, %{{.*}}, %[[DX:.*]], %[[DW:.*]] = train.linear_cross_entropy_grad %arg0, %arg1, %arg2, %{{.*}} {train.backward, weight_dim = 1 : i64}
// CHECK: return %{{.*}}, %[[DX]], %[[DW]]
func.func @by_class(
    %x: tensor<6x4xf32> {train.role = "param", train.name = "x"},
    %w: tensor<5x4xf32> {train.role = "param", train.name = "w"},
    %t: tensor<6xi32> {train.role = "target", train.name = "t"},
    %c: tensor<6xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<6x4xf32>, tensor<5x4xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %weighted = train.mul %y, %c : tensor<6xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @by_feature
// CHECK: train.linear_cross_entropy_grad {{.*}} {train.backward, weight_dim = 0 : i64}
func.func @by_feature(
    %x: tensor<6x4xf32> {train.role = "param", train.name = "x"},
    %w: tensor<4x5xf32> {train.role = "param", train.name = "w"},
    %t: tensor<6xui8> {train.role = "target", train.name = "t"},
    %c: tensor<6xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 0 : i64} : (tensor<6x4xf32>, tensor<4x5xf32>, tensor<6xui8>) -> (tensor<6xf32>, tensor<6xf32>)
  %weighted = train.mul %y, %c : tensor<6xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @ignored_and_smoothed
// CHECK: train.linear_cross_entropy_grad {{.*}} {ignore_index = 2 : i64, label_smoothing = 3.000000e-01 : f64, train.backward, weight_dim = 1 : i64}
func.func @ignored_and_smoothed(
    %x: tensor<6x4xf32> {train.role = "param", train.name = "x"},
    %w: tensor<5x4xf32> {train.role = "param", train.name = "w"},
    %t: tensor<6xi64> {train.role = "target", train.name = "t"},
    %c: tensor<6xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64, ignore_index = 2 : i64, label_smoothing = 3.0e-01} : (tensor<6x4xf32>, tensor<5x4xf32>, tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>)
  %weighted = train.mul %y, %c : tensor<6xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @hidden_only
// CHECK: return %{{[^,]*}}, %hidden_grad :
func.func @hidden_only(
    %x: tensor<6x4xf32> {train.role = "param", train.name = "x"},
    %w: tensor<5x4xf32> {train.role = "input", train.name = "w"},
    %t: tensor<6xi32> {train.role = "target", train.name = "t"},
    %c: tensor<6xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<6x4xf32>, tensor<5x4xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %weighted = train.mul %y, %c : tensor<6xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @weight_only
// CHECK: return %{{[^,]*}}, %weight_grad :
func.func @weight_only(
    %x: tensor<6x4xf32> {train.role = "input", train.name = "x"},
    %w: tensor<4x5xf32> {train.role = "param", train.name = "w"},
    %t: tensor<6xi32> {train.role = "target", train.name = "t"},
    %c: tensor<6xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 0 : i64} : (tensor<6x4xf32>, tensor<4x5xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %weighted = train.mul %y, %c : tensor<6xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
