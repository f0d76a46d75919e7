// No diagnostic: what is not taken, with its remark, is in row-region.mlir.
// RUN: tessera-opt %s --tile-products=bytes=1024 -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --tile-products=bytes=1024 2>/dev/null -o %t.mlir
// RUN: tessera-interp %t.mlir --compare=%s
// RUN: tessera-opt %s --tile-products=bytes=1 2>/dev/null | tessera-interp - --compare=%s
// RUN: tessera-opt %s --tile-products=bytes=700 2>/dev/null | tessera-opt --decompose --canonicalize --cse | tessera-interp - --compare=%s
// RUN: tessera-opt %s --tile-products | FileCheck %s --check-prefix=WHOLE
// RUN: tessera-opt %s --tile-products=bytes=1 2>/dev/null | FileCheck %s --check-prefix=ROW

// No op of 1 GiB: nothing changes.
// WHOLE-NOT: train.concat
// WHOLE: return

// 2048 bytes are two ranges of four rows; the residual is added to all rows at once.
// CHECK-LABEL: func @forward
// CHECK: %[[X0:.*]] = train.slice %arg0 {limits = array<i64: 1, 4, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}
// CHECK: %[[H0:.*]] = train.dot_general %[[X0]], %arg1 {{.*}} -> tensor<1x4x64xf32>
// CHECK: %[[B0:.*]] = train.broadcast %arg2 {broadcast_dimensions = array<i64: 2>} : (tensor<64xf32>) -> tensor<1x4x64xf32>
// CHECK: %[[S0:.*]] = train.add %[[H0]], %[[B0]] : tensor<1x4x64xf32>
// CHECK: %[[A0:.*]] = train.tanh %[[S0]]
// CHECK: %[[C0:.*]] = train.constant dense<2.000000e+00> : tensor<1x4x64xf32>
// CHECK: %[[M0:.*]] = train.mul %[[A0]], %[[C0]]
// CHECK: %[[Y0:.*]] = train.dot_general %[[M0]], %arg3 {{.*}} -> tensor<1x4x4xf32>
// CHECK: train.slice %arg0 {limits = array<i64: 1, 8, 4>, starts = array<i64: 0, 4, 0>
// CHECK: %[[Y1:.*]] = train.dot_general %{{.*}}, %arg3 {{.*}} -> tensor<1x4x4xf32>
// CHECK: %[[Y:.*]] = train.concat %[[Y0]], %[[Y1]] {dim = 1 : i64} : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> tensor<1x8x4xf32>
// CHECK: %[[R:.*]] = train.add %arg0, %[[Y]] : tensor<1x8x4xf32>
// CHECK: return %[[R]]
// At least a row at a time.
// ROW-LABEL: func @forward
// ROW-COUNT-8: train.tanh %{{.*}} : tensor<1x1x64xf32>
// ROW-NOT: train.tanh
// ROW: return
func.func @forward(%x: tensor<1x8x4xf32>, %w: tensor<4x64xf32>, %b: tensor<64xf32>, %v: tensor<64x4xf32>) -> tensor<1x8x4xf32> {
  %two = train.constant dense<2.0> : tensor<1x8x64xf32>
  %h = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<1x8x4xf32>, tensor<4x64xf32>) -> tensor<1x8x64xf32>
  %bias = train.broadcast %b {broadcast_dimensions = array<i64: 2>} : (tensor<64xf32>) -> tensor<1x8x64xf32>
  %s = train.add %h, %bias : tensor<1x8x64xf32>
  %a = train.tanh %s : tensor<1x8x64xf32>
  %m = train.mul %a, %two : tensor<1x8x64xf32>
  %y = train.dot_general %m, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<1x8x64xf32>, tensor<64x4xf32>) -> tensor<1x8x4xf32>
  %r = train.add %x, %y : tensor<1x8x4xf32>
  return %r : tensor<1x8x4xf32>
}

// Gradients of weights and of a bias are sums over the rows: added up in f32, in the order of the rows, and rounded once. Of
// several samples a range is some of them. Ops that need what is made, %early, follow behind all of it.
// CHECK-LABEL: func @backward
// CHECK: train.slice %arg0 {limits = array<i64: 1, 4, 4>, starts = array<i64: 0, 0, 0>
// CHECK: %[[D0:.*]] = train.dot_general {{.*}}train.backward} : (tensor<1x4x64xbf16>, tensor<1x4x4xbf16>) -> tensor<64x4xf32>
// CHECK: %[[B0:.*]] = train.reduce {{ *}}sum, %{{.*}} {dimensions = array<i64: 0, 1>, train.backward} : (tensor<1x4x64xf32>) -> tensor<64xf32>
// CHECK: train.slice %arg0 {limits = array<i64: 2, 4, 4>, starts = array<i64: 1, 0, 0>
// CHECK: %[[D1:.*]] = train.dot_general {{.*}}train.backward} : (tensor<1x4x64xbf16>, tensor<1x4x4xbf16>) -> tensor<64x4xf32>
// CHECK: %[[D01:.*]] = train.add %[[D0]], %[[D1]] {train.backward} : tensor<64x4xf32>
// CHECK: %[[B01:.*]] = train.add %[[B0]], %{{.*}} {train.backward} : tensor<64xf32>
// CHECK: train.add %[[D01]], %{{.*}} {train.backward} : tensor<64x4xf32>
// CHECK: train.add %[[B01]], %{{.*}} {train.backward} : tensor<64xf32>
// CHECK: %[[D:.*]] = train.add %{{.*}} {train.backward} : tensor<64x4xf32>
// CHECK: %[[N:.*]] = train.convert %[[D]] {train.backward} : (tensor<64x4xf32>) -> tensor<64x4xbf16>
// CHECK: train.concat {{.*}} {dim = 0 : i64, train.backward} : {{.*}} -> tensor<4x4x4xbf16>
// CHECK: train.neg %[[N]] {train.backward} : tensor<64x4xbf16>
func.func @backward(%x: tensor<4x4x4xbf16>, %w: tensor<4x64xbf16>, %dy: tensor<4x4x4xbf16>, %v: tensor<64x4xbf16>) -> (tensor<4x4x4xbf16>, tensor<64x4xbf16>, tensor<64xf32>) {
  %h = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>, train.backward} : (tensor<4x4x4xbf16>, tensor<4x64xbf16>) -> tensor<4x4x64xbf16>
  %wide = train.convert %h {train.backward} : (tensor<4x4x64xbf16>) -> tensor<4x4x64xf32>
  %dv = train.dot_general %h, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_contract = array<i64: 0, 1>, train.backward} : (tensor<4x4x64xbf16>, tensor<4x4x4xbf16>) -> tensor<64x4xbf16>
  %early = train.neg %dv {train.backward} : tensor<64x4xbf16>
  %db = train.reduce sum, %wide {dimensions = array<i64: 0, 1>, train.backward} : (tensor<4x4x64xf32>) -> tensor<64xf32>
  %z = train.neg %v {train.backward} : tensor<64x4xbf16>
  %dx = train.dot_general %h, %z {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>, train.backward} : (tensor<4x4x64xbf16>, tensor<64x4xbf16>) -> tensor<4x4x4xbf16>
  return %dx, %early, %db : tensor<4x4x4xbf16>, tensor<64x4xbf16>, tensor<64xf32>
}

// Scores of an attention that is no op of its own: some heads at a time.
// CHECK-LABEL: func @scores
// CHECK-COUNT-4: train.softmax {{.*}} : tensor<1x1x16x16xf32>
// CHECK-NOT: train.softmax
// CHECK: train.concat {{.*}} {dim = 1 : i64}
func.func @scores(%q: tensor<1x4x16x2xf32>, %k: tensor<1x4x16x2xf32>, %v: tensor<1x4x16x2xf32>) -> tensor<1x4x16x2xf32> {
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x4x16x2xf32>, tensor<1x4x16x2xf32>) -> tensor<1x4x16x16xf32>
  %p = train.softmax %s {dim = 3 : i64} : tensor<1x4x16x16xf32>
  %o = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x4x16x16xf32>, tensor<1x4x16x2xf32>) -> tensor<1x4x16x2xf32>
  return %o : tensor<1x4x16x2xf32>
}

// Of 50,000 rows at most 256 ranges: of 256 rows, and 80 that are left.
// CHECK-LABEL: func @many
// CHECK-COUNT-195: train.exp %{{.*}} : tensor<256x2xf32>
// CHECK: train.exp %{{.*}} : tensor<80x2xf32>
// CHECK-NOT: train.exp
func.func @many(%x: tensor<50000x1xf32>, %w: tensor<1x2xf32>, %v: tensor<2x1xf32>) -> tensor<50000x1xf32> {
  %h = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<50000x1xf32>, tensor<1x2xf32>) -> tensor<50000x2xf32>
  %e = train.exp %h : tensor<50000x2xf32>
  %s = train.dot_general %e, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<50000x2xf32>, tensor<2x1xf32>) -> tensor<50000x1xf32>
  return %s : tensor<50000x1xf32>
}
