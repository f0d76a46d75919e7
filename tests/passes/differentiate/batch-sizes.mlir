// What a loss may read of the size of the batch where all that follows from it is marked (train.batch_groups).
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:loss}))' -split-input-file | FileCheck %s
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:loss},accumulate-gradients{count=2}))' -split-input-file 2>/dev/null | FileCheck %s --check-prefix=TWO
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:loss},accumulate-gradients{count=1}))' -split-input-file | FileCheck %s --check-prefix=ONE
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:loss},accumulate-gradients{count=3}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=THREE
// THREE: error: numbers that follow from the size of the batch are known for 2 micro-batches, not for 3: import the program again
// ONE-NOT: train.batch_groups
// ONE-NOT: train.barrier

// A sum over the batch and a number that somebody wrote; a number of the whole batch; a number that is the sum of those of the micro-batches.
// CHECK-LABEL: func @numbers
// CHECK-SAME: train.batch_groups = 4 : i64
// CHECK-SAME: train.loss_of_batch = "sum"
// TWO-LABEL: func @numbers
// TWO-NOT: train.batch_groups
// TWO-DAG: train.constant dense<7.000000e+00> : tensor<f32>
// TWO-DAG: train.constant dense<8.000000e+00> : tensor<f32>
// TWO-DAG: train.constant dense<3.000000e+00> : tensor<f32>
func.func @numbers(%x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"})
    attributes {train.batch_groups = 4 : i64, train.batch_parts = 2 : i64} {
  %sum = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %three = train.constant dense<3.0> : tensor<f32>
  %tripled = train.mul %sum, %three : tensor<f32>
  %less = train.barrier %three {train.of_batch_number = 7.0 : f64} : tensor<f32>
  %a = train.div %tripled, %less : tensor<f32>
  %four = train.constant dense<4.0> : tensor<f32>
  %n = train.barrier %four {train.of_batch = "sum"} : tensor<f32>
  %loss = train.div %a, %n : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Not applied because a value is another one for a batch of another size.
// CHECK-LABEL: func @follows
// CHECK-NOT: train.loss_of_batch
// CHECK: train.slice
func.func @follows(%w: tensor<8xf32> {train.role = "param", train.name = "w"}, %x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"})
    attributes {train.batch_groups = 4 : i64, train.batch_parts = 1 : i64} {
  %row = train.slice %w {starts = array<i64: 3>, limits = array<i64: 4>, strides = array<i64: 1>, train.follows_batch_size} : (tensor<8xf32>) -> tensor<1xf32>
  %scalar = train.reduce sum, %row {dimensions = array<i64: 0>} : (tensor<1xf32>) -> tensor<f32>
  %sum = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %loss = train.mul %scalar, %sum : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Not applied because samples meet a constant that differs by their place, even if it does not in this batch.
// CHECK-LABEL: func @by_place
// CHECK-NOT: train.loss_of_batch
// CHECK: train.mul
// The barrier is gone where it is not needed any more.
// ONE-LABEL: func @by_place
// ONE-NOT: train.barrier
func.func @by_place(%x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) attributes {train.batch_groups = 4 : i64, train.batch_parts = 1 : i64} {
  %ones = train.constant dense<1.0> : tensor<4xf32>
  %mask = train.barrier %ones {train.by_place} : tensor<4xf32>
  %masked = train.mul %x, %mask : tensor<4xf32>
  %loss = train.reduce sum, %masked {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
