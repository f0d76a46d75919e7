// RUN: tessera-opt %s -annotate-index-bounds -split-input-file -verify-diagnostics | FileCheck %s

// Through a reshape and an integer conversion; the smallest table counts.
// CHECK-LABEL: func.func @tokens
// CHECK-SAME: %{{.*}}: tensor<50x4xf32> {train.name = "wte", train.role = "param"}
// CHECK-SAME: %{{.*}}: tensor<2x8xi64> {train.index_bound = 20 : i64, train.name = "ids", train.role = "input"}
func.func @tokens(%t: tensor<50x4xf32> {train.role = "param", train.name = "wte"}, %s: tensor<20x4xf32> {train.role = "param", train.name = "wpe"},
                  %ids: tensor<2x8xi64> {train.role = "input", train.name = "ids"}) -> (tensor<16x4xf32>, tensor<2x8x4xf32>) {
  %0 = train.reshape %ids : (tensor<2x8xi64>) -> tensor<16xi64>
  %1 = train.convert %0 : (tensor<16xi64>) -> tensor<16xi32>
  %2 = train.gather_rows %t, %1 : (tensor<50x4xf32>, tensor<16xi32>) -> tensor<16x4xf32>
  %3 = train.gather_rows %s, %ids : (tensor<20x4xf32>, tensor<2x8xi64>) -> tensor<2x8x4xf32>
  return %2, %3 : tensor<16x4xf32>, tensor<2x8x4xf32>
}

// -----

// CHECK-LABEL: func.func @targets
// CHECK-SAME: %{{.*}}: tensor<4xi32> {train.ignore_index = -100 : i64, train.index_bound = 10 : i64, train.name = "targets", train.role = "target"}
func.func @targets(%x: tensor<4x10xf32> {train.role = "input", train.name = "x"}, %y: tensor<4xi32> {train.role = "target", train.name = "targets"}) -> tensor<4xf32> {
  %loss, %lse = train.cross_entropy %x, %y {ignore_index = -100 : i64} : (tensor<4x10xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<4xf32>
}

// -----

// Not an index: no bound. A parameter used as a table is no batch argument.
// CHECK-LABEL: func.func @values
// CHECK-NOT: index_bound
func.func @values(%x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> tensor<4xf32> {
  %0 = train.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Computed indices whose range is known: 3 + the number of ones among 8 is at most 11.
// CHECK-LABEL: func.func @positions
// CHECK-NOT: train.max
func.func @positions(%t: tensor<12x4xf32> {train.role = "param", train.name = "wpe"}, %m: tensor<2x8xi64> {train.role = "input", train.name = "mask"}) -> tensor<2x4xf32> {
  %zero = train.constant dense<0> : tensor<2x8xi64>
  %0 = train.compare ne, %m, %zero : (tensor<2x8xi64>, tensor<2x8xi64>) -> tensor<2x8xi1>
  %1 = train.convert %0 : (tensor<2x8xi1>) -> tensor<2x8xi64>
  %2 = train.reduce sum, %1 {dimensions = array<i64: 1>} : (tensor<2x8xi64>) -> tensor<2xi64>
  %three = train.constant dense<3> : tensor<2xi64>
  %3 = train.add %2, %three : tensor<2xi64>
  %4 = train.gather_rows %t, %3 : (tensor<12x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}

// -----

// The same with one row less: clamped, with a remark.
// CHECK-LABEL: func.func @unknown
// CHECK: %[[LAST:.*]] = train.constant dense<10> : tensor<2xi64>
// CHECK: %[[LOW:.*]] = train.max
// CHECK: %[[BELOW:.*]] = train.compare lt, %[[LOW]], %[[LAST]]
// CHECK: %[[IN:.*]] = train.select %[[BELOW]], %[[LOW]], %[[LAST]]
// CHECK: train.gather_rows %{{.*}}, %[[IN]]
func.func @unknown(%t: tensor<11x4xf32> {train.role = "param", train.name = "wpe"}, %m: tensor<2x8xi64> {train.role = "input", train.name = "mask"}) -> tensor<2x4xf32> {
  %zero = train.constant dense<0> : tensor<2x8xi64>
  %0 = train.compare ne, %m, %zero : (tensor<2x8xi64>, tensor<2x8xi64>) -> tensor<2x8xi1>
  %1 = train.convert %0 : (tensor<2x8xi1>) -> tensor<2x8xi64>
  %2 = train.reduce sum, %1 {dimensions = array<i64: 1>} : (tensor<2x8xi64>) -> tensor<2xi64>
  %three = train.constant dense<3> : tensor<2xi64>
  %3 = train.add %2, %three : tensor<2xi64>
  // expected-remark @below {{indices are computed from data and not known to be in [0, 11): those outside count as the nearest one inside}}
  %4 = train.gather_rows %t, %3 : (tensor<11x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}

// -----

// Computed targets: the ignored one stays.
// CHECK-LABEL: func.func @computed_targets
// CHECK: %[[IN:.*]] = train.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xi1>, tensor<4xi64>
// CHECK: %[[IGNORED:.*]] = train.constant dense<-100> : tensor<4xi64>
// CHECK: %[[IS:.*]] = train.compare eq, %[[SUM:.*]], %[[IGNORED]]
// CHECK: train.select %[[IS]], %[[SUM]], %[[IN]]
func.func @computed_targets(%x: tensor<4x10xf32> {train.role = "input", train.name = "x"}, %y: tensor<4xi64> {train.role = "target", train.name = "targets"}) -> tensor<4xf32> {
  %0 = train.add %y, %y : tensor<4xi64>
  // expected-remark @below {{not known to be in [0, 10)}}
  %loss, %lse = train.cross_entropy %x, %0 {ignore_index = -100 : i64} : (tensor<4x10xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<4xf32>
}
