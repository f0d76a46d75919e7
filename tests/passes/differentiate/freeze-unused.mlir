// RUN: tessera-opt %s --freeze-unused -split-input-file -verify-diagnostics | FileCheck %s

// No gradient reaches what the loss does not read, what only an index or a comparison reads, and what is behind a
// stop_gradient. `floor` has the gradient zero, which is one.
// CHECK-LABEL: func @step
// CHECK-SAME: train.name = "w", train.role = "param"
// CHECK-SAME: train.name = "floored", train.role = "param"
// CHECK-SAME: train.name = "unread", train.role = "frozen"
// CHECK-SAME: train.name = "dead", train.role = "frozen"
// CHECK-SAME: train.name = "compared", train.role = "frozen"
// CHECK-SAME: train.name = "stopped", train.role = "frozen"
// CHECK-SAME: train.name = "x", train.role = "input"
func.func @step(%w: tensor<f32> {train.role = "param", train.name = "w"},
                %f: tensor<f32> {train.role = "param", train.name = "floored"},
                // expected-warning@+1 {{no gradient of the loss reaches parameter 'unread': it stays as it is, as in PyTorch}}
                %unread: tensor<3xf32> {train.role = "param", train.name = "unread"},
                // expected-warning@+1 {{no gradient of the loss reaches parameter 'dead'}}
                %dead: tensor<f32> {train.role = "param", train.name = "dead"},
                // expected-warning@+1 {{no gradient of the loss reaches parameter 'compared'}}
                %c: tensor<f32> {train.role = "param", train.name = "compared"},
                // expected-warning@+1 {{no gradient of the loss reaches parameter 'stopped'}}
                %s: tensor<f32> {train.role = "param", train.name = "stopped"},
                %x: tensor<f32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %unused = train.exp %dead : tensor<f32>
  %stopped = train.stop_gradient %s : tensor<f32>
  %floored = train.floor %f : tensor<f32>
  %above = train.compare gt, %c, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %chosen = train.select %above, %w, %stopped : tensor<i1>, tensor<f32>
  %loss = train.add %chosen, %floored : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Not applied to all: nothing would train.
// CHECK-LABEL: func @none
// CHECK-SAME: train.role = "param"
// expected-warning@+1 {{the loss does not depend on any parameter}}
func.func @none(%w: tensor<f32> {train.role = "param", train.name = "w"},
                %x: tensor<f32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  return %x : tensor<f32>
}

// -----

// Not applied to a function that is no step.
// CHECK-LABEL: func @other
func.func @other(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error@+1 {{expected one result of role "loss", got 0}}
func.func @no_loss(%w: tensor<f32> {train.role = "param", train.name = "w"}) -> tensor<f32> {
  return %w : tensor<f32>
}
