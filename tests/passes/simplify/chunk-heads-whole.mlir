// What a part of is read, and all of as well, is computed whole: values that follow from the queries' projection.
// RUN: tessera-opt %s --chunk-heads=heads=1 -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --chunk-heads=heads=1 2>/dev/null | tessera-interp - --compare=%s

// CHECK-LABEL: func @values_of_queries
// CHECK: %[[P:.*]] = train.dot_general %arg0, %arg1
// CHECK: train.dot_general %[[P]], 
// CHECK-COUNT-2: train.attention
// CHECK-NOT: train.attention
func.func @values_of_queries(%x: tensor<1x6x8xf32>, %wq: tensor<8x8xf32>, %wv: tensor<8x8xf32>) -> tensor<1x2x6x4xf32> {
  %q0 = train.dot_general %x, %wq {lhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<1x6x8xf32>, tensor<8x8xf32>) -> tensor<1x6x8xf32>
  %qr = train.reshape %q0 : (tensor<1x6x8xf32>) -> tensor<1x6x2x4xf32>
  %q = train.transpose %qr {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x6x2x4xf32>) -> tensor<1x2x6x4xf32>
  %v0 = train.dot_general %q0, %wv {lhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<1x6x8xf32>, tensor<8x8xf32>) -> tensor<1x6x8xf32>
  %vr = train.reshape %v0 : (tensor<1x6x8xf32>) -> tensor<1x6x2x4xf32>
  %v = train.transpose %vr {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x6x2x4xf32>) -> tensor<1x2x6x4xf32>
  // expected-remark@below {{has other readers}}
  %y, %l = train.attention %q, %q, %v {scale = 0.5 : f64} : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>) -> (tensor<1x2x6x4xf32>, tensor<1x2x6xf32>)
  return %y : tensor<1x2x6x4xf32>
}
