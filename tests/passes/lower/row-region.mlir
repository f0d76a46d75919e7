// What is not computed for some rows at a time, and why.
// RUN: tessera-opt %s --tile-products=bytes=1024 -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --tile-products=bytes=1024 2>/dev/null | tessera-interp - --compare=%s

// A wide value that is read by what needs all rows, that is a result, or that is needed outside before the end.
// CHECK-LABEL: func @not
// CHECK-NOT: train.slice
// CHECK: return
func.func @not(%x: tensor<8x4xf32>, %w: tensor<4x64xf32>, %v: tensor<64x4xf32>) -> (tensor<64xf32>, tensor<8x64xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  // expected-remark@below {{its result, 2048 bytes, is not computed for some rows at a time: 'train.reduce' does not keep rows apart}}
  %a = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x64xf32>) -> tensor<8x64xf32>
  %most = train.reduce max, %a {dimensions = array<i64: 0>} : (tensor<8x64xf32>) -> tensor<64xf32>
  %x1 = train.neg %x : tensor<8x4xf32>
  // expected-remark@below {{'func.return' needs all rows}}
  %b = train.dot_general %x1, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x64xf32>) -> tensor<8x64xf32>
  %x2 = train.exp %x : tensor<8x4xf32>
  // expected-remark@below {{what it makes is needed outside before it ends: it is kept for the backward pass, or summed up}}
  %c = train.dot_general %x2, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x64xf32>) -> tensor<8x64xf32>
  %y = train.dot_general %c, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
  %dy = train.neg %y {train.backward} : tensor<8x4xf32>
  // expected-remark@below {{it is kept for the backward pass}}
  %dc = train.dot_general %dy, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, train.backward} : (tensor<8x4xf32>, tensor<64x4xf32>) -> tensor<8x64xf32>
  %both = train.mul %dc, %c {train.backward} : tensor<8x64xf32>
  %dx = train.dot_general %both, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, train.backward} : (tensor<8x64xf32>, tensor<4x64xf32>) -> tensor<8x4xf32>
  // expected-remark@below {{'train.rng_uniform' needs all rows}}
  %e = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x64xf32>) -> tensor<8x64xf32>
  %seed = train.constant dense<3> : tensor<i64>
  %u = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<8x64xf32>
  %d = train.mul %e, %u : tensor<8x64xf32>
  %z = train.dot_general %d, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
  return %most, %b, %dx, %z : tensor<64xf32>, tensor<8x64xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// A product that reads what has the rows by rows on one side and whole on the other.
// CHECK-LABEL: func @self
// CHECK-NOT: train.slice
// CHECK: return
func.func @self(%x: tensor<8x4xf32>, %w: tensor<4x64xf32>) -> tensor<8x8xf32> {
  // expected-remark@below {{'train.dot_general' reads all rows of what has them}}
  %h = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x64xf32>) -> tensor<8x64xf32>
  %s = train.dot_general %h, %h {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}
