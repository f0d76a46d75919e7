// RUN: tessera-opt %s --add-loss=kind=mse -split-input-file -verify-diagnostics | FileCheck %s
// RUN: not tessera-opt %s --add-loss=kind=mse --accumulate-gradients=count=2 -split-input-file 2>/dev/null | FileCheck %s --check-prefix=MICRO
// RUN: not tessera-opt %s --add-loss=kind=mse --accumulate-gradients=count=2 -split-input-file 2>&1 >/dev/null | FileCheck %s --check-prefix=REFUSED

// What the dimensions of an output count, as the targets say that add-loss makes for it.

// Roles follow the ops between input and output; what a parameter adds counts nothing. Merged dimensions keep theirs, to
// be parted again.
// CHECK-LABEL: func @time_first
// CHECK-SAME: tensor<3x4x6xf32> {train.dims = #train.dims<[position, sample, none]>, train.name = "targets"
// MICRO-LABEL: func @time_first
// MICRO-SAME: tensor<2x3x4x2xf32> {train.dims = #train.dims<[micro_batch, position, sample, none]>
// MICRO-SAME: tensor<5x7xf32> {train.dims = #train.dims<[none, none]>
// MICRO-SAME: tensor<2x3x4x6xf32> {train.dims = #train.dims<[micro_batch, position, sample, none]>
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

// A dimension that is reduced takes its role with it, one that moves keeps it. An operand without a role says nothing
// against the other's, but has a value for each place in the batch.
// REFUSED: cannot be split into micro-batches: 'train.add' combines the samples of a batch with what depends on their place
// CHECK-LABEL: func @reduced
// CHECK-SAME: tensor<2x4xf32> {train.dims = #train.dims<[none, sample]>, train.name = "targets"
func.func @reduced(%x: tensor<4x3x2xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, position, none]>},
                   %t: tensor<2x4xf32> {train.role = "input", train.name = "t", train.dims = #train.dims<[none, none]>})
    -> (tensor<2x4xf32> {train.role = "output", train.name = "y"}) {
  %s = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<4x3x2xf32>) -> tensor<4x2xf32>
  %m = train.transpose %s {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %y = train.add %m, %t : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// Not applied because the dimension is made of several: neither of both is what it counts.
// expected-error@+1 {{mse needs an output with a value for each sample, got 'tensor<12x2xf32>', whose dimension 0 is not the batch of the inputs}}
func.func @merged(%x: tensor<4x3x2xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, position, none]>})
    -> (tensor<12x2xf32> {train.role = "output", train.name = "y"}) {
  %y = train.reshape %x : (tensor<4x3x2xf32>) -> tensor<12x2xf32>
  return %y : tensor<12x2xf32>
}

// -----

// Not applied because what was merged is parted elsewhere: of 2 positions of 4 samples, 4 rows of 2 are neither.
// REFUSED: cannot be split into micro-batches: 'train.reshape' leaves no dimension that counts samples
// CHECK-LABEL: func @parted
// CHECK-SAME: tensor<4x2xf32> {train.dims = #train.dims<[sample, none]>, train.name = "targets"
// expected-remark@+1 {{dimension 0 of the output is taken for samples: it is as large as the batch, but the ops that make it do not say what it counts}}
func.func @parted(%x: tensor<2x4xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[position, sample]>})
    -> (tensor<4x2xf32> {train.role = "output", train.name = "y"}) {
  %r = train.reshape %x : (tensor<2x4xf32>) -> tensor<8xf32>
  %y = train.reshape %r : (tensor<8xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

// Not applied because the operands disagree: samples of one stand where positions of the other do.
// REFUSED: cannot be split into micro-batches: 'train.mul' lets the samples of a batch influence each other
// CHECK-LABEL: func @disagree
// CHECK-SAME: tensor<4x4xf32> {train.dims = #train.dims<[sample, none]>, train.name = "targets"
// expected-remark@+1 {{dimension 0 of the output is taken for samples}}
func.func @disagree(%x: tensor<4x4xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, position]>})
    -> (tensor<4x4xf32> {train.role = "output", train.name = "y"}) {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = train.mul %x, %t : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
