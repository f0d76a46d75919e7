// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=selective}))' | FileCheck %s

// A product and its bias are kept as one value: the sum, of which GELU and its slope are made again. Nothing is added a
// second time.

// CHECK-LABEL: func.func @biased
// CHECK: %[[P:.*]] = train.dot_general
// CHECK: %[[Z:.*]] = train.add %[[P]]
// CHECK: train.barrier %[[Z]] {{.*}}train.recompute
// CHECK-NOT: train.barrier %[[P]]
// CHECK-NOT: train.add {{.*}}train.recompute
// CHECK: train.tanh {{.*}}train.recompute
func.func @biased(%w: tensor<4x4xf32> {train.role = "param", train.name = "w"}, %b: tensor<4xf32> {train.role = "param", train.name = "b"},
                  %x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %v = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<4x4xf32>
  %z = train.add %p, %v : tensor<4x4xf32>
  %h = train.tanh %z : tensor<4x4xf32>
  %d = train.mul %h, %h : tensor<4x4xf32>
  %loss = train.reduce sum, %d {dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Not where something else reads the product, which then would be kept besides.

// CHECK-LABEL: func.func @read_twice
// CHECK: %[[P:.*]] = train.dot_general
// CHECK: train.barrier %[[P]] {{.*}}train.recompute
// CHECK: train.add {{.*}}train.recompute
func.func @read_twice(%w: tensor<4x4xf32> {train.role = "param", train.name = "w"}, %b: tensor<4xf32> {train.role = "param", train.name = "b"},
                      %x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %v = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<4x4xf32>
  %z = train.add %p, %v : tensor<4x4xf32>
  %h = train.tanh %z : tensor<4x4xf32>
  %s = train.sin %p : tensor<4x4xf32>
  %d = train.mul %h, %s : tensor<4x4xf32>
  %loss = train.reduce sum, %d {dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nor where what is added is no parameter.

// CHECK-LABEL: func.func @residual
// CHECK: %[[P:.*]] = train.dot_general
// CHECK: train.barrier %[[P]] {{.*}}train.recompute
func.func @residual(%w: tensor<4x4xf32> {train.role = "param", train.name = "w"},
                    %x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = train.add %p, %x : tensor<4x4xf32>
  %h = train.tanh %z : tensor<4x4xf32>
  %d = train.mul %h, %h : tensor<4x4xf32>
  %loss = train.reduce sum, %d {dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
