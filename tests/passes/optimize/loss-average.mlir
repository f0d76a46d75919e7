// RUN: tessera-opt %s --add-evaluation --split-input-file --verify-diagnostics | FileCheck %s

// The loss of several batches, from what each of them gives: the sum and the count that add-evaluation returns.

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

// A number is added before the bound holds, on the whole: max(n + 2, 3) = max(n, 1) + 2.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: tensor<f32> {train.at_least = 1.000000e+00 : f64, train.name = "loss_count", train.plus = 2.000000e+00 : f64, train.role = "loss_count"}
// CHECK-DAG: %[[SUM:.*]] = train.reduce sum, %{{[0-9]+}}
// CHECK-DAG: %[[COUNT:.*]] = train.reduce sum, %arg2
// CHECK: return %[[SUM]], %[[COUNT]]
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "terms", train.num_of_batch = 1 : i64} {
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "sum"} : tensor<f32>
  %two = train.constant dense<2.0> : tensor<f32>
  %three = train.constant dense<3.0> : tensor<f32>
  %more = train.add %whole, %two : tensor<f32>
  %most = train.max %more, %three : tensor<f32>
  %loss = train.div %total, %most : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A bound as a clamp is imported; what is taken away behind it; a sign.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: tensor<f32> {train.at_least = 1.000000e+00 : f64, train.name = "loss_count", train.plus = -5.000000e-01 : f64, train.role = "loss_count"}
// CHECK-DAG: %[[TOTAL:.*]] = train.reduce sum, %{{[0-9]+}}
// CHECK-DAG: %[[COUNT:.*]] = train.reduce sum, %arg2
// CHECK-DAG: %[[SIGN:.*]] = train.constant dense<-1.000000e+00>
// CHECK: %[[SUM:.*]] = train.mul %[[TOTAL]], %[[SIGN]]
// CHECK: return %[[SUM]], %[[COUNT]]
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "terms", train.num_of_batch = 1 : i64} {
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "sum"} : tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  %half = train.constant dense<0.5> : tensor<f32>
  %less = train.compare le, %whole, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %most = train.select %less, %one, %whole : tensor<i1>, tensor<f32>
  %rest = train.sub %most, %half : tensor<f32>
  %quotient = train.div %total, %rest : tensor<f32>
  %loss = train.neg %quotient : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Not applied to a bound that each batch has: what they add up are the bounded numbers.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: tensor<f32> {train.name = "loss_count", train.role = "loss_count"}
// CHECK: %[[COUNT:.*]] = train.max
// CHECK: return %{{.*}}, %[[COUNT]]
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "terms", train.num_of_batch = 1 : i64} {
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  %most = train.max %n, %one : tensor<f32>
  %whole = train.barrier %most {train.of_batch = "sum"} : tensor<f32>
  %loss = train.div %total, %whole : tensor<f32>
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

// Nor does one that was cut to an integer.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "terms", train.num_of_batch = 1 : i64} {
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "sum"} : tensor<f32>
  %cut = train.convert %whole : (tensor<f32>) -> tensor<i32>
  %back = train.convert %cut : (tensor<i32>) -> tensor<f32>
  // expected-error@+1 {{the loss of several batches does not follow from theirs}}
  %loss = train.div %total, %back : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nor a sum of what each batch makes of a number of all of them.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "terms", train.num_of_batch = 2 : i64} {
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "sum"} : tensor<f32>
  %part = train.div %n, %whole : tensor<f32>
  %parts = train.barrier %part {train.of_batch = "sum"} : tensor<f32>
  // expected-error@+1 {{the loss of several batches does not follow from theirs}}
  %loss = train.div %total, %parts : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nor one that a number is taken from: that has another sign.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %mask: tensor<4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "terms", train.num_of_batch = 1 : i64} {
  %z = train.mul %x, %w : tensor<4xf32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %n = train.reduce sum, %mask {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "sum"} : tensor<f32>
  %two = train.constant dense<2.0> : tensor<f32>
  %rest = train.sub %two, %whole : tensor<f32>
  // expected-error@+1 {{the loss of several batches does not follow from theirs}}
  %loss = train.div %total, %rest : tensor<f32>
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

// Targets are those that are counted only if the loss ignores the same ones: else a sample that adds nothing to the count
// may add to the sum.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: tensor<f32> {train.name = "loss_count", train.role = "loss_count"}
// CHECK: %[[IGNORED:.*]] = train.constant dense<0> : tensor<4xi32>
// CHECK: train.compare ne, %{{.*}}, %[[IGNORED]]
func.func @step(%w: tensor<4x8xf32> {train.role = "param", train.name = "w"},
                %targets: tensor<4xi32> {train.role = "target", train.name = "targets"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "sum"} {
  %losses, %lse = train.cross_entropy %w, %targets {ignore_index = -100 : i64} : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %sum = train.reduce sum, %losses {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %count = train.count_valid %targets {ignore_index = 0 : i64} : (tensor<4xi32>) -> tensor<f32>
  %loss = train.div %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Where none is ignored, all count.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: tensor<f32> {train.name = "loss_count", train.role = "loss_count"}
// CHECK: %[[COUNT:.*]] = train.constant dense<4.000000e+00> : tensor<f32>
// CHECK: return %{{.*}}, %[[COUNT]]
func.func @step(%w: tensor<4x8xf32> {train.role = "param", train.name = "w"},
                %targets: tensor<4xi32> {train.role = "target", train.name = "targets"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "sum"} {
  %losses, %lse = train.cross_entropy %w, %targets : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %sum = train.reduce sum, %losses {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %count = train.count_valid %targets : (tensor<4xi32>) -> tensor<f32>
  %loss = train.div %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A sum of 2^24 + 1 ones is no f32.
func.func @step(%w: tensor<16777217x8xf32> {train.role = "param", train.name = "w"},
                %targets: tensor<16777217xi32> {train.role = "target", train.name = "targets"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "sum"} {
  %losses, %lse = train.cross_entropy %w, %targets {ignore_index = -100 : i64} : (tensor<16777217x8xf32>, tensor<16777217xi32>) -> (tensor<16777217xf32>, tensor<16777217xf32>)
  %sum = train.reduce sum, %losses {dimensions = array<i64: 0>} : (tensor<16777217xf32>) -> tensor<f32>
  // expected-error@+1 {{the model cannot be evaluated: a batch has 16777217 targets, which f32 cannot count}}
  %count = train.count_valid %targets {ignore_index = -100 : i64} : (tensor<16777217xi32>) -> tensor<f32>
  %loss = train.div %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}
