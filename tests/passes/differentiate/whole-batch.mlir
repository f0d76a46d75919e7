// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:loss}))' -split-input-file | FileCheck %s

// A sum of data that a sum over the batch is divided by is that of the whole batch, and so is a number that is added to
// it: one of several micro-batches adds its share.
// CHECK-LABEL: func @weighted
// CHECK-SAME: train.loss_of_batch = "terms"
// CHECK: %[[PARTS:.*]] = train.barrier %{{.*}} {train.micro_batches}
// CHECK: %[[SHARE:.*]] = train.div %{{.*}}, %[[PARTS]]
// CHECK: %[[SUM:.*]] = train.add %{{.*}}, %[[SHARE]]
// CHECK: %[[WHOLE:.*]] = train.barrier %[[SUM]] {train.of_batch = "sum"}
// CHECK: train.div %{{.*}}, %[[WHOLE]]
func.func @weighted(%w: tensor<f32> {train.role = "param", train.name = "w"}, %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                    %y: tensor<4xf32> {train.role = "input", train.name = "y"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %scaled = train.mul %x, %wide : tensor<4xf32>
  %some = train.mul %scaled, %y : tensor<4xf32>
  %total = train.reduce sum, %some {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %weight = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %seven = train.constant dense<7.0> : tensor<f32>
  %more = train.add %weight, %seven : tensor<f32>
  %loss = train.div %total, %more : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Not applied where the divisor follows from a parameter: it is no data.
// CHECK-LABEL: func @learned
// CHECK-NOT: train.loss_of_batch
// CHECK: train.reduce
// CHECK: %[[SUM:.*]] = train.reduce
// CHECK-NOT: train.barrier %[[SUM]]
// CHECK: train.div %{{.*}}, %[[SUM]]
func.func @learned(%w: tensor<f32> {train.role = "param", train.name = "w"}, %x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "loss"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %scaled = train.mul %x, %wide : tensor<4xf32>
  %total = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %weight = train.reduce sum, %scaled {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %loss = train.div %total, %weight : tensor<f32>
  return %loss : tensor<f32>
}
