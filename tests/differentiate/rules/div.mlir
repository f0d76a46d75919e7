// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @div
// CHECK: %[[X:.*]] = train.exp %arg1
// CHECK: %[[Y:.*]] = train.div
// CHECK: %[[DA:.*]] = train.div %{{.*}}, %[[X]] {train.backward}
// CHECK: train.mul %[[DA]], %[[Y]] {train.backward}
// CHECK: train.neg
func.func @div(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %b : tensor<3x4xf32>
  %y = train.div %a, %x : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Only the left operand needs a gradient.
// CHECK-LABEL: func @div_lhs
// CHECK-NOT: train.neg
// CHECK: return
func.func @div_lhs(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "input", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %b : tensor<3x4xf32>
  %y = train.div %a, %x : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Only the right operand needs a gradient.
// CHECK-LABEL: func @div_rhs
// CHECK: train.neg
func.func @div_rhs(
    %a: tensor<3x4xf32> {train.role = "input", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %b : tensor<3x4xf32>
  %y = train.div %a, %x : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
