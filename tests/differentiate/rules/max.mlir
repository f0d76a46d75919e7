// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet
// RUN: tessera-opt %S/Inputs/max-ties.mlir --differentiate | tessera-interp - --digest | FileCheck %s --check-prefix=TIES

// Each of two equal operands receives half of the gradient.
// TIES: [0.5, 0.5, 0.5, 0.5]

// CHECK-LABEL: func @max
// CHECK: train.compare eq, %arg0, %arg1 {train.backward}
// CHECK: train.compare gt, %arg0, %arg1 {train.backward}
// CHECK: train.compare gt, %arg1, %arg0 {train.backward}
func.func @max(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.max %a, %b : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Only the left operand needs a gradient.
// CHECK-LABEL: func @max_lhs
// CHECK-NOT: train.compare gt, %arg1, %arg0
// CHECK: return
func.func @max_lhs(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "input", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.max %a, %b : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Only the right operand needs a gradient.
// CHECK-LABEL: func @max_rhs
// CHECK-NOT: train.compare gt, %arg0, %arg1
// CHECK: return
func.func @max_rhs(
    %a: tensor<3x4xf32> {train.role = "input", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.max %a, %b : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// A constant is an operand like others.
// CHECK-LABEL: func @with_constant
// CHECK: train.compare eq, %arg0, %{{.*}} {train.backward}
// CHECK: train.compare gt, %arg0, %{{.*}} {train.backward}
func.func @with_constant(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %zero = train.constant dense<0.0> : tensor<3x4xf32>
  %y = train.max %w, %zero : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
