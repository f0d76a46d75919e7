// RUN: tessera-opt %s --add-evaluation --split-input-file --verify-diagnostics | FileCheck %s

// A mean, a sum, and a quotient of sums of which the divisor follows from data alone; training has none of them.
// CHECK-LABEL: func.func @step
// CHECK-SAME: -> (tensor<f32> {train.role = "loss"}) attributes
// CHECK-NOT: reduce max
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: train.role = "loss_count"}, tensor<f32> {train.name = "mean", train.role = "metric_sum"}, tensor<f32> {train.name = "mean", train.role = "metric_count"}
// CHECK-SAME: tensor<f32> {train.name = "sum", train.role = "metric_sum"}, tensor<f32> {train.name = "sum", train.plus = 1.000000e+00 : f64, train.role = "metric_count"}
// CHECK-SAME: tensor<f32> {train.name = "weighted", train.role = "metric_sum"}, tensor<f32> {train.name = "weighted", train.role = "metric_count"})
// CHECK: %[[MEAN:.*]] = train.reduce sum, %{{.*}} {dimensions = array<i64: 0>, train.mean}
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}}, %[[ONE:.*]], %[[SUM:.*]], %[[ZERO:.*]], %{{.*}}, %{{.*}} :
func.func @step(%w: tensor<8xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x8xf32> {train.role = "input", train.name = "x"},
                %y: tensor<4xf32> {train.role = "input", train.name = "y"})
    -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "evaluated", train.name = "mean"},
        tensor<f32> {train.role = "evaluated", train.name = "sum"}, tensor<f32> {train.role = "evaluated", train.name = "weighted"})
    attributes {train.loss_of_batch = "mean"} {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %z = train.mul %x, %wide : tensor<4x8xf32>
  %row = train.reduce sum, %z {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %four = train.constant dense<4.0> : tensor<f32>
  %total = train.reduce sum, %row {dimensions = array<i64: 0>, train.mean} : (tensor<4xf32>) -> tensor<f32>
  %loss = train.div %total, %four : tensor<f32>
  %largest = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %all = train.reduce sum, %largest {dimensions = array<i64: 0>, train.mean} : (tensor<4xf32>) -> tensor<f32>
  %mean = train.div %all, %four : tensor<f32>
  %sum = train.reduce sum, %largest {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %some = train.mul %row, %y : tensor<4xf32>
  %over = train.reduce sum, %some {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %weight = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %weighted = train.div %over, %weight : tensor<f32>
  return %loss, %mean, %sum, %weighted : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// Not of a maximum over the batch.
func.func @step(%w: tensor<f32> {train.role = "param", train.name = "w"}, %x: tensor<4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "evaluated", train.name = "largest"}) attributes {train.loss_of_batch = "mean"} {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %z = train.mul %x, %wide : tensor<4xf32>
  %four = train.constant dense<4.0> : tensor<f32>
  %total = train.reduce sum, %z {dimensions = array<i64: 0>, train.mean} : (tensor<4xf32>) -> tensor<f32>
  %loss = train.div %total, %four : tensor<f32>
  // expected-error@+1 {{the model cannot be evaluated: a metric of several batches does not follow from theirs: 'train.reduce'}}
  %largest = train.reduce max, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss, %largest : tensor<f32>, tensor<f32>
}
