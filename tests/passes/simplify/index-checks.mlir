// RUN: tessera-opt %s -annotate-index-bounds | FileCheck %s
// RUN: tessera-opt %s -annotate-index-bounds -accumulate-gradients=count=3 | FileCheck %s --check-prefix=MICRO
// RUN: not tessera-opt %s -annotate-index-bounds=check=never 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: unknown check 'never', expected error or clamp

// Positions that are counted may be too many: the nearest one is read, and the step says which one it was.
// CHECK-LABEL: func.func @positions
// CHECK-SAME:    -> (tensor<f32> {train.role = "loss"}, tensor<2xi64> {train.index_bound = 4 : i64, train.index_low = 0 : i64, train.name = "counted", train.of = "wpe", train.role = "index_check"})
// CHECK:         %[[COUNT:.*]] = train.reduce sum
// CHECK:         %[[IN:.*]] = train.select
// CHECK:         %[[ROWS:.*]] = train.reshape %[[COUNT]] : (tensor<2xi64>) -> tensor<2x1xi64>
// CHECK:         %[[LEAST:.*]] = train.reduce min, %[[ROWS]] {dimensions = array<i64: 1>}
// CHECK:         %[[MOST:.*]] = train.reduce max, %[[ROWS]] {dimensions = array<i64: 1>}
// CHECK:         %[[BELOW:.*]] = train.compare lt, %[[LEAST]]
// CHECK:         %[[WORST:.*]] = train.select %[[BELOW]], %[[LEAST]], %[[MOST]]
// CHECK:         train.gather_rows %{{.*}}, %[[IN]]
// CHECK:         return %{{.*}}, %[[WORST]]

// Each micro-batch has a row of its own, in a sum that is not scaled.
// MICRO-LABEL: func.func @positions
// MICRO-SAME:    -> (tensor<f32> {train.role = "loss"}, tensor<3x2xi64> {train.index_bound = 4 : i64
// MICRO:         %[[SUMS:.*]]:2 = train.accumulate
// MICRO:           %[[OWN:.*]] = train.compare eq
// MICRO:           %[[ROW:.*]] = train.select %[[OWN]]
// MICRO:           train.yield %{{.*}}, %[[ROW]]
// MICRO:         return %{{.*}}, %[[SUMS]]#1
func.func @positions(%t: tensor<4x3xf32> {train.role = "param", train.name = "wpe"}, %m: tensor<2x8xi64> {train.role = "input", train.name = "mask"}) -> (tensor<f32> {train.role = "loss"}) {
  %count = train.reduce sum, %m {dimensions = array<i64: 1>} : (tensor<2x8xi64>) -> tensor<2xi64>
  %rows = train.gather_rows %t, %count : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<2x3xf32> loc("counted")
  %loss = train.reduce sum, %rows {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// An index that counts from the end where it is negative: its own value is reported.
// CHECK-LABEL: func.func @from_the_end
// CHECK-SAME:    train.index_bound = 4 : i64, train.index_low = -4 : i64
// CHECK:         %[[COUNT:.*]] = train.reduce sum
// CHECK:         train.reshape %[[COUNT]] : (tensor<2xi64>) -> tensor<2x1xi64>
func.func @from_the_end(%t: tensor<4x3xf32> {train.role = "param", train.name = "wpe"}, %m: tensor<2x8xi64> {train.role = "input", train.name = "mask"}) -> (tensor<f32> {train.role = "loss"}) {
  %zero = train.constant dense<0> : tensor<2xi64>
  %size = train.constant dense<4> : tensor<2xi64>
  %count = train.reduce sum, %m {dimensions = array<i64: 1>} : (tensor<2x8xi64>) -> tensor<2xi64>
  %negative = train.compare lt, %count, %zero : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
  %moved = train.add %count, %size : tensor<2xi64>
  %index = train.select %negative, %moved, %count : tensor<2xi1>, tensor<2xi64>
  %rows = train.gather_rows %t, %index : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %loss = train.reduce sum, %rows {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Not applied: a count is never negative, nor above its number of elements. It does not count from the end either.
// CHECK-LABEL: func.func @known
// CHECK-NOT:     index_check
// CHECK:         %[[COUNT:.*]] = train.reduce sum
// CHECK:         train.gather_rows %{{.*}}, %[[COUNT]]
func.func @known(%t: tensor<9x3xf32> {train.role = "param", train.name = "wpe"}, %m: tensor<2x8xi1> {train.role = "input", train.name = "mask"}) -> (tensor<f32> {train.role = "loss"}) {
  %zero = train.constant dense<0> : tensor<2xi64>
  %size = train.constant dense<9> : tensor<2xi64>
  %each = train.convert %m : (tensor<2x8xi1>) -> tensor<2x8xi64>
  %count = train.reduce sum, %each {dimensions = array<i64: 1>} : (tensor<2x8xi64>) -> tensor<2xi64>
  %negative = train.compare lt, %count, %zero : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
  %moved = train.add %count, %size : tensor<2xi64>
  %index = train.select %negative, %moved, %count : tensor<2xi1>, tensor<2xi64>
  %rows = train.gather_rows %t, %index : (tensor<9x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %loss = train.reduce sum, %rows {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
