// Buffers are whole on every rank; what a step leaves in them is that of the whole batch.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(annotate-sharding{strategy=ddp},propagate-sharding,insert-reshards,verify-sharding,localize,verify-sharding))' -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[MEAN:arg1]]: tensor<4xf32>
// CHECK: %[[OWN:.*]] = train.reduce sum, %arg2
// CHECK: %[[ALL:.*]] = dist.all_reduce %[[OWN]]
// CHECK: %[[NEXT:.*]] = train.add %[[MEAN]], %[[ALL]]
// CHECK: return %{{.*}}, %[[NEXT]]
module attributes {dist.mesh = #dist.mesh<data = 2>} {
  func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w", train.decay_elements = 0 : i64, train.segments = [#train.segment<"w", offset = 0, shape = [4]>]},
                  %mean: tensor<4xf32> {train.role = "buffer", train.name = "mean"},
                  %x: tensor<2x4xf32> {train.role = "input", train.name = "x"})
      -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.alias = 1 : i64}) {
    %rows = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<4xf32>
    %next = train.add %mean, %rows : tensor<4xf32>
    %y = train.mul %rows, %w : tensor<4xf32>
    %loss = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    return %loss, %next : tensor<f32>, tensor<4xf32>
  }
}

// -----

// So it is from micro-batch to micro-batch.
// CHECK-LABEL: func.func @step
// CHECK: train.accumulate %arg2, %arg1 {carried = 1 : i64, count = 2 : i64} : (tensor<2x1x4xf32>, tensor<4xf32>)
// CHECK: ^bb0(%{{.*}}: tensor<i64>, %[[X:.*]]: tensor<1x4xf32>, %[[MEAN:.*]]: tensor<4xf32>)
// CHECK: %[[OWN:.*]] = train.reduce sum, %[[X]]
// CHECK: %[[ALL:.*]] = dist.all_reduce %[[OWN]]
// CHECK: %[[NEXT:.*]] = train.add %[[MEAN]], %[[ALL]]
// CHECK: train.yield %{{.*}}, %[[NEXT]]
module attributes {dist.mesh = #dist.mesh<data = 2>} {
  func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w", train.decay_elements = 0 : i64, train.segments = [#train.segment<"w", offset = 0, shape = [4]>]},
                  %mean: tensor<4xf32> {train.role = "buffer", train.name = "mean"},
                  %x: tensor<2x2x4xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[micro_batch, sample, none]>})
      -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.alias = 1 : i64}) {
    %0:2 = train.accumulate %x, %mean {carried = 1 : i64, count = 2 : i64} : (tensor<2x2x4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
    ^bb0(%i: tensor<i64>, %m: tensor<2x4xf32>, %before: tensor<4xf32>):
      %rows = train.reduce sum, %m {dimensions = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<4xf32>
      %next = train.add %before, %rows : tensor<4xf32>
      %y = train.mul %rows, %w : tensor<4xf32>
      %loss = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
      train.yield %loss, %next : tensor<f32>, tensor<4xf32>
    }
    return %0#0, %0#1 : tensor<f32>, tensor<4xf32>
  }
}
