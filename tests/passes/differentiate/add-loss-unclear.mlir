// What may be split into micro-batches, and why the rest may not: places in the batch, and numbers that may be its size.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:loss},accumulate-gradients{count=2}))' -split-input-file -verify-diagnostics | FileCheck %s

// A running sum over the batch.
func.func @running(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %row = train.iota {dim = 0 : i64} : tensor<4x4xi64>
  %column = train.iota {dim = 1 : i64} : tensor<4x4xi64>
  %below = train.compare le, %row, %column : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
  %triangle = train.convert %below : (tensor<4x4xi1>) -> tensor<4x4xf32>
  // expected-error@+1 {{combines the samples of a batch with what depends on their place in it}}
  %running = train.dot_general %y, %triangle {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x3xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %turned = train.transpose %running {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %loss_sum = train.reduce sum, %turned {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Weights by place.
func.func @weights(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %places = train.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  // expected-error@+1 {{combines the samples of a batch with what depends on their place in it}}
  %running = train.dot_general %y, %places {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<3xf32>
  %loss_sum = train.reduce sum, %running {dimensions = array<i64: 0>, train.mean} : (tensor<3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.3333333432674408> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A parameter for each place.
func.func @parameters(%p: tensor<4x3xf32> {train.role = "param", train.name = "p"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  // expected-error@+1 {{combines the samples of a batch with what depends on their place in it}}
  %y = train.mul %x, %p : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %y {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Samples times their places.
func.func @places(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %places = train.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  %all = train.broadcast %places {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x3xf32>
  // expected-error@+1 {{combines the samples of a batch with what depends on their place in it}}
  %z = train.mul %y, %all : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %z {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A running sum of data.
func.func @data(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}, %t: tensor<4x3xf32> {train.role = "input", train.name = "t"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %row = train.iota {dim = 0 : i64} : tensor<4x4xi64>
  %column = train.iota {dim = 1 : i64} : tensor<4x4xi64>
  %below = train.compare le, %row, %column : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
  %triangle = train.convert %below : (tensor<4x4xi1>) -> tensor<4x4xf32>
  // expected-error@+1 {{combines the samples of a batch with what depends on their place in it}}
  %running = train.dot_general %triangle, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %d = train.sub %y, %running : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %d {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A product with ones is a sum.
// CHECK-LABEL: func @ones
// CHECK: train.accumulate
func.func @ones(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %ones = train.constant dense<1.0> : tensor<4xf32>
  %running = train.dot_general %y, %ones {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<3xf32>
  %loss_sum = train.reduce sum, %running {dimensions = array<i64: 0>, train.mean} : (tensor<3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.3333333432674408> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What is the same for each sample: a constant, rows of a parameter by constant indices, numbers that are drawn for each.
// CHECK-LABEL: func @same
// CHECK: train.accumulate
func.func @same(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}, %seed: tensor<i64> {train.role = "hyper", train.name = "seed"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %mask = train.constant dense<[[1.0, 0.0, 1.0], [1.0, 0.0, 1.0], [1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]> : tensor<4x3xf32>
  %masked = train.mul %y, %mask : tensor<4x3xf32>
  %ids = train.constant dense<[[0, 2, 1], [0, 2, 1], [0, 2, 1], [0, 2, 1]]> : tensor<4x3xi32>
  %table = train.reshape %w : (tensor<3xf32>) -> tensor<3x1xf32>
  %flat = train.reshape %ids : (tensor<4x3xi32>) -> tensor<12xi32>
  %rows = train.gather_rows %table, %flat : (tensor<3x1xf32>, tensor<12xi32>) -> tensor<12x1xf32>
  %places = train.reshape %rows : (tensor<12x1xf32>) -> tensor<4x3xf32>
  %z = train.add %masked, %places : tensor<4x3xf32>
  %drawn = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<4x3xf32>
  %v = train.mul %z, %drawn : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %v {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Equal sums that are added up once for each sample.
func.func @repeated(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %s = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4x3xf32>) -> tensor<3xf32>
  %again = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  // expected-error@+1 {{adds up equal values, of which there may or may not be as many as samples}}
  %loss = train.reduce sum, %again {dimensions = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

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
