// What the recognising passes see through: constants, factors, squares, and what is repeated along a dimension.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(recognize-functions,recognize-norm,recognize-attention,canonicalize))' --verify-diagnostics -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-5 --quiet

!v = tensor<4xf32>
!m = tensor<4x4xf32>
!i = tensor<4x4xi64>
!q = tensor<2x4x3xf32>
!s = tensor<2x4x4xf32>

// One number, in another type and seen through changes of shape: 1 - sigmoid(x).
// CHECK-LABEL: func @shapes(
// CHECK: %[[X:.*]] = train.neg %arg0
// CHECK: train.sigmoid %[[X]]
// CHECK-NOT: train.sub
func.func @shapes(%x: !m) -> !m {
  %c = train.constant dense<1.0> : tensor<1x1xbf16>
  %r = train.reshape %c : (tensor<1x1xbf16>) -> tensor<1xbf16>
  %f = train.convert %r : (tensor<1xbf16>) -> tensor<1xf32>
  %b = train.broadcast %f {broadcast_dimensions = array<i64: 0>} : (tensor<1xf32>) -> !m
  %one = train.transpose %b {permutation = array<i64: 1, 0>} : (!m) -> !m
  %s = train.sigmoid %x : !m
  %y = train.sub %one, %s : !m
  return %y : !m
}

// A type of integers cuts 1.5 to 1.
// CHECK-LABEL: func @cut(
// CHECK: %[[X:.*]] = train.neg %arg0
// CHECK: train.sigmoid %[[X]]
// CHECK-NOT: train.sub
func.func @cut(%x: !m) -> !m {
  %c = train.constant dense<1.5> : !m
  %i = train.convert %c : (!m) -> !i
  %one = train.convert %i : (!i) -> !m
  %s = train.sigmoid %x : !m
  %y = train.sub %one, %s : !m
  return %y : !m
}

// A narrow type rounds 1.001 to 1.
// CHECK-LABEL: func @rounded(
// CHECK: %[[X:.*]] = train.neg %arg0
// CHECK: train.sigmoid %[[X]]
// CHECK-NOT: train.sub
func.func @rounded(%x: !m) -> !m {
  %c = train.constant dense<1.001> : !m
  %i = train.convert %c : (!m) -> tensor<4x4xbf16>
  %one = train.convert %i : (tensor<4x4xbf16>) -> !m
  %s = train.sigmoid %x : !m
  %y = train.sub %one, %s : !m
  return %y : !m
}

// Not applied: 1.5.
// CHECK-LABEL: func @another_number(
// CHECK: train.sigmoid %arg0
// CHECK: train.sub
func.func @another_number(%x: !m) -> !m {
  %one = train.constant dense<1.5> : !m
  %s = train.sigmoid %x : !m
  %y = train.sub %one, %s : !m
  return %y : !m
}

// Not applied: 257 in i8, whatever it becomes.
// CHECK-LABEL: func @not_held(
// CHECK: train.sigmoid %arg0
// CHECK: train.sub
func.func @not_held(%x: !m) -> !m {
  %c = train.constant dense<257> : !i
  %i = train.convert %c : (!i) -> tensor<4x4xi8>
  %one = train.convert %i : (tensor<4x4xi8>) -> !m
  %s = train.sigmoid %x : !m
  %y = train.sub %one, %s : !m
  return %y : !m
}

// Not applied: two numbers.
// CHECK-LABEL: func @two_numbers(
// CHECK: train.sigmoid %arg0
// CHECK: train.sub
func.func @two_numbers(%x: !m) -> !m {
  %c = train.constant dense<[1.0, 1.0, 1.0, 2.0]> : !v
  %one = train.broadcast %c {broadcast_dimensions = array<i64: 1>} : (!v) -> !m
  %s = train.sigmoid %x : !m
  %y = train.sub %one, %s : !m
  return %y : !m
}

// Scaled by a number on either side of a product, and divided by one.
// CHECK-LABEL: func @times(
// CHECK: train.attention {{.*}} {scale = 4.000000e+00 : f64}
func.func @times(%q: !q, %k: !q, %v: !q) -> !q {
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 2>} : (!q, !q) -> !s
  %n = train.constant dense<4.0> : !s
  %m = train.mul %s, %n : !s
  %p = train.softmax %m {dim = 2 : i64} : !s
  %o = train.dot_general %p, %v {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (!s, !q) -> !q
  return %o : !q
}

// CHECK-LABEL: func @times_left(
// CHECK: train.attention {{.*}} {scale = 4.000000e+00 : f64}
func.func @times_left(%q: !q, %k: !q, %v: !q) -> !q {
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 2>} : (!q, !q) -> !s
  %n = train.constant dense<4.0> : !s
  %m = train.mul %n, %s : !s
  %p = train.softmax %m {dim = 2 : i64} : !s
  %o = train.dot_general %p, %v {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (!s, !q) -> !q
  return %o : !q
}

// CHECK-LABEL: func @divided(
// CHECK: train.attention {{.*}} {scale = 2.500000e-01 : f64}
func.func @divided(%q: !q, %k: !q, %v: !q) -> !q {
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 2>} : (!q, !q) -> !s
  %n = train.constant dense<4.0> : !s
  %m = train.div %s, %n : !s
  %p = train.softmax %m {dim = 2 : i64} : !s
  %o = train.dot_general %p, %v {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (!s, !q) -> !q
  return %o : !q
}

// Not applied: a number that is divided.
// CHECK-LABEL: func @divides(
// CHECK: train.softmax
func.func @divides(%q: !q, %k: !q, %v: !q) -> !q {
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 2>} : (!q, !q) -> !s
  %n = train.constant dense<4.0> : !s
  %m = train.div %n, %s : !s
  // expected-remark@+1 {{attention not recognised: the scores pass through train.div}}
  %p = train.softmax %m {dim = 2 : i64} : !s
  %o = train.dot_general %p, %v {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (!s, !q) -> !q
  return %o : !q
}

// Not applied: divided by 0.
// CHECK-LABEL: func @by_zero(
// CHECK: train.softmax
func.func @by_zero(%q: !q, %k: !q, %v: !q) -> !q {
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 2>} : (!q, !q) -> !s
  %n = train.constant dense<0.0> : !s
  %m = train.div %s, %n : !s
  // expected-remark@+1 {{attention not recognised: the scores pass through train.div}}
  %p = train.softmax %m {dim = 2 : i64} : !s
  %o = train.dot_general %p, %v {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (!s, !q) -> !q
  return %o : !q
}

// A square as a product, and as a power.
// CHECK-LABEL: func @product(
// CHECK: train.layer_norm rms, %arg0 {epsilon
func.func @product(%x: !m) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  return %n : !m
}

// CHECK-LABEL: func @power(
// CHECK: train.layer_norm rms, %arg0 {epsilon
func.func @power(%x: !m) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %two = train.constant dense<2.0> : !m
  %q = train.pow %x, %two : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  return %n : !m
}

// Not applied: a third power, and a product of two.
// CHECK-LABEL: func @third_power(
// CHECK-NOT: train.layer_norm
// CHECK: train.rsqrt
func.func @third_power(%x: !m) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %three = train.constant dense<3.0> : !m
  %q = train.pow %x, %three : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  return %n : !m
}

// CHECK-LABEL: func @two_factors(
// CHECK-NOT: train.layer_norm
// CHECK: train.rsqrt
func.func @two_factors(%x: !m, %z: !m) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %z : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  return %n : !m
}

// A number for each row that is repeated along it, with or without a dimension of size 1.
// CHECK-LABEL: func @rows(
// CHECK: train.layer_norm rms, %arg0 {epsilon
func.func @rows(%x: !m) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %r = train.reshape %i : (!v) -> tensor<4x1xf32>
  %b = train.broadcast %r {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> !m
  %n = train.mul %x, %b : !m
  return %n : !m
}

// CHECK-LABEL: func @rows_by_broadcasts(
// CHECK: train.layer_norm rms, %arg0 {epsilon
func.func @rows_by_broadcasts(%x: !m) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %r = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> tensor<4x1xf32>
  %b = train.broadcast %r {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> !m
  %n = train.mul %x, %b : !m
  return %n : !m
}

// Not applied: what is repeated along columns, as it is or by a row.
// CHECK-LABEL: func @columns(
// CHECK-NOT: train.layer_norm
// CHECK: train.rsqrt
func.func @columns(%x: !m) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 1>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  return %n : !m
}

// CHECK-LABEL: func @columns_by_row(
// CHECK-NOT: train.layer_norm
// CHECK: train.rsqrt
func.func @columns_by_row(%x: !m) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %r = train.reshape %i : (!v) -> tensor<1x4xf32>
  %b = train.broadcast %r {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x4xf32>) -> !m
  %n = train.mul %x, %b : !m
  return %n : !m
}

// A vector along the last dimension, with or without dimensions of size 1.
// CHECK-LABEL: func @vector(
// CHECK: %[[Y:[a-z0-9_]+]], %{{.*}} = train.layer_norm rms, %arg0 scale(%arg1)
// CHECK-NEXT: return %[[Y]]
func.func @vector(%x: !m, %w: !v) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  %wb = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (!v) -> !m
  %y = train.mul %n, %wb : !m
  return %y : !m
}

// CHECK-LABEL: func @vector_as_row(
// CHECK: %[[Y:[a-z0-9_]+]], %{{.*}} = train.layer_norm rms, %arg0 scale(%arg1)
// CHECK-NEXT: return %[[Y]]
func.func @vector_as_row(%x: !m, %w: !v) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  %r = train.reshape %w : (!v) -> tensor<1x4xf32>
  %wb = train.broadcast %r {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x4xf32>) -> !m
  %y = train.mul %n, %wb : !m
  return %y : !m
}

// Not applied: a vector along the first dimension, as it is or as a column; one number; a matrix.
// CHECK-LABEL: func @first_dimension(
// CHECK: %[[Y:[a-z0-9_]+]], %{{.*}} = train.layer_norm rms, %arg0 {epsilon
// CHECK: train.mul %[[Y]], %{{.*}}
func.func @first_dimension(%x: !m, %w: !v) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  %wb = train.broadcast %w {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %y = train.mul %n, %wb : !m
  return %y : !m
}

// CHECK-LABEL: func @column(
// CHECK: %[[Y:[a-z0-9_]+]], %{{.*}} = train.layer_norm rms, %arg0 {epsilon
// CHECK: train.mul %[[Y]], %{{.*}}
func.func @column(%x: !m, %w: !v) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  %r = train.reshape %w : (!v) -> tensor<4x1xf32>
  %wb = train.broadcast %r {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> !m
  %y = train.mul %n, %wb : !m
  return %y : !m
}

// CHECK-LABEL: func @one_number(
// CHECK: %[[Y:[a-z0-9_]+]], %{{.*}} = train.layer_norm rms, %arg0 {epsilon
// CHECK: train.mul %[[Y]], %{{.*}}
func.func @one_number(%x: !m, %w: tensor<1xf32>) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  %wb = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<1xf32>) -> !m
  %y = train.mul %n, %wb : !m
  return %y : !m
}

// CHECK-LABEL: func @matrix(
// CHECK: train.layer_norm rms, %arg0 {epsilon
// CHECK: train.mul %{{.*}}, %arg1
func.func @matrix(%x: !m, %w: !m) -> !m {
  %four = train.constant dense<4.0> : !v
  %eps = train.constant dense<0.001> : !v
  %q = train.mul %x, %x : !m
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (!m) -> !v
  %m = train.div %s, %four : !v
  %e = train.add %m, %eps : !v
  %i = train.rsqrt %e : !v
  %b = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (!v) -> !m
  %n = train.mul %x, %b : !m
  %y = train.mul %n, %w : !m
  return %y : !m
}
