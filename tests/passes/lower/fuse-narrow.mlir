// Kernels read what was rounded, not what was made of it: widening is each reader's own, and a wide value that can be computed
// from one stored narrow value is neither stored nor read.

// RUN: tessera-opt %s --fuse | FileCheck %s

// The square is computed again from the rounded tanh, which the product reads from memory anyway.
// CHECK-LABEL: func.func @again
// CHECK: %[[FIRST:.*]]:2 = exec.fusion "row"(%arg0) {{.*}} -> (tensor<64x128xbf16>, tensor<64xf32>)
// CHECK: %[[DOT:.*]] = train.dot_general %[[FIRST]]#0, %arg1
// CHECK: exec.fusion "elementwise"(%[[FIRST]]#0, %[[DOT]]) {{.*}} : (tensor<64x128xbf16>, tensor<64x128xbf16>) -> tensor<64x128xf32>
func.func @again(%a: tensor<64x128xf32>, %w: tensor<128x128xbf16>) -> (tensor<64x128xf32>, tensor<64xf32>) {
  %t = train.tanh %a : tensor<64x128xf32>
  %n = train.convert %t : (tensor<64x128xf32>) -> tensor<64x128xbf16>
  %e = train.convert %n : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %c = train.mul %e, %e : tensor<64x128xf32>
  %r = train.reduce sum, %c {dimensions = array<i64: 1>} : (tensor<64x128xf32>) -> tensor<64xf32>
  %d = train.dot_general %n, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<64x128xbf16>, tensor<128x128xbf16>) -> tensor<64x128xbf16>
  %de = train.convert %d : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %o = train.mul %c, %de : tensor<64x128xf32>
  return %o, %r : tensor<64x128xf32>, tensor<64xf32>
}

// One conversion with two readers far apart is made twice.
// CHECK-LABEL: func.func @widened
// CHECK: exec.fusion "elementwise"(%arg0) {{.*}} -> tensor<64x64xbf16>
// CHECK: %[[DOT:.*]] = train.dot_general
// CHECK: exec.fusion "elementwise"(%[[DOT]], %arg0) {{.*}} : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
func.func @widened(%x: tensor<64x64xbf16>) -> tensor<64x64xf32> {
  %e = train.convert %x : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  %s = train.exp %e : tensor<64x64xf32>
  %n = train.convert %s : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %d = train.dot_general %n, %n {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %de = train.convert %d : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  %o = train.add %e, %de : tensor<64x64xf32>
  return %o : tensor<64x64xf32>
}

// Not applied where nothing narrower is stored: the square is computed from two wide values.
// CHECK-LABEL: func.func @kept
// CHECK: exec.fusion {{.*}} -> (tensor<64x64xf32>, tensor<64x64xbf16>)
func.func @kept(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = train.mul %a, %b : tensor<64x64xf32>
  %n = train.convert %c : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %d = train.dot_general %n, %n {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %de = train.convert %d : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  %o = train.add %c, %de : tensor<64x64xf32>
  return %o : tensor<64x64xf32>
}

// What one later kernel reads in f32 is made from a narrower value: that is stored instead, although nothing else reads it.
// CHECK-LABEL: func.func @store_narrow
// CHECK:         exec.fusion "elementwise"(%arg1, %arg0) {{.*}} -> (tensor<64x128xbf16>, tensor<64x128xbf16>)
// CHECK:         exec.fusion "elementwise"({{.*}}) {{.*}} : (tensor<64x128xbf16>, tensor<64x128xbf16>) -> tensor<64x128xf32>
func.func @store_narrow(%a: tensor<64x128xbf16>, %b: tensor<64x128xbf16>, %w: tensor<128x128xbf16>) -> tensor<64x128xf32> {
  %fa = train.convert %a : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %fb = train.convert %b : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %s = train.add %fa, %fb : tensor<64x128xf32>
  %x = train.convert %s : (tensor<64x128xf32>) -> tensor<64x128xbf16>
  %f = train.convert %x : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %h = train.mul %f, %f : tensor<64x128xf32>
  %t = train.tanh %h : tensor<64x128xf32>
  %y = train.convert %t : (tensor<64x128xf32>) -> tensor<64x128xbf16>
  %p = train.dot_general %y, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<64x128xbf16>, tensor<128x128xbf16>) -> tensor<64x128xbf16>
  %q = train.convert %p : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %r = train.mul %q, %h : tensor<64x128xf32>
  return %r : tensor<64x128xf32>
}

// A result of the function is stored as it is.
// CHECK-LABEL: func.func @result_is_wide
// CHECK:         exec.fusion "elementwise"(%arg1, %arg0) {{.*}} -> (tensor<64x128xf32>, tensor<64x128xbf16>)
func.func @result_is_wide(%a: tensor<64x128xbf16>, %b: tensor<64x128xbf16>, %w: tensor<128x128xbf16>) -> (tensor<64x128xf32>, tensor<64x128xf32>) {
  %fa = train.convert %a : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %fb = train.convert %b : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %s = train.add %fa, %fb : tensor<64x128xf32>
  %x = train.convert %s : (tensor<64x128xf32>) -> tensor<64x128xbf16>
  %f = train.convert %x : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %h = train.mul %f, %f : tensor<64x128xf32>
  %t = train.tanh %h : tensor<64x128xf32>
  %y = train.convert %t : (tensor<64x128xf32>) -> tensor<64x128xbf16>
  %p = train.dot_general %y, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<64x128xbf16>, tensor<128x128xbf16>) -> tensor<64x128xbf16>
  %q = train.convert %p : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %r = train.mul %q, %h : tensor<64x128xf32>
  return %r, %h : tensor<64x128xf32>, tensor<64x128xf32>
}
