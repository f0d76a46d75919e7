// Where what arranges elements leaves the samples of a batch, if that is marked (train.grows, train.own_rows).
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:loss}))' -split-input-file | FileCheck %s

// Two inputs that are joined are two blocks of samples, groups of two samples are a sample; a lookup of each in its own rows.
// CHECK-LABEL: func @arranged
// CHECK-SAME: train.loss_of_batch = "sum"
func.func @arranged(%x: tensor<4xf32> {train.role = "input", train.name = "x"}, %y: tensor<4xf32> {train.role = "input", train.name = "y"}, %i: tensor<4xi64> {train.role = "input", train.name = "i"})
    -> (tensor<f32> {train.role = "output", train.name = "loss"}) attributes {train.batch_groups = 2 : i64, train.batch_parts = 2 : i64} {
  %both = train.concat %x, %y {dim = 0 : i64, train.grows = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %second = train.slice %both {starts = array<i64: 4>, limits = array<i64: 8>, strides = array<i64: 1>, train.grows = 0 : i64} : (tensor<8xf32>) -> tensor<4xf32>
  %odd = train.slice %second {starts = array<i64: 1>, limits = array<i64: 4>, strides = array<i64: 2>, train.grows = 0 : i64} : (tensor<4xf32>) -> tensor<2xf32>
  %groups = train.reshape %x {train.grows = 0 : i64} : (tensor<4xf32>) -> tensor<2x2xf32>
  %largest = train.reduce max, %groups {dimensions = array<i64: 1>} : (tensor<2x2xf32>) -> tensor<2xf32>
  %product = train.mul %odd, %largest : tensor<2xf32>
  %place = train.iota {dim = 0 : i64} : tensor<4xi64>
  %index = train.add %i, %place : tensor<4xi64>
  %own = train.gather_rows %x, %index {train.own_rows} : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %a = train.reduce sum, %product {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %b = train.reduce sum, %own {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %loss = train.add %a, %b : tensor<f32>
  return %loss : tensor<f32>
}

// -----
// Not applied because a half of a batch is not a block; because the dimension of the groups does not grow; because the lookup may read any row.
// CHECK-LABEL: func @half
// CHECK-NOT: train.loss_of_batch
// CHECK: train.slice
func.func @half(%x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) attributes {train.batch_groups = 2 : i64, train.batch_parts = 1 : i64} {
  %half = train.slice %x {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>, train.grows = 0 : i64} : (tensor<4xf32>) -> tensor<2xf32>
  %loss = train.reduce sum, %half {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----
// CHECK-LABEL: func @parts
// CHECK-NOT: train.loss_of_batch
// CHECK: train.reshape
func.func @parts(%x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) attributes {train.batch_groups = 2 : i64, train.batch_parts = 1 : i64} {
  %parts = train.reshape %x {train.grows = 1 : i64} : (tensor<4xf32>) -> tensor<2x2xf32>
  %largest = train.reduce max, %parts {dimensions = array<i64: 1>} : (tensor<2x2xf32>) -> tensor<2xf32>
  %loss = train.reduce sum, %largest {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----
// CHECK-LABEL: func @others
// CHECK-NOT: train.loss_of_batch
// CHECK: train.gather_rows
func.func @others(%x: tensor<4xf32> {train.role = "input", train.name = "x"}, %i: tensor<4xi64> {train.role = "input", train.name = "i"}) -> (tensor<f32> {train.role = "output", train.name = "loss"})
    attributes {train.batch_groups = 4 : i64, train.batch_parts = 1 : i64} {
  %rows = train.gather_rows %x, %i : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %loss = train.reduce sum, %rows {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----
// Not applied because a part begins behind the first group.
// CHECK-LABEL: func @behind
// CHECK-NOT: train.loss_of_batch
// CHECK: train.slice
func.func @behind(%x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) attributes {train.batch_groups = 2 : i64, train.batch_parts = 1 : i64} {
  %odd = train.slice %x {starts = array<i64: 2>, limits = array<i64: 4>, strides = array<i64: 2>, train.grows = 0 : i64} : (tensor<4xf32>) -> tensor<1xf32>
  %loss = train.reduce sum, %odd {dimensions = array<i64: 0>} : (tensor<1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
