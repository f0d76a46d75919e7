// Samples in a dimension that is not the first, and inside of blocks of a merged one.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:loss}))' -split-input-file | FileCheck %s

// Samples that are not the major part of merged dimensions: a mean over them is one over the batch.
// CHECK-LABEL: func @time_first
// CHECK: attributes {train.loss_of_batch = "mean"}
func.func @time_first(%w: tensor<6x6xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3x6xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %t = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x6xf32>) -> tensor<3x4x6xf32>
  %m = train.reshape %t : (tensor<3x4x6xf32>) -> tensor<12x6xf32>
  %y = train.dot_general %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<12x6xf32>, tensor<6x6xf32>) -> tensor<12x6xf32>
  %b = train.reshape %y : (tensor<12x6xf32>) -> tensor<3x4x6xf32>
  %sum = train.reduce sum, %b {dimensions = array<i64: 0, 1, 2>, train.mean} : (tensor<3x4x6xf32>) -> tensor<f32>
  %n = train.constant dense<72.0> : tensor<f32>
  %loss = train.div %sum, %n : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Rows of one order times rows of the other are of different samples: nothing is said.
// CHECK-LABEL: func @mixed
// CHECK-NOT: train.loss_of_batch
func.func @mixed(%w: tensor<6x6xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3x6xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %t = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x6xf32>) -> tensor<3x4x6xf32>
  %m = train.reshape %t : (tensor<3x4x6xf32>) -> tensor<12x6xf32>
  %o = train.reshape %x : (tensor<4x3x6xf32>) -> tensor<12x6xf32>
  %y = train.mul %m, %o : tensor<12x6xf32>
  %sum = train.reduce sum, %y {dimensions = array<i64: 0, 1>, train.mean} : (tensor<12x6xf32>) -> tensor<f32>
  %n = train.constant dense<72.0> : tensor<f32>
  %loss = train.div %sum, %n : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A sum of no elements is a sum all the same.
// CHECK-LABEL: func @empty
// CHECK-SAME: train.loss_of_batch = "sum"
func.func @empty(%w: tensor<6xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x0x6xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %t = train.reshape %x : (tensor<4x0x6xf32>) -> tensor<0x4x6xf32>
  %s = train.reduce sum, %t {dimensions = array<i64: 0, 1, 2>} : (tensor<0x4x6xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
