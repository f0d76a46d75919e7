// RUN: tessera-opt %s --differentiate --join-loss -verify-diagnostics -split-input-file | FileCheck %s
// RUN: tessera-opt %s --differentiate --join-loss -split-input-file 2>/dev/null | tessera-opt --join-loss -split-input-file 2>/dev/null | FileCheck %s
// RUN: sed '/^\/\/ -----/d' %s > %t.mlir
// RUN: tessera-opt %t.mlir --differentiate -o %t.before.mlir
// RUN: tessera-opt %t.mlir --differentiate --join-loss -o %t.after.mlir 2>/dev/null
// RUN: tessera-interp %t.after.mlir --compare=%t.before.mlir --rtol=0 --atol=0

// The gradient of each row's loss is 1, whatever the loss is.
// CHECK-LABEL: func @sum
// CHECK: %[[G:.*]] = train.broadcast
// CHECK-NOT: train.backward
// CHECK: %[[L:.*]], %[[S:.*]], %[[DX:.*]], %[[DW:.*]] = train.linear_cross_entropy_grad %arg0, %arg1, %arg2, %[[G]] {ignore_index = 3 : i64, label_smoothing = 1.000000e-01 : f64, weight_dim = 1 : i64}
// CHECK: %[[LOSS:.*]] = train.reduce sum, %[[L]]
// CHECK-NOT: train.linear_cross_entropy
// CHECK: return %[[LOSS]], %[[DX]], %[[DW]]
func.func @sum(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %l, %s = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64, ignore_index = 3 : i64, label_smoothing = 0.1} : (tensor<6x4xf32>, tensor<10x4xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A mean over targets: their number is counted before the loss then.
// CHECK-LABEL: func @mean
// CHECK-NOT: train.backward
// CHECK: %[[N:.*]] = train.count_valid
// CHECK-NOT: train.backward
// CHECK: train.div %{{.*}}, %[[N]]
// CHECK-NOT: train.backward
// CHECK: %[[L:.*]], %[[S:.*]], %[[DX:.*]], %{{.*}} = train.linear_cross_entropy_grad
// CHECK: train.reduce sum, %[[L]]
// CHECK: train.reduce sum, %[[S]]
// What is behind the gradient of the hidden values stays part of the backward pass.
// CHECK: train.mul %[[DX]], %{{.*}} {train.backward}
// CHECK-NOT: train.linear_cross_entropy
func.func @mean(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "metric", train.name = "z"}) {
  %h = train.tanh %x : tensor<6x4xf32>
  %l, %s = train.linear_cross_entropy %h, %w, %t {weight_dim = 1 : i64, ignore_index = 3 : i64} : (tensor<6x4xf32>, tensor<10x4xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %sum = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  %z = train.reduce sum, %s {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  %n = train.count_valid %t {ignore_index = 3 : i64} : (tensor<6xi32>) -> tensor<f32>
  %loss = train.div %sum, %n : tensor<f32>
  return %loss, %z : tensor<f32>, tensor<f32>
}

// -----

// Two losses of the same hidden values: each is joined with its own gradient.
// CHECK-LABEL: func @two
// CHECK: train.linear_cross_entropy_grad %arg0, %arg1, %arg2
// CHECK: train.linear_cross_entropy_grad %arg0, %arg1, %arg3
// CHECK-NOT: train.linear_cross_entropy
// CHECK: return
func.func @two(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}, %u: tensor<6xi32> {train.role = "target", train.name = "u"}) -> (tensor<f32> {train.role = "loss"}) {
  %l, %s = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<6x4xf32>, tensor<10x4xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %m, %r = train.linear_cross_entropy %x, %w, %u {weight_dim = 1 : i64} : (tensor<6x4xf32>, tensor<10x4xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %both = train.add %l, %m : tensor<6xf32>
  %loss = train.reduce sum, %both {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Not applied: of squares it depends on the loss.
// CHECK-LABEL: func @squares
// CHECK: %[[L:.*]], %{{.*}} = train.linear_cross_entropy %arg0, %arg1, %arg2 {weight_dim = 0 : i64}
// CHECK: train.linear_cross_entropy_grad %arg0, %arg1, %arg2, %{{.*}} {train.backward, weight_dim = 0 : i64}
func.func @squares(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<4x10xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  // expected-remark@+1 {{the logits are computed twice: the gradient of each row's loss depends on the loss}}
  %l, %s = train.linear_cross_entropy %x, %w, %t {weight_dim = 0 : i64} : (tensor<6x4xf32>, tensor<4x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %squares = train.mul %l, %l : tensor<6xf32>
  %loss = train.reduce sum, %squares {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Not applied, and nothing to say: no gradient is asked for.
// CHECK-LABEL: func @no_gradient
// CHECK: train.linear_cross_entropy %
// CHECK-NOT: train.linear_cross_entropy_grad
// CHECK: return
func.func @no_gradient(%x: tensor<6x4xf32> {train.role = "input", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "input", train.name = "w"}, %v: tensor<f32> {train.role = "param", train.name = "v"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %l, %s = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<6x4xf32>, tensor<10x4xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %sum = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  %loss = train.mul %sum, %v : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Not applied: the gradient of another loss, smoothed, of other targets, of the weight the other way round.
// CHECK-LABEL: func @others
// CHECK: train.linear_cross_entropy %
// CHECK: train.linear_cross_entropy_grad %{{.*}} {label_smoothing = 1.000000e-01 : f64, weight_dim = 1 : i64}
// CHECK: train.linear_cross_entropy_grad %{{.*}} {weight_dim = 0 : i64}
// CHECK: train.linear_cross_entropy_grad %{{.*}} {ignore_index = 3 : i64, weight_dim = 1 : i64}
// CHECK: train.linear_cross_entropy_grad %arg0, %arg1, %arg3, %{{.*}} {weight_dim = 1 : i64}
func.func @others(%x: tensor<6x4xf32>, %w: tensor<4x4xf32>, %t: tensor<6xi32>, %u: tensor<6xi32>, %g: tensor<6xf32>) -> (tensor<6xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) {
  %l, %s = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<6x4xf32>, tensor<4x4xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %a:4 = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64, label_smoothing = 0.1} : (tensor<6x4xf32>, tensor<4x4xf32>, tensor<6xi32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>, tensor<4x4xf32>)
  %b:4 = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 0 : i64} : (tensor<6x4xf32>, tensor<4x4xf32>, tensor<6xi32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>, tensor<4x4xf32>)
  %c:4 = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64, ignore_index = 3 : i64} : (tensor<6x4xf32>, tensor<4x4xf32>, tensor<6xi32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>, tensor<4x4xf32>)
  %d:4 = train.linear_cross_entropy_grad %x, %w, %u, %g {weight_dim = 1 : i64} : (tensor<6x4xf32>, tensor<4x4xf32>, tensor<6xi32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>, tensor<4x4xf32>)
  return %l, %a#2, %b#2, %c#2, %d#2 : tensor<6xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
}
