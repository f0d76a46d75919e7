// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @sub
// CHECK: %[[G:.*]] = train.mul {{.*}} {train.backward}
// CHECK: %[[N:.*]] = train.neg %[[G]] {train.backward}
// CHECK: return %{{.*}}, %[[G]], %[[N]]
func.func @sub(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.sub %a, %b : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Only the left operand needs a gradient.
// CHECK-LABEL: func @sub_lhs
// CHECK-NOT: train.neg
// CHECK: return
func.func @sub_lhs(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "input", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.sub %a, %b : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Only the right operand needs a gradient.
// CHECK-LABEL: func @sub_rhs
// CHECK: train.neg %{{.*}} {train.backward}
func.func @sub_rhs(
    %a: tensor<3x4xf32> {train.role = "input", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.sub %a, %b : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
