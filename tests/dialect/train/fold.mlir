// RUN: tessera-opt %s --canonicalize | FileCheck %s

// --- Identities ---

// CHECK-LABEL: func @elementwise
// CHECK-SAME: %[[X:.*]]: tensor<3xf32>, %[[Y:[a-z0-9]*]]: tensor<3xf32>
func.func @elementwise(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %zero = train.constant dense<0.0> : tensor<3xf32>
  %one = train.constant dense<1.0> : tensor<3xf32>
  %a = train.add %zero, %x : tensor<3xf32>
  %b = train.sub %a, %zero : tensor<3xf32>
  %c = train.mul %one, %b : tensor<3xf32>
  %d = train.div %c, %one : tensor<3xf32>
  %e = train.pow %d, %one : tensor<3xf32>
  %f = train.neg %e : tensor<3xf32>
  %g = train.neg %f : tensor<3xf32>
  %h = train.convert %g : (tensor<3xf32>) -> tensor<3xf32>
  %true = train.constant dense<true> : tensor<3xi1>
  %false = train.constant dense<false> : tensor<3xi1>
  %s = train.select %true, %x, %y : tensor<3xi1>, tensor<3xf32>
  %t = train.select %false, %x, %y : tensor<3xi1>, tensor<3xf32>
  // CHECK-NEXT: return %[[X]], %[[X]], %[[Y]]
  return %h, %s, %t : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// x * 0 stays: x may be NaN. 1 - x is no identity.
// CHECK-LABEL: func @not_identities
func.func @not_identities(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %zero = train.constant dense<0.0> : tensor<3xf32>
  // CHECK: train.mul
  %a = train.mul %x, %zero : tensor<3xf32>
  // CHECK: train.sub
  %b = train.sub %zero, %x : tensor<3xf32>
  return %a, %b : tensor<3xf32>, tensor<3xf32>
}

// CHECK-LABEL: func @reshape_reshape
// CHECK-SAME: %[[X:.*]]: tensor<2x6xf32>
func.func @reshape_reshape(%x: tensor<2x6xf32>) -> (tensor<4x3xf32>, tensor<2x6xf32>) {
  %a = train.reshape %x : (tensor<2x6xf32>) -> tensor<12xf32>
  // CHECK-NEXT: %[[R:.*]] = train.reshape %[[X]] : (tensor<2x6xf32>) -> tensor<4x3xf32>
  %b = train.reshape %a : (tensor<12xf32>) -> tensor<4x3xf32>
  %c = train.reshape %b : (tensor<4x3xf32>) -> tensor<2x6xf32>
  // CHECK-NEXT: return %[[R]], %[[X]]
  return %b, %c : tensor<4x3xf32>, tensor<2x6xf32>
}

// CHECK-LABEL: func @transpose_transpose
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
func.func @transpose_transpose(%x: tensor<2x3x4xf32>) -> (tensor<4x3x2xf32>, tensor<2x3x4xf32>) {
  %a = train.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  // CHECK-NEXT: %[[T:.*]] = train.transpose %[[X]] {permutation = array<i64: 2, 1, 0>} : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
  %b = train.transpose %a {permutation = array<i64: 1, 0, 2>} : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32>
  %c = train.transpose %b {permutation = array<i64: 2, 1, 0>} : (tensor<4x3x2xf32>) -> tensor<2x3x4xf32>
  // CHECK-NEXT: return %[[T]], %[[X]]
  return %b, %c : tensor<4x3x2xf32>, tensor<2x3x4xf32>
}

// CHECK-LABEL: func @broadcast_broadcast
// CHECK-SAME: %[[X:.*]]: tensor<3xf32>
func.func @broadcast_broadcast(%x: tensor<3xf32>) -> tensor<2x4x3xf32> {
  %same = train.broadcast %x {broadcast_dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<3xf32>
  %a = train.broadcast %same {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<1x3xf32>
  // CHECK-NEXT: %[[B:.*]] = train.broadcast %[[X]] {broadcast_dimensions = array<i64: 2>} : (tensor<3xf32>) -> tensor<2x4x3xf32>
  %b = train.broadcast %a {broadcast_dimensions = array<i64: 1, 2>} : (tensor<1x3xf32>) -> tensor<2x4x3xf32>
  // CHECK-NEXT: return %[[B]]
  return %b : tensor<2x4x3xf32>
}

// CHECK-LABEL: func @slice_slice
// CHECK-SAME: %[[X:.*]]: tensor<20xf32>
func.func @slice_slice(%x: tensor<20xf32>) -> tensor<3xf32> {
  %a = train.slice %x {starts = array<i64: 3>, limits = array<i64: 19>, strides = array<i64: 2>} : (tensor<20xf32>) -> tensor<8xf32>
  // CHECK-NEXT: train.slice %[[X]] {limits = array<i64: 18>, starts = array<i64: 5>, strides = array<i64: 6>} : (tensor<20xf32>) -> tensor<3xf32>
  %b = train.slice %a {starts = array<i64: 1>, limits = array<i64: 8>, strides = array<i64: 3>} : (tensor<8xf32>) -> tensor<3xf32>
  return %b : tensor<3xf32>
}

// CHECK-LABEL: func @slice_concat
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>, %[[Y:.*]]: tensor<2x5xf32>
func.func @slice_concat(%x: tensor<2x3xf32>, %y: tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %c = train.concat %x, %y {dim = 1 : i64} : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  %exact = train.slice %c {starts = array<i64: 0, 3>, limits = array<i64: 2, 8>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<2x5xf32>
  // CHECK: %[[WITHIN:.*]] = train.slice %[[Y]] {limits = array<i64: 2, 3>, starts = array<i64: 0, 1>
  %within = train.slice %c {starts = array<i64: 0, 4>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<2x2xf32>
  // CHECK: %[[ACROSS:.*]] = train.slice %{{.*}} {limits = array<i64: 2, 4>
  %across = train.slice %c {starts = array<i64: 0, 2>, limits = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<2x2xf32>
  // CHECK: return %[[Y]], %[[WITHIN]], %[[ACROSS]]
  return %exact, %within, %across : tensor<2x5xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// CHECK-LABEL: func @trivial
// CHECK-SAME: %[[X:.*]]: tensor<3xf32>
func.func @trivial(%x: tensor<3xf32>) -> tensor<3xf32> {
  %a = train.concat %x {dim = 0 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  %b = train.pad %a {low = array<i64: 0>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<3xf32>) -> tensor<3xf32>
  %c = train.slice %b {starts = array<i64: 0>, limits = array<i64: 3>, strides = array<i64: 1>} : (tensor<3xf32>) -> tensor<3xf32>
  %d = train.transpose %c {permutation = array<i64: 0>} : (tensor<3xf32>) -> tensor<3xf32>
  %e = train.reduce sum, %d {dimensions = array<i64>} : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK-NEXT: return %[[X]]
  return %e : tensor<3xf32>
}

// --- Constants ---

// CHECK-LABEL: func @shape_arithmetic
func.func @shape_arithmetic() -> tensor<4xi64> {
  // CHECK-NEXT: %[[C:.*]] = train.constant dense<[8, 12, 16, 48]> : tensor<4xi64>
  // CHECK-NEXT: return %[[C]]
  %shape = train.constant dense<[8, 16, 192]> : tensor<3xi64>
  %i = train.constant dense<[0, 1]> : tensor<2xi64>
  %batch = train.gather_rows %shape, %i : (tensor<3xi64>, tensor<2xi64>) -> tensor<2xi64>
  %last = train.slice %shape {starts = array<i64: 2>, limits = array<i64: 3>, strides = array<i64: 1>} : (tensor<3xi64>) -> tensor<1xi64>
  %heads = train.constant dense<12> : tensor<1xi64>
  %four = train.constant dense<4> : tensor<1xi64>
  %depth = train.div %last, %four : tensor<1xi64>
  %b = train.slice %batch {starts = array<i64: 0>, limits = array<i64: 1>, strides = array<i64: 1>} : (tensor<2xi64>) -> tensor<1xi64>
  %t = train.slice %batch {starts = array<i64: 1>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<2xi64>) -> tensor<1xi64>
  %all = train.concat %b, %heads, %t, %depth {dim = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xi64>
  return %all : tensor<4xi64>
}

// CHECK-LABEL: func @where
func.func @where() -> (tensor<3xi64>, tensor<i64>, tensor<3xf32>) {
  // CHECK-DAG: train.constant dense<[1, 4, 8]> : tensor<3xi64>
  // CHECK-DAG: train.constant dense<32> : tensor<i64>
  // CHECK-DAG: train.constant dense<[1.000000e+00, 4.000000e+00, 8.000000e+00]> : tensor<3xf32>
  // CHECK-NOT: train.select
  %a = train.constant dense<[-1, 4, 8]> : tensor<3xi64>
  %minus = train.constant dense<-1> : tensor<3xi64>
  %one = train.constant dense<1> : tensor<3xi64>
  %is = train.compare eq, %a, %minus : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
  %s = train.select %is, %one, %a : tensor<3xi1>, tensor<3xi64>
  %n = train.reduce mul, %s {dimensions = array<i64: 0>} : (tensor<3xi64>) -> tensor<i64>
  %f = train.convert %s : (tensor<3xi64>) -> tensor<3xf32>
  return %s, %n, %f : tensor<3xi64>, tensor<i64>, tensor<3xf32>
}

// Splats stay splats, however large.
// CHECK-LABEL: func @large_splat
func.func @large_splat() -> tensor<4096x4096xf32> {
  // CHECK-NEXT: %[[C:.*]] = train.constant dense<5.000000e-01> : tensor<4096x4096xf32>
  // CHECK-NEXT: return %[[C]]
  %two = train.constant dense<2.0> : tensor<f32>
  %one = train.constant dense<1.0> : tensor<4096x4096xf32>
  %b = train.broadcast %two {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4096x4096xf32>
  %d = train.div %one, %b : tensor<4096x4096xf32>
  return %d : tensor<4096x4096xf32>
}

// A table repeated beyond 1024 elements stays a broadcast.
// CHECK-LABEL: func @large
func.func @large() -> tensor<1024x1025xi32> {
  // CHECK: train.broadcast
  %a = train.constant dense<[[1], [2]]> : tensor<2x1xi32>
  %t = train.reshape %a : (tensor<2x1xi32>) -> tensor<1x2xi32>
  %b = train.slice %t {starts = array<i64: 0, 0>, limits = array<i64: 1, 2>, strides = array<i64: 1, 1>} : (tensor<1x2xi32>) -> tensor<1x2xi32>
  %c = train.broadcast %b {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x2xi32>) -> tensor<524800x2xi32>
  %r = train.reshape %c : (tensor<524800x2xi32>) -> tensor<1024x1025xi32>
  return %r : tensor<1024x1025xi32>
}

// What would be an error at run time is not folded.
// CHECK-LABEL: func @division_by_zero
func.func @division_by_zero() -> tensor<2xi32> {
  // CHECK: train.div
  %a = train.constant dense<[4, 3]> : tensor<2xi32>
  %b = train.constant dense<[2, 0]> : tensor<2xi32>
  %r = train.div %a, %b : tensor<2xi32>
  return %r : tensor<2xi32>
}
