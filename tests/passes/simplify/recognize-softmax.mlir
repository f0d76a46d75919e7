// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(recognize-softmax,canonicalize))' | FileCheck %s
// No diagnostic: an exponential over another sum is ordinary arithmetic, which stays as it is.

// With the maximum, one number per row without the dimension.
// CHECK-LABEL: func @with_maximum
// CHECK-NEXT: %[[P:.*]] = train.softmax %arg0 {dim = 1 : i64}
// CHECK-NEXT: return %[[P]]
func.func @with_maximum(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %mb = train.broadcast %m {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
  %d = train.sub %x, %mb : tensor<4x8xf32>
  %e = train.exp %d : tensor<4x8xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %sb = train.broadcast %s {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
  %p = train.div %e, %sb : tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}

// The dimension is kept with size 1, the maximum is not subtracted, and it is the first dimension.
// CHECK-LABEL: func @kept_dimension
// CHECK-NEXT: train.softmax %arg0 {dim = 0 : i64}
func.func @kept_dimension(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = train.exp %x : tensor<4x8xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<8xf32>
  %k = train.reshape %s : (tensor<8xf32>) -> tensor<1x8xf32>
  %sb = train.broadcast %k {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %p = train.div %e, %sb : tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}

// A product with the reciprocal of the sum.
// CHECK-LABEL: func @reciprocal
// CHECK-NEXT: train.softmax %arg0 {dim = 1 : i64}
func.func @reciprocal(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = train.constant dense<1.0> : tensor<4xf32>
  %e = train.exp %x : tensor<4x8xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %r = train.div %one, %s : tensor<4xf32>
  %rb = train.broadcast %r {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
  %p = train.mul %e, %rb : tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}

// The sum is of another exponential: not a softmax.
// CHECK-LABEL: func @other_sum
// CHECK-NOT: train.softmax
func.func @other_sum(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = train.exp %x : tensor<4x8xf32>
  %f = train.exp %y : tensor<4x8xf32>
  %s = train.reduce sum, %f {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %sb = train.broadcast %s {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
  %p = train.div %e, %sb : tensor<4x8xf32>
  return %p : tensor<4x8xf32>
}

// Rows are divided by the sums of columns: the broadcast goes the other way.
// CHECK-LABEL: func @crossed
// CHECK-NOT: train.softmax
func.func @crossed(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = train.exp %x : tensor<8x8xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 1>} : (tensor<8x8xf32>) -> tensor<8xf32>
  %sb = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<8x8xf32>
  %p = train.div %e, %sb : tensor<8x8xf32>
  return %p : tensor<8x8xf32>
}
