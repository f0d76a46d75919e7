// Which values of a step are kept in memory, and so rounded to bf16: what a library reads, and what the backward pass reads and
// cannot compute again.
// RUN: tessera-opt %s --split-input-file --cast-precision | FileCheck %s
// RUN: grep -v ^// %s > %t.mlir
// RUN: tessera-opt %t.mlir --cast-precision -o %t.cast.mlir
// RUN: tessera-interp %t.cast.mlir --compare=%t.mlir --rtol=0.05 --atol=0.1 --quiet

// A library reads it, also through a view; a sort, a reduction, an elementwise op and the caller do not.
// CHECK-LABEL: func.func @readers
// CHECK: %[[PRODUCT:.*]] = train.tanh
// CHECK-NEXT: train.convert %[[PRODUCT]] : (tensor<2x4xf32>) -> tensor<2x4xbf16>
// CHECK: %[[VIEW:.*]] = train.exp
// CHECK-NEXT: train.convert %[[VIEW]] : (tensor<2x4xf32>) -> tensor<2x4xbf16>
// CHECK: %[[OTHERS:.*]] = train.neg
// CHECK-NOT: train.convert %[[OTHERS]]
// CHECK: train.reduce sum, %[[OTHERS]]
// CHECK: train.argmax %[[OTHERS]]
// CHECK: train.sort_indices %[[OTHERS]]
// CHECK: train.abs %[[OTHERS]]
func.func @readers(%u: tensor<16xf32> {train.role = "param", train.name = "u"},
                   %x: tensor<2x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<2x4xf32> {train.role = "output", train.name = "p"}, tensor<4x4xf32> {train.role = "output", train.name = "q"},
        tensor<2xf32> {train.role = "output", train.name = "s"}, tensor<2x4xf32> {train.role = "output", train.name = "n"}) {
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %t = train.tanh %y : tensor<2x4xf32>
  %p = train.dot_general %t, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %e = train.exp %y : tensor<2x4xf32>
  %v = train.transpose %e {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %q = train.dot_general %v, %p {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %n = train.neg %y : tensor<2x4xf32>
  %s = train.reduce sum, %n {dimensions = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2xf32>
  %most = train.argmax %n {dim = 1 : i64} : (tensor<2x4xf32>) -> tensor<2xi32>
  %order = train.sort_indices %n {dim = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x4xi32>
  %positive = train.abs %n : tensor<2x4xf32>
  return %p, %q, %s, %n : tensor<2x4xf32>, tensor<4x4xf32>, tensor<2xf32>, tensor<2x4xf32>
}

// -----
// What the backward pass reads is rounded, unless it can be computed again from what is rounded and read anyway.

// CHECK-LABEL: func.func @saved
func.func @saved(%u: tensor<16xf32> {train.role = "param", train.name = "u"},
                 %x: tensor<2x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<2x4xf32> {train.role = "output", train.name = "a"}, tensor<2x4xf32> {train.role = "output", train.name = "b"}) {
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  // CHECK: %[[Y:.*]] = train.dot_general
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %z = train.dot_general %y, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  // CHECK: %[[TANH:.*]] = train.tanh {{.*}} : tensor<2x4xf32>
  // CHECK-NEXT: %[[SAVED:.*]] = train.convert %[[TANH]] : (tensor<2x4xf32>) -> tensor<2x4xbf16>
  %t = train.tanh %z : tensor<2x4xf32>
  // CHECK: %[[EXP:.*]] = train.exp {{.*}} : tensor<2x4xf32>
  // CHECK-NOT: train.convert %[[EXP]]
  %e = train.exp %y : tensor<2x4xf32>
  // CHECK: train.mul %{{.*}}, %[[EXP]] {train.backward} : tensor<2x4xf32>
  %b = train.mul %y, %e {train.backward} : tensor<2x4xf32>
  // CHECK: %[[AGAIN:.*]] = train.convert %[[SAVED]] {train.backward} : (tensor<2x4xbf16>) -> tensor<2x4xf32>
  // CHECK: train.neg %[[AGAIN]]
  %a = train.neg %t {train.backward} : tensor<2x4xf32>
  return %a, %b : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// What recomputation starts from is kept, and so rounded.

// CHECK-LABEL: func.func @barrier
func.func @barrier(%u: tensor<16xf32> {train.role = "param", train.name = "u"},
                   %x: tensor<2x4xf32> {train.role = "input", train.name = "x"}) -> tensor<2x4xf32> {
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %e = train.exp %y : tensor<2x4xf32>
  // CHECK: train.barrier %{{.*}} {train.backward} : tensor<2x4xbf16>
  %k = train.barrier %e {train.backward} : tensor<2x4xf32>
  %b = train.mul %y, %k {train.backward} : tensor<2x4xf32>
  return %b : tensor<2x4xf32>
}

// -----

// What the backward pass computes again for a product in f32 is rounded as the forward pass rounded it; a gradient that
// such a product alone reads is not.

// CHECK-LABEL: func.func @recomputed
func.func @recomputed(%r: tensor<4x4xf32> {train.role = "param", train.name = "r", train.compute_type = f32},
                      %u: tensor<16xf32> {train.role = "param", train.name = "u"},
                      %x: tensor<4x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<4x4xf32> {train.role = "output", train.name = "y"}, tensor<4x4xf32> {train.role = "grad", train.of = "r"}) {
  %uw = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %h = train.dot_general %x, %uw {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[T:.*]] = train.tanh
  // CHECK: train.convert %[[T]] : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %t = train.tanh %h : tensor<4x4xf32>
  %y = train.dot_general %t, %r {compute_type = f32, lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[D:.*]] = train.mul {{.*}} {train.backward}
  // CHECK-NOT: train.convert %[[D]]
  %d = train.mul %y, %h {train.backward} : tensor<4x4xf32>
  // CHECK: %[[A:.*]] = train.tanh {{.*}} {train.backward, train.recompute}
  // CHECK: train.convert %[[A]] {train.backward} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %a = train.tanh %h {train.backward, train.recompute} : tensor<4x4xf32>
  %dr = train.dot_general %a, %d {compute_type = f32, lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, train.backward} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y, %dr : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// The backward pass computes it again, with at most 16 ops from what is rounded and read anyway, and from vectors: neither kept
// nor rounded. One op more is too many, and random numbers are no vector.
// CHECK-LABEL: func.func @again
// CHECK-COUNT-14: train.{{tanh|neg}}
// CHECK-NEXT: %[[FEW:.*]] = train.tanh
// CHECK-NOT: train.convert %[[FEW]]
// CHECK: train.broadcast
// CHECK: %[[VECTOR:.*]] = train.mul
// CHECK-NOT: train.convert %[[VECTOR]]
// CHECK: train.exp
// CHECK-COUNT-15: train.{{tanh|neg}}
// CHECK-NEXT: %[[MANY:.*]] = train.neg
// CHECK-NEXT: train.convert %[[MANY]] : (tensor<16x16xf32>) -> tensor<16x16xbf16>
// CHECK: train.rng_uniform
// CHECK: %[[RANDOM:.*]] = train.mul
// CHECK-NEXT: train.convert %[[RANDOM]] : (tensor<16x16xf32>) -> tensor<16x16xbf16>
func.func @again(%u: tensor<256xf32> {train.role = "param", train.name = "u"},
                 %x: tensor<16x16xf32> {train.role = "input", train.name = "x"}, %seed: tensor<i64> {train.role = "hyper", train.name = "seed"})
    -> (tensor<16x16xf32> {train.role = "output", train.name = "d"}) {
  %w = train.reshape %u : (tensor<256xf32>) -> tensor<16x16xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %a0 = train.tanh %y : tensor<16x16xf32>
  %a1 = train.neg %a0 : tensor<16x16xf32>
  %a2 = train.tanh %a1 : tensor<16x16xf32>
  %a3 = train.neg %a2 : tensor<16x16xf32>
  %a4 = train.tanh %a3 : tensor<16x16xf32>
  %a5 = train.neg %a4 : tensor<16x16xf32>
  %a6 = train.tanh %a5 : tensor<16x16xf32>
  %a7 = train.neg %a6 : tensor<16x16xf32>
  %a8 = train.tanh %a7 : tensor<16x16xf32>
  %a9 = train.neg %a8 : tensor<16x16xf32>
  %a10 = train.tanh %a9 : tensor<16x16xf32>
  %a11 = train.neg %a10 : tensor<16x16xf32>
  %a12 = train.tanh %a11 : tensor<16x16xf32>
  %a13 = train.neg %a12 : tensor<16x16xf32>
  %a14 = train.tanh %a13 : tensor<16x16xf32>
  %rows = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<16x16xf32>) -> tensor<16xf32>
  %wide = train.broadcast %rows {broadcast_dimensions = array<i64: 0>} : (tensor<16xf32>) -> tensor<16x16xf32>
  %v = train.mul %y, %wide : tensor<16x16xf32>
  %between = train.exp %y : tensor<16x16xf32>
  %b0 = train.tanh %y : tensor<16x16xf32>
  %b1 = train.neg %b0 : tensor<16x16xf32>
  %b2 = train.tanh %b1 : tensor<16x16xf32>
  %b3 = train.neg %b2 : tensor<16x16xf32>
  %b4 = train.tanh %b3 : tensor<16x16xf32>
  %b5 = train.neg %b4 : tensor<16x16xf32>
  %b6 = train.tanh %b5 : tensor<16x16xf32>
  %b7 = train.neg %b6 : tensor<16x16xf32>
  %b8 = train.tanh %b7 : tensor<16x16xf32>
  %b9 = train.neg %b8 : tensor<16x16xf32>
  %b10 = train.tanh %b9 : tensor<16x16xf32>
  %b11 = train.neg %b10 : tensor<16x16xf32>
  %b12 = train.tanh %b11 : tensor<16x16xf32>
  %b13 = train.neg %b12 : tensor<16x16xf32>
  %b14 = train.tanh %b13 : tensor<16x16xf32>
  %b15 = train.neg %b14 : tensor<16x16xf32>
  %random = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<16x16xf32>
  %r = train.mul %y, %random : tensor<16x16xf32>
  %d0 = train.mul %y, %a14 {train.backward} : tensor<16x16xf32>
  %d1 = train.add %d0, %v {train.backward} : tensor<16x16xf32>
  %d2 = train.add %d1, %b15 {train.backward} : tensor<16x16xf32>
  %d3 = train.add %d2, %r {train.backward} : tensor<16x16xf32>
  return %d3 : tensor<16x16xf32>
}
