// RUN: tessera-opt %s -annotate-index-bounds -split-input-file | FileCheck %s

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
