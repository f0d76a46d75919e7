// RUN: tessera-opt %s --differentiate -split-input-file -verify-diagnostics | FileCheck %s

// Gradients flow through values that depend on a parameter and that the loss depends on; nothing else gets one.

// A frozen argument has no gradient, and a stop_gradient ends the walk.
// CHECK-LABEL: func @inactive
// CHECK-SAME: -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.of = "w", train.role = "grad"})
// CHECK-NOT: train.exp {{.*}}train.backward
// CHECK: return
func.func @inactive(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %f: tensor<4xf32> {train.role = "frozen", train.name = "f"}) -> (tensor<f32> {train.role = "loss"}) {
  %e = train.exp %w : tensor<4xf32>
  %s = train.stop_gradient %e : tensor<4xf32>
  %g = train.mul %s, %f : tensor<4xf32>
  %y = train.mul %g, %w : tensor<4xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// An integer carries no gradient, nor does a value that the loss does not need: of three readers of %w one is differentiated.
// CHECK-LABEL: func @through_integers
// CHECK: train.tanh
// CHECK-NOT: train.exp {{.*}}train.backward
// CHECK: %[[ONE:.*]] = train.broadcast
// CHECK: return %{{.*}}, %[[ONE]]
func.func @through_integers(%w: tensor<4xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.role = "output"}) {
  %best = train.argmax %w {dim = 0 : i64} : (tensor<4xf32>) -> tensor<i32>
  %index = train.convert %best : (tensor<i32>) -> tensor<f32>
  %unused = train.tanh %w : tensor<4xf32>
  %s = train.reduce sum, %w {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %loss = train.add %s, %index : tensor<f32>
  return %loss, %unused : tensor<f32>, tensor<4xf32>
}
