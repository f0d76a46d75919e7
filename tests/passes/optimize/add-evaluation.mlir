// RUN: tessera-opt %s --add-evaluation --split-input-file --verify-diagnostics | FileCheck %s

// The step stays as it is. Its evaluation has the sum and the count, no gradient, no dropout, and no seed.
// CHECK-LABEL: func.func @step
// CHECK: train.rng_uniform
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: train.name = "w", train.role = "param"
// CHECK-SAME: train.name = "targets", train.role = "target"
// CHECK-NOT: train.name = "seed"
// CHECK-SAME: -> (tensor<f32> {train.name = "loss_sum", train.role = "loss_sum"}, tensor<f32> {train.name = "loss_count", train.of = "targets", train.role = "loss_count"})
// CHECK-SAME: attributes {train.program = "evaluate"}
// CHECK-NOT: train.rng_uniform
// CHECK: %[[Z:.*]] = train.mul
// CHECK: %[[LOSS:.*]], %{{.*}} = train.cross_entropy %[[Z]], %[[T:arg[0-9]+]]
// CHECK: %[[SUM:.*]] = train.reduce sum, %[[LOSS]]
// CHECK: %[[COUNTED:.*]] = train.compare ne, %[[T]]
// CHECK: %[[ONES:.*]] = train.convert %[[COUNTED]]
// CHECK: %[[COUNT:.*]] = train.reduce sum, %[[ONES]]
// CHECK: return %[[SUM]], %[[COUNT]]
func.func @step(%w: tensor<4x8xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4x8xf32> {train.role = "input", train.name = "x"},
                %targets: tensor<4xi32> {train.role = "target", train.name = "targets"},
                %seed: tensor<i64> {train.role = "hyper", train.name = "seed"})
    -> (tensor<f32> {train.role = "loss"}, tensor<4x8xf32> {train.role = "grad", train.of = "w"})
    attributes {train.loss_of_batch = "sum"} {
  %zero = train.constant dense<0.0> : tensor<4x8xf32>
  %scale = train.constant dense<2.0> : tensor<4x8xf32>
  %half = train.constant dense<0.5> : tensor<4x8xf32>
  %z = train.mul %x, %w : tensor<4x8xf32>
  %random = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<4x8xf32>
  %keep = train.compare ge, %random, %half : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %more = train.mul %z, %scale : tensor<4x8xf32>
  %y = train.select %keep, %more, %zero : tensor<4x8xi1>, tensor<4x8xf32>
  %loss, %lse = train.cross_entropy %y, %targets {ignore_index = -100 : i64} : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %sum = train.reduce sum, %loss {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %count = train.count_valid %targets {ignore_index = -100 : i64} : (tensor<4xi32>) -> tensor<f32>
  %mean = train.div %sum, %count : tensor<f32>
  %grad = train.mul %more, %x {train.backward} : tensor<4x8xf32>
  return %mean, %grad : tensor<f32>, tensor<4x8xf32>
}

// -----

// A mean counts once for each batch.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: tensor<f32> {train.name = "loss_count", train.role = "loss_count"}
// CHECK-DAG: %[[ONE:.*]] = train.constant dense<1.000000e+00> : tensor<f32>
// CHECK-DAG: %[[LOSS:.*]] = train.reduce sum
// CHECK: return %[[LOSS]], %[[ONE]]
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  %z = train.mul %x, %w : tensor<4xf32>
  %loss = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "sum"} {
  %z = train.mul %x, %w : tensor<4xf32>
  // expected-error@+1 {{the model cannot be evaluated: the loss of several batches does not follow from theirs; it must be a sum over the batch divided by another one, or a mean over it}}
  %loss = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A divisor that has a bound and a number added: both hold for the sum over all batches.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: tensor<f32> {train.at_least = 5.000000e-01 : f64, train.name = "loss_count", train.plus = 5.000000e-01 : f64, train.role = "loss_count"}
// CHECK-DAG: %[[COUNT:.*]] = train.reduce sum, %arg2
// CHECK-DAG: %[[LOSSES:.*]] = train.reduce sum, %{{[0-9]+}}
// CHECK-DAG: %[[TWO:.*]] = train.constant dense<2.000000e+00>
// CHECK-DAG: %[[SUM:.*]] = train.mul %[[LOSSES]], %[[TWO]]
// CHECK-NOT: train.barrier
// CHECK: return %[[SUM]], %[[COUNT]]
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "terms", train.num_of_batch = 1 : i64} {
  %one = train.constant dense<1.0> : tensor<f32>
  %half = train.constant dense<0.5> : tensor<f32>
  %two = train.constant dense<2.0> : tensor<f32>
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %parts = train.barrier %one {train.micro_batches} : tensor<f32>
  %share = train.div %half, %parts : tensor<f32>
  %more = train.add %n, %share : tensor<f32>
  %whole = train.barrier %more {train.of_batch = "sum"} : tensor<f32>
  %most = train.max %one, %whole : tensor<f32>
  %quotient = train.div %total, %most : tensor<f32>
  %loss = train.mul %two, %quotient : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A mean that depends on another number of the batch is no mean of all batches.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean", train.num_of_batch = 1 : i64} {
  %z = train.mul %x, %w : tensor<4xf32>
  %mean = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  // expected-error@+1 {{the model cannot be evaluated: its loss is a mean over the batch that also depends on this number of the whole batch, so that the loss of several batches does not follow from theirs}}
  %whole = train.barrier %n {train.of_batch = "mean"} : tensor<f32>
  %loss = train.div %mean, %whole : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A divisor that is a mean does not add up.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "sum", train.num_of_batch = 1 : i64} {
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "mean"} : tensor<f32>
  // expected-error@+1 {{the loss of several batches does not follow from theirs}}
  %loss = train.div %total, %whole : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nor does a square of a sum.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "sum", train.num_of_batch = 1 : i64} {
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "sum"} : tensor<f32>
  %square = train.mul %whole, %whole : tensor<f32>
  // expected-error@+1 {{the loss of several batches does not follow from theirs}}
  %loss = train.div %total, %square : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nor where it has an upper bound, in whatever way, or a number that is not finite.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "sum", train.num_of_batch = 1 : i64} {
  %one = train.constant dense<1.0> : tensor<f32>
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "sum"} : tensor<f32>
  %more = train.compare ge, %whole, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %most = train.select %more, %one, %whole : tensor<i1>, tensor<f32>
  // expected-error@+1 {{the loss of several batches does not follow from theirs}}
  %loss = train.div %total, %most : tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "sum", train.num_of_batch = 1 : i64} {
  %endless = train.constant dense<0x7F800000> : tensor<f32>
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "sum"} : tensor<f32>
  %most = train.max %whole, %endless : tensor<f32>
  // expected-error@+1 {{the loss of several batches does not follow from theirs}}
  %loss = train.div %total, %most : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Targets are counted in f32, whatever the loss is computed in.
// CHECK-LABEL: func.func @evaluate(
// CHECK: %[[ONES:.*]] = train.convert %{{.*}} : (tensor<301xi1>) -> tensor<301xf32>
// CHECK: train.reduce sum, %[[ONES]] {{.*}} -> tensor<f32>
func.func @step(%w: tensor<301x8xbf16> {train.role = "param", train.name = "w"},
                %targets: tensor<301xi32> {train.role = "target", train.name = "targets"})
    -> (tensor<bf16> {train.role = "loss"}) attributes {train.loss_of_batch = "sum"} {
  %wide = train.convert %w : (tensor<301x8xbf16>) -> tensor<301x8xf32>
  %losses, %lse = train.cross_entropy %wide, %targets {ignore_index = -100 : i64} : (tensor<301x8xf32>, tensor<301xi32>) -> (tensor<301xf32>, tensor<301xf32>)
  %narrow = train.convert %losses : (tensor<301xf32>) -> tensor<301xbf16>
  %sum = train.reduce sum, %narrow {dimensions = array<i64: 0>} : (tensor<301xbf16>) -> tensor<bf16>
  %count = train.count_valid %targets {ignore_index = -100 : i64} : (tensor<301xi32>) -> tensor<bf16>
  %loss = train.div %sum, %count : tensor<bf16>
  return %loss : tensor<bf16>
}

// -----

// A quotient that is divided again.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "sum", train.num_of_batch = 1 : i64} {
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "sum"} : tensor<f32>
  %once = train.div %total, %whole : tensor<f32>
  // expected-error@+1 {{the loss of several batches does not follow from theirs}}
  %loss = train.div %once, %whole : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Noise that is added is no dropout.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %seed: tensor<i64> {train.role = "hyper", train.name = "seed"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  // expected-error@+1 {{the model cannot be evaluated: it uses random numbers that are no dropout}}
  %random = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<4xf32>
  %y = train.add %x, %random : tensor<4xf32>
  %z = train.mul %y, %w : tensor<4xf32>
  %loss = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nor is a mask whose values are not scaled by what it drops.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %seed: tensor<i64> {train.role = "hyper", train.name = "seed"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  %zero = train.constant dense<0.0> : tensor<4xf32>
  %scale = train.constant dense<3.0> : tensor<4xf32>
  %half = train.constant dense<0.5> : tensor<4xf32>
  %z = train.mul %x, %w : tensor<4xf32>
  // expected-error@+1 {{it uses random numbers that are no dropout}}
  %random = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<4xf32>
  %keep = train.compare ge, %random, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %more = train.mul %z, %scale : tensor<4xf32>
  %y = train.select %keep, %more, %zero : tensor<4xi1>, tensor<4xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  // expected-error@+1 {{it normalises by statistics of the batch, and has no running ones to evaluate with}}
  %sum = train.reduce sum, %x {dimensions = array<i64: 0>, train.statistics} : (tensor<4xf32>) -> tensor<f32>
  %mean = train.broadcast %sum {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %y = train.sub %x, %mean : tensor<4xf32>
  %z = train.mul %y, %w : tensor<4xf32>
  %loss = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{its loss depends on 'lr', which only training sets}}
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %lr: tensor<f32> {train.role = "hyper", train.name = "lr"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  %r = train.broadcast %lr {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %y = train.mul %x, %r : tensor<4xf32>
  %z = train.mul %y, %w : tensor<4xf32>
  %loss = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{there is a function @evaluate already}}
func.func @step(%w: tensor<f32> {train.role = "param", train.name = "w"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  return %w : tensor<f32>
}
func.func @evaluate(%w: tensor<f32> {train.role = "param", train.name = "w"}) attributes {train.program = "evaluate"} {
  return
}

// -----

// expected-error@+1 {{train.program must be "evaluate" or absent, got "dream"}}
func.func @step(%w: tensor<f32> {train.role = "param", train.name = "w"}) attributes {train.program = "dream"} {
  return
}
