// Masks that are known at compile time and show a range of keys to each query need no tensor of all pairs.
// RUN: tessera-opt %s --recognize-attention --canonicalize --cse -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-6 --quiet

// The last two keys.
// CHECK-LABEL: func @window
// CHECK-NOT: mask(
// CHECK: train.attention %arg0, %arg1, %arg2 {causal, scale = 1.000000e+00 : f64, window = 2 : i64}
func.func @window(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[true, false, false, false], [true, true, false, false], [false, true, true, false], [false, false, true, true]]> : tensor<4x4xi1>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xi1>) -> tensor<1x2x4x4xi1>
  %l1 = train.constant dense<0xFF800000> : tensor<1x2x4x4xf32>
  %s1 = train.select %b1, %s0, %l1 : tensor<1x2x4x4xi1>, tensor<1x2x4x4xf32>
  %p = train.softmax %s1 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}
// The same, added.
// CHECK-LABEL: func @added_window
// CHECK: train.attention %arg0, %arg1, %arg2 {causal, scale = 1.000000e+00 : f64, window = 3 : i64}
func.func @added_window(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[0.0, -1.0e9, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9, -1.0e9], [0.0, 0.0, 0.0, -1.0e9], [-1.0e9, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xf32>) -> tensor<1x2x4x4xf32>
  %s1 = train.add %s0, %b1 : tensor<1x2x4x4xf32>
  %p = train.softmax %s1 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}
// Three keys that all see, then those before: of 16 pairs 13.
// CHECK-LABEL: func @prefix
// CHECK-DAG: %[[B:.*]] = train.constant dense<0> : tensor<1x4xi64>
// CHECK-DAG: %[[E:.*]] = train.constant dense<{{\[}}[3, 3, 3, 4]]> : tensor<1x4xi64>
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[B]] to %[[E]]) {density = 8.125000e-01 : f64, scale = 1.000000e+00 : f64}
func.func @prefix(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[true, true, true, false], [true, true, true, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xi1>) -> tensor<1x2x4x4xi1>
  %l1 = train.constant dense<0xFF800000> : tensor<1x2x4x4xf32>
  %s1 = train.select %b1, %s0, %l1 : tensor<1x2x4x4xi1>, tensor<1x2x4x4xf32>
  %p = train.softmax %s1 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}
// A causal mask and two documents.
// CHECK-LABEL: func @both
// CHECK-DAG: %[[B:.*]] = train.constant dense<{{\[}}[0, 0, 2, 2]]> : tensor<1x4xi64>
// CHECK-DAG: %[[E:.*]] = train.constant dense<{{\[}}[2, 2, 4, 4]]> : tensor<1x4xi64>
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[B]] to %[[E]]) {causal,
func.func @both(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<4x4xi1>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xi1>) -> tensor<1x2x4x4xi1>
  %l1 = train.constant dense<0xFF800000> : tensor<1x2x4x4xf32>
  %s1 = train.select %b1, %s0, %l1 : tensor<1x2x4x4xi1>, tensor<1x2x4x4xf32>
  %m2 = train.constant dense<[[true, true, false, false], [true, true, false, false], [false, false, true, true], [false, false, true, true]]> : tensor<4x4xi1>
  %b2 = train.broadcast %m2 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xi1>) -> tensor<1x2x4x4xi1>
  %l2 = train.constant dense<0xFF800000> : tensor<1x2x4x4xf32>
  %s2 = train.select %b2, %s1, %l2 : tensor<1x2x4x4xi1>, tensor<1x2x4x4xf32>
  %p = train.softmax %s2 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}
// Of two windows the narrower one.
// CHECK-LABEL: func @narrower
// CHECK: train.attention %arg0, %arg1, %arg2 {causal, scale = 1.000000e+00 : f64, window = 2 : i64}
func.func @narrower(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[true, false, false, false], [true, true, false, false], [true, true, true, false], [false, true, true, true]]> : tensor<4x4xi1>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xi1>) -> tensor<1x2x4x4xi1>
  %l1 = train.constant dense<0xFF800000> : tensor<1x2x4x4xf32>
  %s1 = train.select %b1, %s0, %l1 : tensor<1x2x4x4xi1>, tensor<1x2x4x4xf32>
  %m2 = train.constant dense<[[true, false, false, false], [true, true, false, false], [false, true, true, false], [false, false, true, true]]> : tensor<4x4xi1>
  %b2 = train.broadcast %m2 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xi1>) -> tensor<1x2x4x4xi1>
  %l2 = train.constant dense<0xFF800000> : tensor<1x2x4x4xf32>
  %s2 = train.select %b2, %s1, %l2 : tensor<1x2x4x4xi1>, tensor<1x2x4x4xf32>
  %p = train.softmax %s2 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}
// Not applied: a query sees a key on both sides of one that is hidden.
// CHECK-LABEL: func @no_range
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @no_range(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[true, false, true, false], [false, true, false, true], [true, false, true, false], [false, true, false, true]]> : tensor<4x4xi1>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xi1>) -> tensor<1x2x4x4xi1>
  %l1 = train.constant dense<0xFF800000> : tensor<1x2x4x4xf32>
  %s1 = train.select %b1, %s0, %l1 : tensor<1x2x4x4xi1>, tensor<1x2x4x4xf32>
  %p = train.softmax %s1 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}
// Not applied: the first query sees nothing, and what is hidden by a finite number still counts.
// CHECK-LABEL: func @hidden_row
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @hidden_row(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[-1.0e9, -1.0e9, -1.0e9, -1.0e9], [0.0, -1.0e9, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9, -1.0e9], [0.0, 0.0, 0.0, -1.0e9]]> : tensor<4x4xf32>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xf32>) -> tensor<1x2x4x4xf32>
  %s1 = train.add %s0, %b1 : tensor<1x2x4x4xf32>
  %p = train.softmax %s1 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}
// Not applied: two masks that are added may hide all keys of a query together.
// CHECK-LABEL: func @two_added
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @two_added(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[0.0, 0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9, -1.0e9]]> : tensor<4x4xf32>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xf32>) -> tensor<1x2x4x4xf32>
  %s1 = train.add %s0, %b1 : tensor<1x2x4x4xf32>
  %m2 = train.constant dense<[[0.0, 0.0, 0.0, 0.0], [-1.0e9, -1.0e9, 0.0, 0.0], [-1.0e9, -1.0e9, 0.0, 0.0], [-1.0e9, -1.0e9, 0.0, 0.0]]> : tensor<4x4xf32>
  %b2 = train.broadcast %m2 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xf32>) -> tensor<1x2x4x4xf32>
  %s2 = train.add %s1, %b2 : tensor<1x2x4x4xf32>
  %p = train.softmax %s2 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}
// Not applied: numbers that are neither 0 nor large.
// CHECK-LABEL: func @numbers
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @numbers(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[0.0, -2.5, -2.5, -2.5], [0.0, 0.0, -2.5, -2.5], [0.0, 0.0, 0.0, -2.5], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xf32>) -> tensor<1x2x4x4xf32>
  %s1 = train.add %s0, %b1 : tensor<1x2x4x4xf32>
  %p = train.softmax %s1 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}

// Not applied: what is hidden by a finite number, beside another mask.
// CHECK-LABEL: func @added_beside
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @added_beside(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[0.0, -1.0e9, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9, -1.0e9], [0.0, 0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xf32>) -> tensor<1x2x4x4xf32>
  %s1 = train.add %s0, %b1 : tensor<1x2x4x4xf32>
  %m2 = train.constant dense<[[-1.0e9, -1.0e9, 0.0, 0.0], [-1.0e9, -1.0e9, 0.0, 0.0], [-1.0e9, -1.0e9, 0.0, 0.0], [-1.0e9, -1.0e9, 0.0, 0.0]]> : tensor<4x4xf32>
  %b2 = train.broadcast %m2 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xf32>) -> tensor<1x2x4x4xf32>
  %s2 = train.add %s1, %b2 : tensor<1x2x4x4xf32>
  %p = train.softmax %s2 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}
// Hidden by minus infinity, beside another mask: a query that sees nothing is no number, here 0.
// CHECK-LABEL: func @infinite_beside
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal,
func.func @infinite_beside(%q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %s0 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x4xf32>
  %m1 = train.constant dense<[[0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
  %b1 = train.broadcast %m1 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xf32>) -> tensor<1x2x4x4xf32>
  %s1 = train.add %s0, %b1 : tensor<1x2x4x4xf32>
  %m2 = train.constant dense<[[0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000]]> : tensor<4x4xf32>
  %b2 = train.broadcast %m2 {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4x4xf32>) -> tensor<1x2x4x4xf32>
  %s2 = train.add %s1, %b2 : tensor<1x2x4x4xf32>
  %p = train.softmax %s2 {dim = 3 : i64} : tensor<1x2x4x4xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x2x4x4xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %y : tensor<1x2x4x8xf32>
}
