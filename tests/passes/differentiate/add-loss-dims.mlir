// RUN: tessera-opt %s --add-loss=kind=cross-entropy -split-input-file | FileCheck %s
// RUN: tessera-opt %s --add-loss=kind=cross-entropy --accumulate-gradients=count=2 -split-input-file | FileCheck %s --check-prefix=MICRO

// Targets have the roles of the output's dimensions, which are those of the input along the ops between them.
// CHECK-LABEL: func @time_first
// CHECK-SAME: tensor<3x4xi32> {train.dims = #train.dims<[position, sample]>, train.name = "targets"
// MICRO-LABEL: func @time_first
// MICRO-SAME: tensor<2x3x4x2xf32> {train.dims = #train.dims<[micro_batch, position, sample, none]>
// MICRO-SAME: tensor<5x7xf32> {train.dims = #train.dims<[none, none]>
// MICRO-SAME: tensor<2x3x4xi32> {train.dims = #train.dims<[micro_batch, position, sample]>
func.func @time_first(%w: tensor<2x6xf32> {train.role = "param", train.name = "w"},
                      %x: tensor<3x4x2xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[position, sample, none]>},
                      %t: tensor<5x7xf32> {train.role = "input", train.name = "t", train.dims = #train.dims<[none, none]>})
    -> (tensor<3x4x6xf32> {train.role = "output", train.name = "y"}) {
  %r = train.reshape %x : (tensor<3x4x2xf32>) -> tensor<12x2xf32>
  %p = train.dot_general %r, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<12x2xf32>, tensor<2x6xf32>) -> tensor<12x6xf32>
  %y = train.reshape %p : (tensor<12x6xf32>) -> tensor<3x4x6xf32>
  return %y : tensor<3x4x6xf32>
}

// -----

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
