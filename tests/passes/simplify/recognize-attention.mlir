// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(recognize-attention,canonicalize,cse))' --verify-diagnostics | FileCheck %s

!q = tensor<2x4x3x8xf32>
!kt = tensor<2x4x8x3xf32>
!s = tensor<2x4x3x3xf32>

// A scale on the scores, a causal mask that is added.
// CHECK-LABEL: func @causal
// CHECK-NEXT: %[[Y:[a-z0-9_]+]], %{{.*}} = train.attention %arg0, %arg1, %arg2 {causal, scale = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @causal(%q: !q, %k: !q, %v: !q) -> !q {
  %c = train.constant dense<0.25> : !s
  %mask = train.constant dense<[[0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %mb = train.broadcast %mask {broadcast_dimensions = array<i64: 2, 3>} : (tensor<3x3xf32>) -> !s
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (!q, !q) -> !s
  %t = train.mul %s, %c : !s
  %m = train.add %t, %mb : !s
  %p = train.softmax %m {dim = 3 : i64} : !s
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!s, !q) -> !q
  return %y : !q
}

// A factor on each of query and transposed key, a mask that selects, true where hidden.
// CHECK-LABEL: func @factors
// CHECK-NEXT: %[[Y:[a-z0-9_]+]], %{{.*}} = train.attention %arg0, %arg1, %arg2 {causal, scale = 2.500000e-01 : f64}
func.func @factors(%q: !q, %k: !q, %v: !q) -> !q {
  %cq = train.constant dense<0.5> : !q
  %ck = train.constant dense<0.5> : !kt
  %low = train.constant dense<0xFF800000> : !s
  %hide = train.constant dense<[[[[false, true, true], [false, false, true], [false, false, false]]]]> : tensor<1x1x3x3xi1>
  %hb = train.broadcast %hide {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x3x3xi1>) -> tensor<2x4x3x3xi1>
  %kt = train.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (!q) -> !kt
  %qs = train.mul %q, %cq : !q
  %ks = train.mul %kt, %ck : !kt
  %s = train.dot_general %qs, %ks {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!q, !kt) -> !s
  %m = train.select %hb, %low, %s : tensor<2x4x3x3xi1>, !s
  %p = train.softmax %m {dim = 3 : i64} : !s
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!s, !q) -> !q
  return %y : !q
}

// Hidden scores are one finite number: a query that sees no key attends to all equally, and gives no gradient to query
// and key. The mask is data.
// CHECK-LABEL: func @uniform_rows
// CHECK: %[[Y:[a-z0-9_]+]], %{{.*}} = train.attention %arg0, %arg1, %arg2 mask(%[[MASK:[a-z0-9_]+]])
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 3>}
// CHECK: train.reduce sum, %arg2 {dimensions = array<i64: 2>}
// CHECK: %[[R:.*]] = train.select %{{.*}}, %[[Y]], %{{.*}}
// CHECK: return %[[R]]
func.func @uniform_rows(%q: !q, %k: !q, %v: !q, %hide: tensor<2x1x3x3xi1>) -> !q {
  %low = train.constant dense<-3.40282347E+38> : !s
  %hb = train.broadcast %hide {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x1x3x3xi1>) -> tensor<2x4x3x3xi1>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (!q, !q) -> !s
  %m = train.select %hb, %low, %s : tensor<2x4x3x3xi1>, !s
  %p = train.softmax %m {dim = 3 : i64} : !s
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!s, !q) -> !q
  return %y : !q
}

// Beside another mask it is not known what such a query attends to.
// CHECK-LABEL: func @uniform_rows_beside
// CHECK: train.softmax
func.func @uniform_rows_beside(%q: !q, %k: !q, %v: !q, %hide: tensor<2x4x3x3xi1>, %bias: !s) -> !q {
  %low = train.constant dense<-3.40282347E+38> : !s
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (!q, !q) -> !s
  %b = train.add %s, %bias : !s
  %m = train.select %hide, %low, %b : tensor<2x4x3x3xi1>, !s
  // expected-remark@+1 {{attention not recognised: a mask by a finite number stands beside another mask, and a query may see no key}}
  %p = train.softmax %m {dim = 3 : i64} : !s
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!s, !q) -> !q
  return %y : !q
}

// A mask that is data stays an operand, without its broadcast over heads and queries.
// CHECK-LABEL: func @padding
// CHECK: train.attention %arg0, %arg1, %arg2 mask(%arg3) {scale = 1.000000e+00 : f64}
func.func @padding(%q: !q, %k: !q, %v: !q, %mask: tensor<2x1x1x3xf32>) -> !q {
  %mb = train.broadcast %mask {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x1x1x3xf32>) -> !s
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (!q, !q) -> !s
  %m = train.add %mb, %s : !s
  %p = train.softmax %m {dim = 3 : i64} : !s
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!s, !q) -> !q
  return %y : !q
}

// Keys and values are repeated over groups of heads.
// CHECK-LABEL: func @grouped
// CHECK-NEXT: train.attention %arg0, %arg1, %arg2 {scale = 1.000000e+00 : f64} : (tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x8xf32>)
func.func @grouped(%q: !q, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>) -> !q {
  %kb = train.broadcast %k {broadcast_dimensions = array<i64: 0, 1, 3, 4>} : (tensor<2x2x3x8xf32>) -> tensor<2x2x2x3x8xf32>
  %kr = train.reshape %kb : (tensor<2x2x2x3x8xf32>) -> !q
  %vb = train.broadcast %v {broadcast_dimensions = array<i64: 0, 1, 3, 4>} : (tensor<2x2x3x8xf32>) -> tensor<2x2x2x3x8xf32>
  %vr = train.reshape %vb : (tensor<2x2x2x3x8xf32>) -> !q
  %s = train.dot_general %q, %kr {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (!q, !q) -> !s
  %p = train.softmax %s {dim = 3 : i64} : !s
  %y = train.dot_general %p, %vr {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!s, !q) -> !q
  return %y : !q
}

// One batch dimension, as torch.nn.MultiheadAttention writes it.
// CHECK-LABEL: func @rank3
// CHECK: train.attention %{{.*}} : (tensor<6x1x3x8xf32>, tensor<6x1x5x8xf32>, tensor<6x1x5x4xf32>)
func.func @rank3(%q: tensor<6x3x8xf32>, %k: tensor<6x5x8xf32>, %v: tensor<6x5x4xf32>) -> tensor<6x3x4xf32> {
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 2>} : (tensor<6x3x8xf32>, tensor<6x5x8xf32>) -> tensor<6x3x5xf32>
  %p = train.softmax %s {dim = 2 : i64} : tensor<6x3x5xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<6x3x5xf32>, tensor<6x5x4xf32>) -> tensor<6x3x4xf32>
  return %y : tensor<6x3x4xf32>
}

// The probabilities are also a result of the model: they must be computed.
// CHECK-LABEL: func @probabilities_used
// CHECK-NOT: train.attention
func.func @probabilities_used(%q: !q, %k: !q, %v: !q) -> (!q, !s) {
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (!q, !q) -> !s
  // expected-remark @below {{attention not recognised: the probabilities have other uses}}
  %p = train.softmax %s {dim = 3 : i64} : !s
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!s, !q) -> !q
  return %y, %p : !q, !s
}

// The scores pass through something else (a soft cap).
// CHECK-LABEL: func @soft_cap
// CHECK-NOT: train.attention
func.func @soft_cap(%q: !q, %k: !q, %v: !q) -> !q {
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (!q, !q) -> !s
  %t = train.tanh %s : !s
  // expected-remark @below {{attention not recognised: the scores pass through train.tanh}}
  %p = train.softmax %t {dim = 3 : i64} : !s
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!s, !q) -> !q
  return %y : !q
}

// The guard that newer exporters put behind the softmax: rows that attend to nothing give 0, as train.attention does.
// CHECK-LABEL: func @guarded
// CHECK-NEXT: train.attention %arg0, %arg1, %arg2 mask(%arg3)
// CHECK-NEXT: return
func.func @guarded(%q: !q, %k: !q, %v: !q, %mask: tensor<2x1x1x3xf32>) -> !q {
  %zero = train.constant dense<0.0> : !s
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (!q, !q) -> !s
  %mb = train.broadcast %mask {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x1x1x3xf32>) -> !s
  %m = train.add %s, %mb : !s
  %p = train.softmax %m {dim = 3 : i64} : !s
  %nan = train.compare ne, %p, %p : (!s, !s) -> tensor<2x4x3x3xi1>
  %safe = train.select %nan, %zero, %p : tensor<2x4x3x3xi1>, !s
  %y = train.dot_general %safe, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!s, !q) -> !q
  return %y : !q
}

// Dropout on the probabilities: no attention kernel has it.
// CHECK-LABEL: func @dropout
// CHECK-NOT: train.attention
func.func @dropout(%q: !q, %k: !q, %v: !q, %keep: !s) -> !q {
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (!q, !q) -> !s
  // expected-remark @below {{attention not recognised: the probabilities pass through train.mul}}
  %p = train.softmax %s {dim = 3 : i64} : !s
  %d = train.mul %p, %keep : !s
  %y = train.dot_general %d, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (!s, !q) -> !q
  return %y : !q
}
