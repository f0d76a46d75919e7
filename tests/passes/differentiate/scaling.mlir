// RUN: tessera-opt %s --differentiate | FileCheck %s
// Products of the gradients of a product that is to be computed in 8 bits are so, too, and say what their operands are.

// CHECK-LABEL: func @outputs_inputs
// CHECK: %[[Y:.*]] = train.dot_general %[[X:arg[0-9]+]], %[[W:arg[0-9]+]] {{.*}}scaling = #train.scaling<rowwise, activation, weight>}
// CHECK-DAG: train.dot_general %{{.*}}, %[[W]] {{.*}}scaling = #train.scaling<rowwise, gradient, weight>, train.backward} : (tensor<4x3x5xf32>, tensor<5x8xf32>) -> tensor<4x3x8xf32>
// CHECK-DAG: train.dot_general %{{.*}}, %[[X]] {{.*}}scaling = #train.scaling<rowwise, gradient, activation>, train.backward} : (tensor<4x3x5xf32>, tensor<4x3x8xf32>) -> tensor<5x8xf32>
func.func @outputs_inputs(
    %x: tensor<4x3x8xf32> {train.role = "param", train.name = "x"},
    %w: tensor<5x8xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<4x3x8xf32>, tensor<5x8xf32>) -> tensor<4x3x5xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2>} : (tensor<4x3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// The gradient of a weight that is stored as inputs x outputs is the product of the exchanged operands.
// CHECK-LABEL: func @inputs_outputs
// CHECK: train.dot_general %[[X:arg[0-9]+]], %[[W:arg[0-9]+]] {{.*}}scaling = #train.scaling<tensorwise, activation, weight>}
// CHECK-DAG: train.dot_general %{{.*}}, %[[W]] {{.*}}scaling = #train.scaling<tensorwise, gradient, weight>, train.backward} : (tensor<4x5xf32>, tensor<8x5xf32>) -> tensor<4x8xf32>
// CHECK-DAG: train.dot_general %[[X]], %{{.*}} {{.*}}scaling = #train.scaling<tensorwise, activation, gradient>, train.backward} : (tensor<4x8xf32>, tensor<4x5xf32>) -> tensor<8x5xf32>
func.func @inputs_outputs(
    %x: tensor<4x8xf32> {train.role = "param", train.name = "x"},
    %w: tensor<8x5xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<tensorwise, activation, weight>} : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<4x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// A weight behind a transpose: its gradient is built in its own layout, and the kinds are exchanged with the operands.
// CHECK-LABEL: func @transposed
// CHECK: train.dot_general %[[X:arg[0-9]+]], %[[T:[0-9]+]] {{.*}}scaling = #train.scaling<mxfp8, activation, weight>}
// CHECK-DAG: train.dot_general %{{.*}}, %[[T]] {{.*}}scaling = #train.scaling<mxfp8, gradient, weight>, train.backward} : (tensor<4x5xf32>, tensor<8x5xf32>) -> tensor<4x8xf32>
// CHECK-DAG: %[[DW:[0-9]+]] = train.dot_general %{{.*}}, %[[X]] {{.*}}scaling = #train.scaling<mxfp8, gradient, activation>, train.backward} : (tensor<4x5xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
// CHECK: return {{.*}}%[[DW]]
func.func @transposed(
    %x: tensor<4x8xf32> {train.role = "param", train.name = "x"},
    %w: tensor<5x8xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}) {
  %t = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<5x8xf32>) -> tensor<8x5xf32>
  %y = train.dot_general %x, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<4x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// The weight on the left.
// CHECK-LABEL: func @left
// CHECK: train.dot_general %[[W:arg[0-9]+]], %[[X:arg[0-9]+]] {{.*}}scaling = #train.scaling<block128, weight, activation>}
// CHECK-DAG: scaling = #train.scaling<block128, gradient, weight>, train.backward} : {{.*}} -> tensor<4x8xf32>
// CHECK-DAG: scaling = #train.scaling<block128, gradient, activation>, train.backward} : {{.*}} -> tensor<5x8xf32>
func.func @left(
    %w: tensor<5x8xf32> {train.role = "param", train.name = "w"},
    %x: tensor<4x8xf32> {train.role = "param", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %w, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<block128, weight, activation>} : (tensor<5x8xf32>, tensor<4x8xf32>) -> tensor<5x4xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<5x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// A product without it has none.
// CHECK-LABEL: func @none
// CHECK-NOT: scaling
func.func @none(
    %x: tensor<4x8xf32> {train.role = "param", train.name = "x"},
    %w: tensor<5x8xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<4x5xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<4x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
