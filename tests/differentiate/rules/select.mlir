// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @select
// CHECK: %[[P:.*]] = train.compare gt
// CHECK: %[[DA:.*]] = train.select %[[P]], %[[G:.*]], %[[Z:.*]] {train.backward}
// CHECK: %[[DB:.*]] = train.select %[[P]], %[[Z]], %[[G]] {train.backward}
// CHECK: return %{{.*}}, %[[DA]], %[[DB]]
func.func @select(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "param", train.name = "b"},
    %x: tensor<3x4xf32> {train.role = "input", train.name = "x"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %zero = train.constant dense<0.0> : tensor<3x4xf32>
  %p = train.compare gt, %x, %zero : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
  %y = train.select %p, %a, %b : tensor<3x4xi1>, tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @select_one
// CHECK: return %{{[^,]*}}, %{{[^,]*}} :
func.func @select_one(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "input", train.name = "b"},
    %x: tensor<3x4xf32> {train.role = "input", train.name = "x"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %zero = train.constant dense<0.0> : tensor<3x4xf32>
  %p = train.compare gt, %x, %zero : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
  %y = train.select %p, %a, %b : tensor<3x4xi1>, tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// The predicate takes no gradient.
// CHECK-LABEL: func @relu
// CHECK: train.select {{.*}}train.backward
func.func @relu(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %zero = train.constant dense<0.0> : tensor<3x4xf32>
  %p = train.compare gt, %a, %zero : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
  %y = train.select %p, %a, %zero : tensor<3x4xi1>, tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
