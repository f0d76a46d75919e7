// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(accumulate-gradients{count=4}))' -split-input-file -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(accumulate-gradients{count=1}))' -split-input-file | FileCheck %s --check-prefix=ONE
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(accumulate-gradients{count=0}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(accumulate-gradients{count=4611686018427387904}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=HUGE

// ONE-NOT: train.accumulate
// HUGE: error: 4611686018427387904 micro-batches of 'tensor<{{.*}}>' are too large
// ZERO: error: count must be at least 1, got 0

// The number of targets is that of the whole batch; parameters are read from outside the loop.
// CHECK-LABEL: func @counted
// CHECK-SAME: %[[W:arg0]]: tensor<2x3xf32>
// CHECK-SAME: %[[X:arg1]]: tensor<4x2x3xf32> {train.dims = #train.dims<[micro_batch, sample, none]>, train.name = "x", train.role = "input"}
// CHECK-SAME: %[[T:arg2]]: tensor<4x2x1xi32> {train.dims = #train.dims<[micro_batch, sample, none]>, train.name = "t", train.role = "target"}
// CHECK: %[[N:.*]] = train.count_valid %[[T]] {ignore_index = -1 : i64} : (tensor<4x2x1xi32>) -> tensor<f32>
// CHECK: %[[SUM:.*]]:2 = train.accumulate %[[X]], %[[T]] {count = 4 : i64} : (tensor<4x2x3xf32>, tensor<4x2x1xi32>) -> (tensor<f32>, tensor<2x3xf32>) {
// CHECK: ^bb0(%{{.*}}: tensor<i64>, %[[MX:.*]]: tensor<2x3xf32>, %[[MT:.*]]: tensor<2x1xi32>):
// CHECK: train.slice %[[W]]
// CHECK: train.mul %{{.*}}, %[[MX]]
// CHECK: train.reshape %[[MT]]
// CHECK: %[[LOSS:.*]] = train.div %{{.*}}, %[[N]]
// CHECK: train.yield %[[LOSS]], %{{.*}} : tensor<f32>, tensor<2x3xf32>
// CHECK: return %[[SUM]]#0, %[[SUM]]#1
func.func @counted(%w: tensor<2x3xf32> {train.role = "param", train.name = "w"}, %x: tensor<2x3xf32> {train.role = "input", train.name = "x"}, %t: tensor<2x1xi32> {train.role = "target", train.name = "t"})
    -> (tensor<f32> {train.role = "loss"}, tensor<2x3xf32> {train.role = "grad", train.of = "w"}) {
  %row = train.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 1, 3>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %same = train.broadcast %row {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x3xf32>) -> tensor<2x3xf32>
  %y = train.mul %same, %x : tensor<2x3xf32>
  %flat = train.reshape %t : (tensor<2x1xi32>) -> tensor<2xi32>
  %rows, %lse = train.cross_entropy %y, %flat {ignore_index = -1 : i64} : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
  %n = train.count_valid %flat {ignore_index = -1 : i64} : (tensor<2xi32>) -> tensor<f32>
  %s = train.reduce sum, %rows {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %loss = train.div %s, %n : tensor<f32>
  return %loss, %y : tensor<f32>, tensor<2x3xf32>
}

// -----

// A recomputed loss counts the targets once more, through a barrier.
// CHECK-LABEL: func @recomputed
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<4x2x1xi32> {train.dims = #train.dims<[micro_batch, sample, none]>, train.name = "t", train.role = "target"}
// CHECK: train.count_valid %[[T]] {ignore_index = -1 : i64, train.recompute}
func.func @recomputed(%w: tensor<2x3xf32> {train.role = "param", train.name = "w"}, %t: tensor<2x1xi32> {train.role = "target", train.name = "t"})
    -> (tensor<f32> {train.role = "loss"}, tensor<2x3xf32> {train.role = "grad", train.of = "w"}) {
  %flat = train.reshape %t : (tensor<2x1xi32>) -> tensor<2xi32>
  %row = train.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 1, 3>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %same = train.broadcast %row {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x3xf32>) -> tensor<2x3xf32>
  %rows, %lse = train.cross_entropy %same, %flat {ignore_index = -1 : i64} : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
  %n = train.count_valid %flat {ignore_index = -1 : i64} : (tensor<2xi32>) -> tensor<f32>
  %s = train.reduce sum, %rows {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %loss = train.div %s, %n : tensor<f32>
  %kept = train.barrier %t {train.recompute} : tensor<2x1xi32>
  %again = train.count_valid %kept {ignore_index = -1 : i64, train.recompute} : (tensor<2x1xi32>) -> tensor<f32>
  %wide = train.broadcast %again {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2x3xf32>
  %grad = train.div %w, %wide : tensor<2x3xf32>
  return %loss, %grad : tensor<f32>, tensor<2x3xf32>
}

// -----

// A loss that is a mean over the micro-batch is averaged; each micro-batch draws its own random numbers.
// CHECK-LABEL: func @mean
// CHECK: train.accumulate
// CHECK: ^bb0(%[[I:.*]]: tensor<i64>, %{{.*}}):
// CHECK: %[[GOLDEN:.*]] = train.constant dense<-7046029254386353131> : tensor<i64>
// CHECK: %[[STEP:.*]] = train.mul %[[I]], %[[GOLDEN]] : tensor<i64>
// CHECK: %[[SEED:.*]] = train.add %arg1, %[[STEP]] : tensor<i64>
// CHECK: train.rng_uniform %[[SEED]]
// CHECK: train.rng_uniform %[[SEED]]
// CHECK: }
// CHECK: train.constant dense<2.500000e-01> : tensor<f32>
// CHECK: %[[LOSS:.*]] = train.mul
// CHECK: %[[GRAD:.*]] = train.mul
// CHECK: return %[[LOSS]], %[[GRAD]]
func.func @mean(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %seed: tensor<i64> {train.role = "hyper", train.name = "seed"}, %x: tensor<3xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<3xf32> {train.role = "grad", train.of = "w"}) {
  %a = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<3xf32>
  %b = train.rng_uniform %seed {stream = 1 : i64} : (tensor<i64>) -> tensor<3xf32>
  %ab = train.mul %a, %b : tensor<3xf32>
  %y = train.mul %ab, %x : tensor<3xf32>
  %sum = train.reduce sum, %y {dimensions = array<i64: 0>, train.mean} : (tensor<3xf32>) -> tensor<f32>
  %third = train.constant dense<0.333333343> : tensor<f32>
  %loss = train.mul %sum, %third : tensor<f32>
  return %loss, %y : tensor<f32>, tensor<3xf32>
}

// -----

// A sum over the batch is added up as it is.
// CHECK-LABEL: func @sum
// CHECK: %[[SUM:.*]]:2 = train.accumulate
// CHECK: return %[[SUM]]#0, %[[SUM]]#1
func.func @sum(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<3xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<3xf32> {train.role = "grad", train.of = "w"}) {
  %y = train.mul %x, %x : tensor<3xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %loss, %y : tensor<f32>, tensor<3xf32>
}

// -----

// What add-loss says holds; means that it found among sums are divided by the number of micro-batches, in the backward pass
// too.
// CHECK-LABEL: func @marked
// CHECK-NOT: loss_of_batch
// CHECK: %[[SUM:.*]]:2 = train.accumulate
// CHECK: %[[COUNT:.*]] = train.constant dense<4.000000e+00> : tensor<f32>
// CHECK-NOT: train.barrier
// CHECK: train.div %{{.*}}, %[[COUNT]]
// CHECK: return %[[SUM]]#0, %[[SUM]]#1
// With one micro-batch there is nothing to divide by.
// ONE-LABEL: func @marked
// ONE-NOT: loss_of_batch
// ONE: train.reduce sum, %arg0
// ONE: train.constant dense<1.000000e+00> : tensor<f32>
// ONE-NOT: train.barrier
// ONE: %[[COUNT:.*]] = train.constant dense<1.000000e+00> : tensor<f32>
// ONE-NEXT: train.div %{{.*}}, %[[COUNT]]
func.func @marked(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<3xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<3xf32> {train.role = "grad", train.of = "w"}) attributes {train.loss_of_batch = "terms"} {
  %y = train.mul %x, %x : tensor<3xf32>
  %sum = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %decay = train.reduce sum, %w {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  %count = train.barrier %one {train.micro_batches} : tensor<f32>
  %part = train.div %decay, %count : tensor<f32>
  %loss = train.add %sum, %part : tensor<f32>
  return %loss, %y : tensor<f32>, tensor<3xf32>
}

// -----

func.func @unmarked(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<3xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<3xf32> {train.role = "grad", train.of = "w"}) {
  %y = train.mul %x, %x : tensor<3xf32>
  %sum = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %decay = train.reduce sum, %w {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  // expected-error@+1 {{the loss adds sums over the batch and means; run add-loss first, which tells them apart}}
  %loss = train.add %sum, %decay : tensor<f32>
  return %loss, %y : tensor<f32>, tensor<3xf32>
}

// -----

func.func @nonlinear(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<3xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<3xf32> {train.role = "grad", train.of = "w"}) {
  %y = train.mul %x, %x : tensor<3xf32>
  %sum = train.reduce sum, %y {dimensions = array<i64: 0>, train.mean} : (tensor<3xf32>) -> tensor<f32>
  // expected-error@+1 {{the loss cannot be split into micro-batches: 'train.exp' is not linear in what was added up over the batch}}
  %loss = train.exp %sum : tensor<f32>
  return %loss, %y : tensor<f32>, tensor<3xf32>
}

// -----

func.func @factor(%w: tensor<3xf32> {train.role = "param", train.name = "w"}, %x: tensor<3xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<3xf32> {train.role = "grad", train.of = "w"}) {
  %y = train.mul %x, %x : tensor<3xf32>
  %sum = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %third = train.constant dense<0.333333343> : tensor<f32>
  // expected-error@+1 {{'train.mul' multiplies a sum over the batch by a number, which may or may not depend on the size of the batch; write a mean, or multiply before the sum}}
  %loss = train.mul %sum, %third : tensor<f32>
  return %loss, %y : tensor<f32>, tensor<3xf32>
}

// -----

func.func @sample(%w: tensor<f32> {train.role = "param", train.name = "w"}, %x: tensor<1xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "grad", train.of = "w"}) {
  // expected-error@+1 {{the loss cannot be split into micro-batches: 'train.reshape' leaves no dimension that counts samples}}
  %loss = train.reshape %x : (tensor<1xf32>) -> tensor<f32>
  return %loss, %w : tensor<f32>, tensor<f32>
}

// -----

// ONE-LABEL: func @metric
// expected-error@+1 {{cannot accumulate result 1 of role "metric": expected the loss, gradients and next values of buffers only}}
func.func @metric(%w: tensor<f32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "metric", train.name = "m"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

func.func @computed(%w: tensor<f32> {train.role = "param", train.name = "w"}, %x: tensor<4xi32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"})
    attributes {train.loss_of_batch = "sum"} {
  %s = train.slice %x {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<4xi32>) -> tensor<2xi32>
  // expected-error@+1 {{cannot count the whole batch: expected the count of an input or target argument}}
  %n = train.count_valid %s : (tensor<2xi32>) -> tensor<f32>
  %loss = train.div %w, %n : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-warning@+2 {{the loss adds up over its batch, and micro-batches have one sample}}
// expected-error@+1 {{terms of the loss are to be divided by the number of micro-batches, but nothing says which}}
func.func @lost(%w: tensor<f32> {train.role = "param", train.name = "w"}, %x: tensor<1xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "grad", train.of = "w"}) attributes {train.loss_of_batch = "terms"} {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{expected 2 sums or means over the whole batch, found 1}}
func.func @lost_whole(%w: tensor<f32> {train.role = "param", train.name = "w"}, %x: tensor<2xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "grad", train.of = "w"}) attributes {train.loss_of_batch = "sum", train.num_of_batch = 2 : i64} {
  %n = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %whole = train.barrier %n {train.of_batch = "sum"} : tensor<f32>
  %loss = train.div %w, %whole : tensor<f32>
  return %loss, %w : tensor<f32>, tensor<f32>
}

// -----

// What stands for a sum of the whole batch is added up by a loop of its own in front of the one that reads it; the scale of gradients
// is marked.
// CHECK-LABEL: func @of_batch
// CHECK: %[[WHOLE:.*]] = train.accumulate %arg1 {count = 4 : i64}
// CHECK: train.reduce sum
// CHECK: train.accumulate %arg1 {count = 4 : i64}
// CHECK: train.div %{{.*}}, %[[WHOLE]]
// CHECK-NOT: train.barrier
// CHECK: return
// With one micro-batch it is the sum itself.
// ONE-LABEL: func @of_batch
// ONE: %[[SUM:.*]] = train.reduce sum
// ONE-NOT: train.barrier
// ONE: train.div %{{.*}}, %[[SUM]]
func.func @of_batch(%w: tensor<f32> {train.role = "param", train.name = "w"}, %x: tensor<3xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "grad", train.of = "w"}) attributes {train.loss_of_batch = "sum"} {
  %sum = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %whole = train.barrier %sum {train.of_batch = "sum"} : tensor<f32>
  %squares = train.mul %x, %x : tensor<3xf32>
  %total = train.reduce sum, %squares {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %mean = train.div %total, %whole : tensor<f32>
  %loss = train.mul %mean, %w : tensor<f32>
  return %loss, %mean : tensor<f32>, tensor<f32>
}
