// Three query heads of each of four key heads: a chunk has all query heads of two key heads, in one range.
// RUN: tessera-opt %s --chunk-heads=heads=6 -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: tessera-opt %t.mlir --chunk-heads=heads=6 | diff %t.mlir -
// RUN: tessera-interp %t.mlir --compare=%s --rtol=1e-5 --atol=1e-6 --quiet
// RUN: not tessera-opt %s --chunk-heads=heads=2 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not tessera-opt %s --chunk-heads=heads=9 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not tessera-opt %s --chunk-heads=heads=-4 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: tessera-opt %s -o %t.whole.mlir
// RUN: tessera-opt %s --chunk-heads=heads=12 | diff %t.whole.mlir -
// ERROR: error: attention has 12 query heads and 4 key heads, of which {{2|9|-4}} query heads cannot be taken at a time: expected a multiple of 4 that divides 12, or the query heads of a number of key heads that divides 4
// CHECK-NOT: tensor<2x6x48xf32>
// CHECK: train.slice %arg1 {limits = array<i64: 24, 8>, starts = array<i64: 0, 0>
// CHECK: train.slice %arg2 {limits = array<i64: 8, 8>, starts = array<i64: 0, 0>
// CHECK: train.slice %arg3 {limits = array<i64: 8, 8>, starts = array<i64: 0, 0>
// CHECK: %[[Y0:.*]], %{{.*}} = train.attention {{.*}} (tensor<2x6x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>)
// CHECK: train.slice %arg1 {limits = array<i64: 48, 8>, starts = array<i64: 24, 0>
// CHECK: %[[Y1:.*]], %{{.*}} = train.attention
// CHECK: train.concat %[[Y0]], %[[Y1]] {dim = 1 : i64}
func.func @key_heads(%x: tensor<2x6x8xf32> {train.role = "input", train.name = "x"}, %wq: tensor<48x8xf32> {train.role = "param", train.name = "wq"}, %wk: tensor<16x8xf32> {train.role = "param", train.name = "wk"}, %wv: tensor<16x8xf32> {train.role = "param", train.name = "wv"}) -> (tensor<2x12x6x4xf32>) {
  %q0 = train.dot_general %x, %wq {lhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<2x6x8xf32>, tensor<48x8xf32>) -> tensor<2x6x48xf32>
  %qr = train.reshape %q0 : (tensor<2x6x48xf32>) -> tensor<2x6x12x4xf32>
  %q = train.transpose %qr {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x12x4xf32>) -> tensor<2x12x6x4xf32>
  %k0 = train.dot_general %x, %wk {lhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<2x6x8xf32>, tensor<16x8xf32>) -> tensor<2x6x16xf32>
  %kr = train.reshape %k0 : (tensor<2x6x16xf32>) -> tensor<2x6x4x4xf32>
  %k = train.transpose %kr {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x4xf32>) -> tensor<2x4x6x4xf32>
  %v0 = train.dot_general %x, %wv {lhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<2x6x8xf32>, tensor<16x8xf32>) -> tensor<2x6x16xf32>
  %vr = train.reshape %v0 : (tensor<2x6x16xf32>) -> tensor<2x6x4x4xf32>
  %v = train.transpose %vr {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x4xf32>) -> tensor<2x4x6x4xf32>
  %y, %lse = train.attention %q, %k, %v {causal, scale = 0.5} : (tensor<2x12x6x4xf32>, tensor<2x4x6x4xf32>, tensor<2x4x6x4xf32>) -> (tensor<2x12x6x4xf32>, tensor<2x12x6xf32>)
  return %y : tensor<2x12x6x4xf32>
}
