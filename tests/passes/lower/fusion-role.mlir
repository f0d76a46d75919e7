// RUN: tessera-opt %s --decompose --fuse | FileCheck %s
// RUN: tessera-opt %s --decompose --fuse -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --rtol=1e-4 --atol=1e-5 --quiet
// RUN: tessera-opt %s --decompose --fuse --outline-kernels | kernel-check
// What is compared differs in the order of sums and in what is computed twice, hence up to rounding.

// A contiguous slice and a reshape of a unit, and a concatenation along dimension 0, stay outside.
// CHECK-LABEL: func.func @unit
// CHECK:         %[[S:.*]] = train.slice
// CHECK:         %[[R:.*]] = train.reshape %[[S]]
// CHECK:         %[[F:.*]] = exec.fusion "elementwise"(%[[R]])
// CHECK:         train.concat
func.func @unit(%u: tensor<40xf32>) -> tensor<40xf32> {
  %s = train.slice %u {starts = array<i64: 8>, limits = array<i64: 32>, strides = array<i64: 1>} : (tensor<40xf32>) -> tensor<24xf32>
  %r = train.reshape %s : (tensor<24xf32>) -> tensor<4x6xf32>
  %e = train.exp %r : tensor<4x6xf32>
  %f = train.reshape %e : (tensor<4x6xf32>) -> tensor<24xf32>
  %z = train.constant dense<0.0> : tensor<16xf32>
  %c = train.concat %f, %z {dim = 0 : i64} : (tensor<24xf32>, tensor<16xf32>) -> tensor<40xf32>
  return %c : tensor<40xf32>
}

// Rotary embedding: slices and concatenation along the last dimension are index maps.
// CHECK-LABEL: func.func @rotary
// CHECK-COUNT-1: exec.fusion "elementwise"
// CHECK-NOT:     exec.fusion
// CHECK:         return
func.func @rotary(%x: tensor<2x3x4x8xf32>, %c: tensor<4x8xf32>, %s: tensor<4x8xf32>) -> tensor<2x3x4x8xf32> {
  %a = train.slice %x {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 3, 4, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
  %b = train.slice %x {starts = array<i64: 0, 0, 0, 4>, limits = array<i64: 2, 3, 4, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
  %n = train.neg %b : tensor<2x3x4x4xf32>
  %rot = train.concat %n, %a {dim = 3 : i64} : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x8xf32>
  %cb = train.broadcast %c {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x8xf32>) -> tensor<2x3x4x8xf32>
  %sb = train.broadcast %s {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x8xf32>) -> tensor<2x3x4x8xf32>
  %0 = train.mul %x, %cb : tensor<2x3x4x8xf32>
  %1 = train.mul %rot, %sb : tensor<2x3x4x8xf32>
  %2 = train.add %0, %1 : tensor<2x3x4x8xf32>
  return %2 : tensor<2x3x4x8xf32>
}

// A broadcast that is returned needs a kernel of its own.
// CHECK-LABEL: func.func @materialize
// CHECK:         %[[B:.*]] = exec.fusion "elementwise"
// CHECK:           train.broadcast
// CHECK:         return %[[B]]
func.func @materialize(%x: tensor<4xf32>) -> tensor<3x4xf32> {
  %0 = train.broadcast %x {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// Gradients of queries and keys that attention writes strided: they are made in their places in one matrix, which the
// product and the kernel read.
// CHECK-LABEL: func.func @parts_of_a_matrix
// CHECK:         %[[DQ:.*]], %[[DK:.*]], %{{.*}} = train.attention_grad
// CHECK:         %[[M:.*]] = train.concat
// CHECK:         exec.fusion "column"(%[[M]])
// CHECK:         train.dot_general %[[M]]
func.func @parts_of_a_matrix(%q: tensor<1x2x4x8xf32>, %lse: tensor<1x2x4xf32>, %w: tensor<32x3xf32>) -> (tensor<32xf32>, tensor<1x4x3xf32>, tensor<1x2x4x8xf32>) {
  %dq, %dk, %dv = train.attention_grad %q, %q, %q, %q, %lse, %q {causal, scale = 1.0 : f64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  %tq = train.transpose %dq {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x2x4x8xf32>) -> tensor<1x4x2x8xf32>
  %tk = train.transpose %dk {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x2x4x8xf32>) -> tensor<1x4x2x8xf32>
  %rq = train.reshape %tq : (tensor<1x4x2x8xf32>) -> tensor<1x4x16xf32>
  %rk = train.reshape %tk : (tensor<1x4x2x8xf32>) -> tensor<1x4x16xf32>
  %c = train.concat %rq, %rk {dim = 2 : i64} : (tensor<1x4x16xf32>, tensor<1x4x16xf32>) -> tensor<1x4x32xf32>
  %s = train.reduce sum, %c {dimensions = array<i64: 0, 1>} : (tensor<1x4x32xf32>) -> tensor<32xf32>
  %p = train.dot_general %c, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<1x4x32xf32>, tensor<32x3xf32>) -> tensor<1x4x3xf32>
  return %s, %p, %dv : tensor<32xf32>, tensor<1x4x3xf32>, tensor<1x2x4x8xf32>
}

// A concatenation of what kernels compute, for a product: one kernel writes it.
// CHECK-LABEL: func.func @joined_by_a_kernel
// CHECK:         %[[M:.*]] = exec.fusion "elementwise"(%{{.*}}, %{{.*}}) {{.*}} -> tensor<4x6xf32>
// CHECK:           train.concat
// CHECK:           exec.yield
// CHECK:         train.dot_general %[[M]]
func.func @joined_by_a_kernel(%x: tensor<4x2xf32>, %y: tensor<4x4xf32>, %w: tensor<6x3xf32>) -> tensor<4x3xf32> {
  %a = train.neg %x : tensor<4x2xf32>
  %b = train.exp %y : tensor<4x4xf32>
  %c = train.concat %a, %b {dim = 1 : i64} : (tensor<4x2xf32>, tensor<4x4xf32>) -> tensor<4x6xf32>
  %p = train.dot_general %c, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x6xf32>, tensor<6x3xf32>) -> tensor<4x3xf32>
  return %p : tensor<4x3xf32>
}

// Heads merged into rows for a product are no view of what a kernel would write: the kernel writes them merged. What
// attention computes is left to it to write merged, and the kernel reads that.
// CHECK-LABEL: func.func @merged_heads
// CHECK:         exec.fusion "elementwise"({{.*}} -> tensor<4x16xf32>
// CHECK:         train.dot_general
// CHECK:         %[[O:.*]], %{{.*}} = train.attention
// CHECK:         %[[T:.*]] = train.transpose %[[O]]
// CHECK:         %[[M:.*]] = train.reshape %[[T]]
// CHECK:         exec.fusion "column"(%[[M]])
// CHECK:         train.dot_general %[[M]]
func.func @merged_heads(%x: tensor<1x2x4x8xf32>, %w: tensor<16x3xf32>) -> (tensor<4x3xf32>, tensor<16xf32>, tensor<4x3xf32>) {
  %e = train.exp %x : tensor<1x2x4x8xf32>
  %t = train.transpose %e {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x2x4x8xf32>) -> tensor<1x4x2x8xf32>
  %r = train.reshape %t : (tensor<1x4x2x8xf32>) -> tensor<4x16xf32>
  %p = train.dot_general %r, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x16xf32>, tensor<16x3xf32>) -> tensor<4x3xf32>
  %o, %lse = train.attention %x, %x, %x {causal, scale = 1.0 : f64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  %u = train.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x2x4x8xf32>) -> tensor<1x4x2x8xf32>
  %m = train.reshape %u : (tensor<1x4x2x8xf32>) -> tensor<4x16xf32>
  %s = train.reduce sum, %m {dimensions = array<i64: 0>} : (tensor<4x16xf32>) -> tensor<16xf32>
  %k = train.dot_general %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x16xf32>, tensor<16x3xf32>) -> tensor<4x3xf32>
  return %p, %s, %k : tensor<4x3xf32>, tensor<16xf32>, tensor<4x3xf32>
}

// A table that a library call, a concatenation and a repetition read from memory: a kernel writes it there.
// CHECK-LABEL: func.func @tables
// CHECK:         %[[A:.*]] = exec.fusion "elementwise"()
// CHECK:           train.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]>
// CHECK:         train.dot_general %{{.*}}, %[[A]]
// CHECK:         %[[B:.*]] = exec.fusion "elementwise"()
// CHECK:         train.concat %{{.*}}, %[[B]]
func.func @tables(%x: tensor<2x2xf32>, %y: tensor<2xf32>) -> (tensor<2x2xf32>, tensor<4xf32>) {
  %a = train.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %p = train.dot_general %x, %a {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = train.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %c = train.concat %y, %b {dim = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %p, %c : tensor<2x2xf32>, tensor<4xf32>
}
