// Micro-batches need samples that do not depend on their place in the batch: what is the same for each of them, and what is not.
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

// Not as many as samples: three equal values of each sum.
// CHECK-LABEL: func @repeated_otherwise
// CHECK: train.accumulate
func.func @repeated_otherwise(%w: tensor<5xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x5xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<5xf32>) -> tensor<4x5xf32>
  %y = train.mul %x, %wide : tensor<4x5xf32>
  %s = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4x5xf32>) -> tensor<5xf32>
  %again = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<5xf32>) -> tensor<3x5xf32>
  %loss = train.reduce sum, %again {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Equal values of each sample, as a broadcast of size 1 and what is computed from it element by element: still repeated.
func.func @repeated_size_one(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %y = train.mul %x, %wide : tensor<4x3xf32>
  %s = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4x3xf32>) -> tensor<3xf32>
  %row = train.reshape %s : (tensor<3xf32>) -> tensor<1x3xf32>
  %again = train.broadcast %row {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x3xf32>) -> tensor<8x3xf32>
  %negative = train.neg %again : tensor<8x3xf32>
  // expected-error@+1 {{adds up equal values, of which there may or may not be as many as samples}}
  %loss = train.reduce sum, %negative {dimensions = array<i64: 0, 1>} : (tensor<8x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Indices that differ from sample to sample.
func.func @indices(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %ids = train.constant dense<[[0, 2, 1], [0, 2, 1], [0, 2, 1], [0, 1, 2]]> : tensor<4x3xi32>
  %table = train.reshape %w : (tensor<3xf32>) -> tensor<3x1xf32>
  %flat = train.reshape %ids : (tensor<4x3xi32>) -> tensor<12xi32>
  %rows = train.gather_rows %table, %flat : (tensor<3x1xf32>, tensor<12xi32>) -> tensor<12x1xf32>
  %places = train.reshape %rows : (tensor<12x1xf32>) -> tensor<4x3xf32>
  // expected-error@+1 {{combines the samples of a batch with what depends on their place in it}}
  %v = train.mul %x, %places : tensor<4x3xf32>
  %loss_sum = train.reduce sum, %v {dimensions = array<i64: 0, 1>, train.mean} : (tensor<4x3xf32>) -> tensor<f32>
  %loss_part = train.constant dense<0.0833333358168602> : tensor<f32>
  %loss = train.mul %loss_sum, %loss_part : tensor<f32>
  return %loss : tensor<f32>
}
