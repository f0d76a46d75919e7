// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @conv2d
// CHECK: train.conv2d_input_grad %{{.*}}, %arg1 {dilations = array<i64: 1, 1>, padding = array<i64: 1, 0, 1, 0>, strides = array<i64: 2, 1>, train.backward}
// CHECK: train.conv2d_filter_grad %arg0, %{{.*}} {{.*}}train.backward
func.func @conv2d(
    %x: tensor<2x3x5x4xf32> {train.role = "param", train.name = "x"},
    %f: tensor<2x3x3x2xf32> {train.role = "param", train.name = "f"},
    %c: tensor<2x2x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.conv2d %x, %f {strides = array<i64: 2, 1>, padding = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x5x4xf32>, tensor<2x3x3x2xf32>) -> tensor<2x2x3x3xf32>
  %weighted = train.mul %y, %c : tensor<2x2x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x2x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @conv2d_groups
// CHECK: train.conv2d_input_grad {{.*}}groups = 2 : i64
func.func @conv2d_groups(
    %x: tensor<1x4x4x4xf32> {train.role = "param", train.name = "x"},
    %f: tensor<4x2x2x2xf32> {train.role = "param", train.name = "f"},
    %c: tensor<1x4x2x2xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.conv2d %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 2, 2>, groups = 2 : i64} : (tensor<1x4x4x4xf32>, tensor<4x2x2x2xf32>) -> tensor<1x4x2x2xf32>
  %weighted = train.mul %y, %c : tensor<1x4x2x2xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x4x2x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @conv2d_filter_only
// CHECK-NOT: train.conv2d_input_grad
// CHECK: train.conv2d_filter_grad
func.func @conv2d_filter_only(
    %x: tensor<1x1x4x4xf32> {train.role = "input", train.name = "x"},
    %f: tensor<1x1x2x2xf32> {train.role = "param", train.name = "f"},
    %c: tensor<1x1x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.conv2d %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x4x4xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x3x3xf32>
  %weighted = train.mul %y, %c : tensor<1x1x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
