// RUN: tessera-opt %s --differentiate -split-input-file -verify-diagnostics -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s

// One result of role "grad" per parameter, in argument order; weights' gradients are products without transposes.
// CHECK-LABEL: func @mlp
// CHECK-SAME: train.role = "loss"
// CHECK-SAME: train.of = "w1", train.role = "grad"
// CHECK-SAME: train.of = "w2", train.role = "grad"
func.func @mlp(%w1: tensor<4x8xf32> {train.role = "param", train.name = "w1"},
               %w2: tensor<2x8xf32> {train.role = "param", train.name = "w2"},
               %x: tensor<3x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  // CHECK: %[[H:.*]] = train.dot_general %arg2, %arg0
  %h = train.dot_general %x, %w1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  // CHECK: %[[T:.*]] = train.tanh
  %t = train.tanh %h : tensor<3x8xf32> loc("act")
  %y = train.dot_general %t, %w2 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<3x8xf32>, tensor<2x8xf32>) -> tensor<3x2xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<3x2xf32>) -> tensor<f32>
  // CHECK: %[[ONE:.*]] = train.constant {train.backward} dense<1.0
  // CHECK: %[[DY:.*]] = train.broadcast %[[ONE]] {{.*}}train.backward
  // CHECK: %[[DT:.*]] = train.dot_general %[[DY]], %arg1 {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>, train.backward}
  // CHECK: %[[DW2:.*]] = train.dot_general %[[DY]], %[[T]] {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>, train.backward} : (tensor<3x2xf32>, tensor<3x8xf32>) -> tensor<2x8xf32>
  // CHECK: train.mul %[[T]], %[[T]] {train.backward} : tensor<3x8xf32> loc("grad"("act"))
  // CHECK: %[[DW1:.*]] = train.dot_general %arg2, {{.*}}train.backward} : (tensor<3x4xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  // CHECK-NOT: train.transpose
  // CHECK: return %{{.*}}, %[[DW1]], %[[DW2]]
  return %loss : tensor<f32>
}

// -----

// No gradient reaches %b: `freeze-unused` has not run.
// CHECK-LABEL: func @unused
// CHECK: %[[ZERO:.*]] = train.constant {train.backward} dense<0.0{{.*}}> : tensor<3xf32>
// CHECK: return %{{.*}}, %{{.*}}, %[[ZERO]]
func.func @unused(%w: tensor<f32> {train.role = "param", train.name = "w"},
                  %b: tensor<3xf32> {train.role = "param", train.name = "b"}) -> (tensor<f32> {train.role = "loss"}) {
  %loss = train.exp %w : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{expected one result of role "loss", got 0}}
func.func @no_loss(%w: tensor<f32> {train.role = "param", train.name = "w"}) -> tensor<f32> {
  return %w : tensor<f32>
}

// -----

// expected-error@+1 {{the loss must be a floating-point scalar, got 'tensor<2xf32>'}}
func.func @vector_loss(%w: tensor<2xf32> {train.role = "param", train.name = "w"}) -> (tensor<2xf32> {train.role = "loss"}) {
  return %w : tensor<2xf32>
}

// -----

// expected-error@+1 {{has no trainable parameter}}
func.func @no_param(%w: tensor<f32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  return %w : tensor<f32>
}

// -----

// expected-error@+1 {{is already differentiated}}
func.func @twice(%w: tensor<f32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "grad", train.of = "w"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// The log-sum-exp of a loss whose logits are not kept has no gradient.
func.func @linear_log_sum_exp(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  // expected-error@+1 {{the log-sum-exp of a linear cross-entropy cannot be differentiated}}
  %l, %s = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<6x4xf32>, tensor<10x4xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %both = train.add %l, %s : tensor<6xf32>
  %loss = train.reduce sum, %both {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @attention_log_sum_exp(%q: tensor<1x1x3x4xf32> {train.role = "param", train.name = "q"}) -> (tensor<f32> {train.role = "loss"}) {
  // expected-error@+1 {{the log-sum-exp of an attention cannot be differentiated}}
  %y, %s = train.attention %q, %q, %q {scale = 1.0} : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>) -> (tensor<1x1x3x4xf32>, tensor<1x1x3xf32>)
  %loss = train.reduce sum, %s {dimensions = array<i64: 0, 1, 2>} : (tensor<1x1x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
