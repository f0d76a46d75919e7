// RUN: tessera-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func @pow
// CHECK-SAME: %[[X:.*]]: tensor<3xf32>
func.func @pow(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %two = train.constant dense<2.0> : tensor<3xf32>
  %half = train.constant dense<0.5> : tensor<3xf32>
  %minus = train.constant dense<-0.5> : tensor<3xf32>
  %three = train.constant dense<3.0> : tensor<3xf32>
  // CHECK: train.mul %[[X]], %[[X]]
  %a = train.pow %x, %two : tensor<3xf32>
  // CHECK: train.sqrt %[[X]]
  %b = train.pow %x, %half : tensor<3xf32>
  // CHECK: train.rsqrt %[[X]]
  %c = train.pow %x, %minus : tensor<3xf32>
  // CHECK: train.pow %[[X]]
  %d = train.pow %x, %three : tensor<3xf32>
  return %a, %b, %c, %d : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// The gradients of three slices that partition a value.
// CHECK-LABEL: func @pads_to_concat
// CHECK-SAME: %[[Q:.*]]: tensor<2x3xf32>, %[[K:.*]]: tensor<2x1xf32>, %[[V:.*]]: tensor<2x2xf32>
func.func @pads_to_concat(%q: tensor<2x3xf32>, %k: tensor<2x1xf32>, %v: tensor<2x2xf32>) -> tensor<2x6xf32> {
  %pv = train.pad %v {low = array<i64: 0, 4>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<2x2xf32>) -> tensor<2x6xf32>
  %pk = train.pad %k {low = array<i64: 0, 3>, high = array<i64: 0, 2>, interior = array<i64: 0, 0>} : (tensor<2x1xf32>) -> tensor<2x6xf32>
  %pq = train.pad %q {low = array<i64: 0, 0>, high = array<i64: 0, 3>, interior = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x6xf32>
  %a = train.add %pv, %pk : tensor<2x6xf32>
  // CHECK-NEXT: %[[C:.*]] = train.concat %[[Q]], %[[K]], %[[V]] {dim = 1 : i64, train.backward}
  %b = train.add %a, %pq {train.backward} : tensor<2x6xf32>
  // CHECK-NEXT: return %[[C]]
  return %b : tensor<2x6xf32>
}

// CHECK-LABEL: func @pads_that_overlap
func.func @pads_that_overlap(%q: tensor<3xf32>, %k: tensor<2xf32>) -> (tensor<4xf32>, tensor<6xf32>) {
  %pq = train.pad %q {low = array<i64: 0>, high = array<i64: 1>, interior = array<i64: 0>} : (tensor<3xf32>) -> tensor<4xf32>
  %pk = train.pad %k {low = array<i64: 2>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<2xf32>) -> tensor<4xf32>
  // CHECK: train.add
  %overlap = train.add %pq, %pk : tensor<4xf32>
  %gq = train.pad %q {low = array<i64: 0>, high = array<i64: 3>, interior = array<i64: 0>} : (tensor<3xf32>) -> tensor<6xf32>
  %gk = train.pad %k {low = array<i64: 4>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<2xf32>) -> tensor<6xf32>
  // CHECK: train.add
  %gap = train.add %gq, %gk : tensor<6xf32>
  return %overlap, %gap : tensor<4xf32>, tensor<6xf32>
}

// CHECK-LABEL: func @add_into_scatter
// CHECK-SAME: %[[X:.*]]: tensor<5x2xf32>, %[[I:.*]]: tensor<3xi32>, %[[U:.*]]: tensor<3x2xf32>
func.func @add_into_scatter(%x: tensor<5x2xf32>, %i: tensor<3xi32>, %u: tensor<3x2xf32>) -> tensor<5x2xf32> {
  %zero = train.constant dense<0.0> : tensor<5x2xf32>
  %s = train.scatter_add_rows %zero, %i, %u : (tensor<5x2xf32>, tensor<3xi32>, tensor<3x2xf32>) -> tensor<5x2xf32>
  // CHECK-NEXT: %[[S:.*]] = train.scatter_add_rows %[[X]], %[[I]], %[[U]] {train.backward}
  %a = train.add %x, %s {train.backward} : tensor<5x2xf32>
  // CHECK-NEXT: return %[[S]]
  return %a : tensor<5x2xf32>
}

// CHECK-LABEL: func @concat_concat
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<0xf32>, %[[Z:.*]]: tensor<3xf32>
func.func @concat_concat(%x: tensor<2xf32>, %y: tensor<0xf32>, %z: tensor<3xf32>) -> tensor<8xf32> {
  %a = train.concat %x, %y, %z {dim = 0 : i64} : (tensor<2xf32>, tensor<0xf32>, tensor<3xf32>) -> tensor<5xf32>
  // CHECK-NEXT: train.concat %[[Z]], %[[X]], %[[Z]] {dim = 0 : i64}
  %b = train.concat %z, %a {dim = 0 : i64} : (tensor<3xf32>, tensor<5xf32>) -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// CHECK-LABEL: func @reduce_unit
func.func @reduce_unit(%x: tensor<2x1x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: train.reshape
  %r = train.reduce sum, %x {dimensions = array<i64: 1>, train.backward} : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// In the forward pass the dimension may be a batch of one sample.
// CHECK-LABEL: func @reduce_sample
func.func @reduce_sample(%x: tensor<1x3xf32>) -> tensor<3xf32> {
  // CHECK-NEXT: train.reduce sum
  %r = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<1x3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
