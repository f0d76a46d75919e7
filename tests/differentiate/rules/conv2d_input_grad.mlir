// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// A transposed convolution is the gradient of a convolution as a forward op; its own gradients are a convolution and the
// gradient of its filter.

// CHECK-LABEL: func @transposed
// CHECK: train.conv2d %{{.*}}, %arg1 {dilations = array<i64: 1, 2>, groups = 2 : i64, padding = array<i64: 1, 0, 0, 0>, strides = array<i64: 2, 1>, train.backward}
// CHECK: train.conv2d_filter_grad %{{.*}}, %arg0 {{.*}}train.backward
func.func @transposed(
    %x: tensor<2x4x3x4xf32> {train.role = "param", train.name = "x"},
    %f: tensor<4x1x3x2xf32> {train.role = "param", train.name = "f"},
    %c: tensor<2x2x6x6xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.conv2d_input_grad %x, %f {strides = array<i64: 2, 1>, padding = array<i64: 1, 0, 0, 0>, dilations = array<i64: 1, 2>, groups = 2 : i64} : (tensor<2x4x3x4xf32>, tensor<4x1x3x2xf32>) -> tensor<2x2x6x6xf32>
  %weighted = train.mul %y, %c : tensor<2x2x6x6xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x2x6x6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
