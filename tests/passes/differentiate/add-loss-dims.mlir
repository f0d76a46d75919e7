// RUN: tessera-opt %s --add-loss=kind=cross-entropy -split-input-file | FileCheck %s

// Where no input says anything, a target says nothing either: the same is assumed of both.
// CHECK-LABEL: func @assumed
// CHECK-SAME: tensor<4x2xi32> {train.name = "targets"
func.func @assumed(%x: tensor<4x2x6xf32> {train.role = "input", train.name = "x"})
    -> (tensor<4x2x6xf32> {train.role = "output", train.name = "y"}) {
  return %x : tensor<4x2x6xf32>
}

// -----

// The classes of a contrastive loss are the samples of the batch.
// CHECK-LABEL: func @contrastive
// CHECK-SAME: tensor<4xi32> {train.dims = #train.dims<[sample]>, train.name = "targets"
func.func @contrastive(%x: tensor<4x2xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, none]>})
    -> (tensor<4x4xf32> {train.role = "output", train.name = "y"}) {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
