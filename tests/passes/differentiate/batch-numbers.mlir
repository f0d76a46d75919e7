// Numbers beside samples and their statistics: what may be the size of the batch is not split into micro-batches.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:loss},accumulate-gradients{count=2}))' -split-input-file -verify-diagnostics | FileCheck %s

// Divided by the standard deviation of the whole batch.
// CHECK-LABEL: func @deviation
// CHECK: train.accumulate
func.func @deviation(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}, %t: tensor<4x3xf32> {train.role = "input", train.name = "t"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %m_sum = train.reduce sum, %t {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %m_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %m = train.mul %m_sum, %m_part : tensor<f32>
  %ms = train.broadcast %m {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x3xf32>
  %d = train.sub %t, %ms : tensor<4x3xf32>
  %dd = train.mul %d, %d : tensor<4x3xf32>
  %v_sum = train.reduce sum, %dd {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %v_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %v = train.mul %v_sum, %v_part : tensor<f32>
  %std = train.sqrt %v : tensor<f32>
  %stds = train.broadcast %std {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x3xf32>
  %a = train.div %d, %stds : tensor<4x3xf32>
  %z = train.mul %y, %a : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %z {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// One that has a degree of freedom less: n times the mean, over n - 1.
func.func @freedom(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}, %t: tensor<4x3xf32> {train.role = "input", train.name = "t"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %m_sum = train.reduce sum, %t {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %m_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %m = train.mul %m_sum, %m_part : tensor<f32>
  %ms = train.broadcast %m {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x3xf32>
  %d = train.sub %t, %ms : tensor<4x3xf32>
  %dd = train.mul %d, %d : tensor<4x3xf32>
  %v_sum = train.reduce sum, %dd {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %v_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %v = train.mul %v_sum, %v_part : tensor<f32>
  %n = train.constant dense<12.0> : tensor<f32>
  %n1 = train.constant dense<11.0> : tensor<f32>
  // expected-error@+1 {{scales a mean over the batch by a number that may be the number of its elements or follow from it}}
  %vn = train.mul %v, %n : tensor<f32>
  %u = train.div %vn, %n1 : tensor<f32>
  %std = train.sqrt %u : tensor<f32>
  %stds = train.broadcast %std {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x3xf32>
  %a = train.div %d, %stds : tensor<4x3xf32>
  %z = train.mul %y, %a : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %z {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The same factor as one number.
func.func @factor(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}, %t: tensor<4x3xf32> {train.role = "input", train.name = "t"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %m_sum = train.reduce sum, %t {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %m_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %m = train.mul %m_sum, %m_part : tensor<f32>
  %ms = train.broadcast %m {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x3xf32>
  %d = train.sub %t, %ms : tensor<4x3xf32>
  %dd = train.mul %d, %d : tensor<4x3xf32>
  %v_sum = train.reduce sum, %dd {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %v_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %v = train.mul %v_sum, %v_part : tensor<f32>
  %n = train.constant dense<1.09090912> : tensor<f32>
  // expected-error@+1 {{scales a mean over the batch by a number that may be the number of its elements or follow from it}}
  %u = train.mul %v, %n : tensor<f32>
  %std = train.sqrt %u : tensor<f32>
  %stds = train.broadcast %std {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x3xf32>
  %a = train.div %d, %stds : tensor<4x3xf32>
  %z = train.mul %y, %a : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %z {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A mean times the number of elements.
func.func @numel(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %m_sum = train.reduce sum, %y {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %m_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %m = train.mul %m_sum, %m_part : tensor<f32>
  %n = train.constant dense<12.0> : tensor<f32>
  // expected-error@+1 {{scales a mean over the batch by a number that may be the number of its elements or follow from it}}
  %loss = train.mul %m, %n : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A mean over the batch of means, times the number of all elements.
func.func @nested(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %rs = train.reduce sum, %y {dimensions = array<i64: 1>, train.mean} : (tensor<4x3xf32>) -> tensor<4xf32>
  %third = train.constant dense<0.333333343> : tensor<4xf32>
  %r = train.mul %rs, %third : tensor<4xf32>
  %m_sum = train.reduce sum, %r {dimensions = array<i64: 0>, train.mean} : (tensor<4xf32>) -> tensor<f32>
  %m_part = train.constant dense<0.25> : tensor<f32>
  %m = train.mul %m_sum, %m_part : tensor<f32>
  %n = train.constant dense<12.0> : tensor<f32>
  // expected-error@+1 {{scales a mean over the batch by a number that may be the number of its elements or follow from it}}
  %loss = train.mul %m, %n : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Weights, a temperature and halves of a mean.
// CHECK-LABEL: func @ordinary
// CHECK: train.accumulate
func.func @ordinary(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %m_sum = train.reduce sum, %y {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %m_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %m = train.mul %m_sum, %m_part : tensor<f32>
  %quarter = train.constant dense<0.25> : tensor<f32>
  %two = train.constant dense<2.0> : tensor<f32>
  %heat = train.constant dense<0.07> : tensor<f32>
  %a = train.mul %m, %quarter : tensor<f32>
  %b = train.div %a, %two : tensor<f32>
  %c = train.mul %b, %two : tensor<f32>
  %d = train.div %c, %quarter : tensor<f32>
  %loss = train.div %d, %heat : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Weights of samples before a sum.
// CHECK-LABEL: func @before
// CHECK: train.accumulate
func.func @before(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %half = train.constant dense<0.5> : tensor<4x3xf32>
  %quarter = train.constant dense<0.25> : tensor<4x3xf32>
  %a = train.mul %y, %half : tensor<4x3xf32>
  %b = train.mul %a, %quarter : tensor<4x3xf32>
  %loss = train.reduce sum, %b {dimensions = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Samples over their count, added up.
func.func @divided(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %n = train.constant dense<4.0> : tensor<4x3xf32>
  // expected-error@+1 {{scales samples by a number that may be their count}}
  %z = train.div %y, %n : tensor<4x3xf32>
  %loss = train.reduce sum, %z {dimensions = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A mean of samples times their count.
func.func @times(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %n = train.constant dense<4.0> : tensor<4x3xf32>
  // expected-error@+1 {{scales samples by a number that may be their count}}
  %z = train.mul %y, %n : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %z {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Numbers of samples that a nonlinear function follows are no matter of their count.
// CHECK-LABEL: func @inside
// CHECK: train.accumulate
func.func @inside(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %n = train.constant dense<4.0> : tensor<4x3xf32>
  %z = train.mul %y, %n : tensor<4x3xf32>
  %e = train.tanh %z : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %e {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Weights of data over their sum.
// CHECK-LABEL: func @shares
// CHECK: train.accumulate
func.func @shares(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}, %t: tensor<4x3xf32> {train.role = "input", train.name = "t"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %s = train.reduce sum, %t {dimensions = array<i64: 0>} : (tensor<4x3xf32>) -> tensor<3xf32>
  %ss = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %a = train.div %t, %ss : tensor<4x3xf32>
  %z = train.mul %y, %a : tensor<4x3xf32>
  %loss = train.reduce sum, %z {dimensions = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The same, with a mean of 1: times the count before the quotient.
func.func @count_first(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}, %t: tensor<4x3xf32> {train.role = "input", train.name = "t"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %s = train.reduce sum, %t {dimensions = array<i64: 0>} : (tensor<4x3xf32>) -> tensor<3xf32>
  %ss = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %n = train.constant dense<4.0> : tensor<4x3xf32>
  // expected-error@+1 {{scales samples by a number that may be their count}}
  %nt = train.mul %t, %n : tensor<4x3xf32>
  %a = train.div %nt, %ss : tensor<4x3xf32>
  %z = train.mul %y, %a : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %z {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// And behind it.
func.func @count_last(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}, %t: tensor<4x3xf32> {train.role = "input", train.name = "t"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %s = train.reduce sum, %t {dimensions = array<i64: 0>} : (tensor<4x3xf32>) -> tensor<3xf32>
  %ss = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %n = train.constant dense<4.0> : tensor<4x3xf32>
  %a = train.div %t, %ss : tensor<4x3xf32>
  %z = train.mul %y, %a : tensor<4x3xf32>
  // expected-error@+1 {{scales samples by a number that may be their count}}
  %nz = train.mul %z, %n : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %nz {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A sum over the batch times a number: nothing tells whether it is one over a count.
func.func @factor_of_sum(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %s = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
  %n = train.constant dense<0.125> : tensor<f32>
  // expected-error@+1 {{multiplies a sum over the batch by a number, which may or may not depend on the size of the batch; write a mean, or multiply before the sum}}
  %loss = train.mul %s, %n : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A sign is no count.
// CHECK-LABEL: func @sign_of_sum
// CHECK: train.accumulate
func.func @sign_of_sum(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %s = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
  %n = train.constant dense<-1.0> : tensor<f32>
  %loss = train.mul %s, %n : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A standard error: a mean of 12 elements over the square root of their number.
func.func @standard_error(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %m_sum = train.reduce sum, %y {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %m_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %m = train.mul %m_sum, %m_part : tensor<f32>
  %root = train.constant dense<3.46410162> : tensor<f32>
  // expected-error@+1 {{scales a mean over the batch by a number that may be the number of its elements or follow from it}}
  %loss = train.div %m, %root : tensor<f32>
  return %loss : tensor<f32>
}
