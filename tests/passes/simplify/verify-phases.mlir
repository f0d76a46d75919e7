// RUN: tessera-opt %s --verify-phases -split-input-file -verify-diagnostics | FileCheck %s

// What only the gradient needs is marked, and what the loss needs is not; the norm of gradients is neither's.
// CHECK-LABEL: func @agrees
func.func @agrees(%w: tensor<4xf32> {train.role = "param", train.name = "w"})
    -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.role = "grad", train.of = "w"},
        tensor<f32> {train.role = "metric", train.name = "grad_norm"}) {
  %loss = train.reduce sum, %w {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  // Folding may share a constant.
  %one = train.constant {train.backward} dense<1.0> : tensor<f32>
  %scaled = train.mul %loss, %one : tensor<f32>
  // CHECK: train.broadcast {{.*}}train.backward
  %g = train.broadcast %one {broadcast_dimensions = array<i64>, train.backward} : (tensor<f32>) -> tensor<4xf32>
  %norm = train.reduce sum, %g {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %scaled, %g, %norm : tensor<f32>, tensor<4xf32>, tensor<f32>
}

// -----

func.func @loss(%w: tensor<4xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}) {
  // expected-error @below {{is marked as backward, but the loss or an output needs it}}
  %loss = train.reduce sum, %w {dimensions = array<i64: 0>, train.backward} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The sum that an evaluation gives is forward, too.
func.func @evaluate(%w: tensor<4xf32> {train.role = "param", train.name = "w"})
    -> (tensor<f32> {train.role = "loss_sum"}, tensor<f32> {train.role = "loss_count"}) attributes {train.program = "evaluate"} {
  // expected-error @below {{is marked as backward, but the loss or an output needs it}}
  %sum = train.reduce sum, %w {dimensions = array<i64: 0>, train.backward} : (tensor<4xf32>) -> tensor<f32>
  %count = train.constant dense<4.0> : tensor<f32>
  return %sum, %count : tensor<f32>, tensor<f32>
}

// -----

// Of a loop, what is yielded for the loss is forward.
func.func @loop(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<2x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.role = "grad", train.of = "w"}) {
  %loss, %grad = train.accumulate %x {count = 2 : i64} : (tensor<2x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %m: tensor<4xf32>):
    // expected-error @below {{is marked as backward, but the loss or an output needs it}}
    %p = train.mul %m, %w {train.backward} : tensor<4xf32>
    %l = train.reduce sum, %p {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    %g = train.neg %m {train.backward} : tensor<4xf32>
    train.yield %l, %g : tensor<f32>, tensor<4xf32>
  }
  return %loss, %grad : tensor<f32>, tensor<4xf32>
}

// -----

// Without roles there are no phases.
// CHECK-LABEL: func @other
func.func @other(%w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = train.neg %w {train.backward} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
