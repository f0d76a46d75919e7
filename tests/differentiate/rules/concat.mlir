// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// The middle operand needs no gradient.
// CHECK-LABEL: func @concat
// CHECK: train.slice %{{.*}} {limits = array<i64: 3, 2>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>, train.backward}
// CHECK-NOT: train.slice {{.*}}tensor<3x1xf32>
// CHECK: train.slice %{{.*}} {limits = array<i64: 3, 6>, starts = array<i64: 0, 3>, strides = array<i64: 1, 1>, train.backward}
func.func @concat(
    %a: tensor<3x2xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x1xf32> {train.role = "input", train.name = "b"},
    %d: tensor<3x3xf32> {train.role = "param", train.name = "d"},
    %c: tensor<3x6xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.concat %a, %b, %d {dim = 1 : i64} : (tensor<3x2xf32>, tensor<3x1xf32>, tensor<3x3xf32>) -> tensor<3x6xf32>
  %weighted = train.mul %y, %c : tensor<3x6xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
