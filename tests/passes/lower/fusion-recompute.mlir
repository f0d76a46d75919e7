// RUN: tessera-opt %s --decompose --fuse | FileCheck %s
// RUN: tessera-opt %s --decompose --fuse -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --rtol=1e-4 --atol=1e-5 --quiet
// RUN: tessera-opt %s --decompose --fuse --outline-kernels | kernel-check
// What is compared differs in the order of sums and in what is computed twice, hence up to rounding.

// The backward kernel computes what the forward kernel computed again, instead of reading it: the forward kernel stores
// its result only.
// CHECK-LABEL: func.func @recompute
// CHECK:         %[[Q:.*]]:2 = exec.fusion "elementwise"
// CHECK:         train.dot_general %[[Q]]#1
// CHECK:         exec.fusion "elementwise"(%{{.*}}, %{{.*}}) {{.*}} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
// CHECK:         return
func.func @recompute(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %q = train.add %x, %w : tensor<16x16xf32>
  %t = train.tanh %q : tensor<16x16xf32>
  %s = train.mul %q, %q : tensor<16x16xf32>
  %g = train.mul %q, %t : tensor<16x16xf32>
  %p = train.dot_general %g, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %a = train.mul %p, %t : tensor<16x16xf32>
  %b = train.mul %s, %a : tensor<16x16xf32>
  %c = train.add %b, %q : tensor<16x16xf32>
  return %c : tensor<16x16xf32>
}

// A value that is computed again reads the mean of a row, which its own kernel must then store.
// CHECK-LABEL: func.func @recompute_from_inner_value
// CHECK:         %[[S:.*]]:2 = exec.fusion "row"(%[[IN:.*]]) {{.*}} -> (tensor<64x48xf32>, tensor<64xf32>)
// CHECK:         %[[G:.*]] = train.dot_general %[[S]]#0
// CHECK-NEXT:    exec.fusion "elementwise"(%[[IN]], %[[S]]#1, %[[G]])
// CHECK:           train.erf
func.func @recompute_from_inner_value(%a: tensor<64x48xf32>, %w: tensor<48x48xf32>) -> (tensor<64x48xf32>, tensor<64x48xf32>) {
  %scale = train.constant dense<0.020833334> : tensor<64xf32>
  %x = train.dot_general %a, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<64x48xf32>, tensor<48x48xf32>) -> tensor<64x48xf32>
  %e = train.erf %x : tensor<64x48xf32>
  %sum = train.reduce sum, %e {dimensions = array<i64: 1>} : (tensor<64x48xf32>) -> tensor<64xf32>
  %mean = train.mul %sum, %scale : tensor<64xf32>
  %row = train.broadcast %mean {broadcast_dimensions = array<i64: 0>} : (tensor<64xf32>) -> tensor<64x48xf32>
  %c = train.sub %e, %row : tensor<64x48xf32>
  %g = train.dot_general %c, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<64x48xf32>, tensor<48x48xf32>) -> tensor<64x48xf32>
  %p = train.mul %g, %c : tensor<64x48xf32>
  %q = train.add %p, %x : tensor<64x48xf32>
  return %q, %g : tensor<64x48xf32>, tensor<64x48xf32>
}

// Not applied where the kernel would have to read another large value instead: the sum is read, not its two operands.
// CHECK-LABEL: func.func @other_inputs
// CHECK:         %[[Q:.*]] = exec.fusion "elementwise"(%arg0, %arg1)
// CHECK:         %[[D:.*]] = train.dot_general %[[Q]]
// CHECK:         exec.fusion "elementwise"(%[[Q]], %[[D]])
func.func @other_inputs(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %q = train.add %x, %w : tensor<16x16xf32>
  %d = train.dot_general %q, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = train.mul %q, %d : tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}

// At most 24 ops are computed again for one value.
// CHECK-LABEL: func.func @chain_of_24
// CHECK:         %[[D:.*]] = train.dot_general
// CHECK:         exec.fusion "elementwise"(%arg0, %[[D]])
func.func @chain_of_24(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %c1 = train.tanh %x : tensor<16x16xf32>
  %c2 = train.tanh %c1 : tensor<16x16xf32>
  %c3 = train.tanh %c2 : tensor<16x16xf32>
  %c4 = train.tanh %c3 : tensor<16x16xf32>
  %c5 = train.tanh %c4 : tensor<16x16xf32>
  %c6 = train.tanh %c5 : tensor<16x16xf32>
  %c7 = train.tanh %c6 : tensor<16x16xf32>
  %c8 = train.tanh %c7 : tensor<16x16xf32>
  %c9 = train.tanh %c8 : tensor<16x16xf32>
  %c10 = train.tanh %c9 : tensor<16x16xf32>
  %c11 = train.tanh %c10 : tensor<16x16xf32>
  %c12 = train.tanh %c11 : tensor<16x16xf32>
  %c13 = train.tanh %c12 : tensor<16x16xf32>
  %c14 = train.tanh %c13 : tensor<16x16xf32>
  %c15 = train.tanh %c14 : tensor<16x16xf32>
  %c16 = train.tanh %c15 : tensor<16x16xf32>
  %c17 = train.tanh %c16 : tensor<16x16xf32>
  %c18 = train.tanh %c17 : tensor<16x16xf32>
  %c19 = train.tanh %c18 : tensor<16x16xf32>
  %c20 = train.tanh %c19 : tensor<16x16xf32>
  %c21 = train.tanh %c20 : tensor<16x16xf32>
  %c22 = train.tanh %c21 : tensor<16x16xf32>
  %c23 = train.tanh %c22 : tensor<16x16xf32>
  %c24 = train.tanh %c23 : tensor<16x16xf32>
  %d = train.dot_general %c24, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = train.mul %d, %c24 : tensor<16x16xf32>
  %z = train.add %y, %x : tensor<16x16xf32>
  return %z : tensor<16x16xf32>
}

// CHECK-LABEL: func.func @chain_of_25
// CHECK:         %[[C:.*]] = exec.fusion
// CHECK:         %[[D:.*]] = train.dot_general %[[C]]
// CHECK:         exec.fusion "elementwise"({{.*}}%[[C]]
func.func @chain_of_25(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %c1 = train.tanh %x : tensor<16x16xf32>
  %c2 = train.tanh %c1 : tensor<16x16xf32>
  %c3 = train.tanh %c2 : tensor<16x16xf32>
  %c4 = train.tanh %c3 : tensor<16x16xf32>
  %c5 = train.tanh %c4 : tensor<16x16xf32>
  %c6 = train.tanh %c5 : tensor<16x16xf32>
  %c7 = train.tanh %c6 : tensor<16x16xf32>
  %c8 = train.tanh %c7 : tensor<16x16xf32>
  %c9 = train.tanh %c8 : tensor<16x16xf32>
  %c10 = train.tanh %c9 : tensor<16x16xf32>
  %c11 = train.tanh %c10 : tensor<16x16xf32>
  %c12 = train.tanh %c11 : tensor<16x16xf32>
  %c13 = train.tanh %c12 : tensor<16x16xf32>
  %c14 = train.tanh %c13 : tensor<16x16xf32>
  %c15 = train.tanh %c14 : tensor<16x16xf32>
  %c16 = train.tanh %c15 : tensor<16x16xf32>
  %c17 = train.tanh %c16 : tensor<16x16xf32>
  %c18 = train.tanh %c17 : tensor<16x16xf32>
  %c19 = train.tanh %c18 : tensor<16x16xf32>
  %c20 = train.tanh %c19 : tensor<16x16xf32>
  %c21 = train.tanh %c20 : tensor<16x16xf32>
  %c22 = train.tanh %c21 : tensor<16x16xf32>
  %c23 = train.tanh %c22 : tensor<16x16xf32>
  %c24 = train.tanh %c23 : tensor<16x16xf32>
  %c25 = train.tanh %c24 : tensor<16x16xf32>
  %d = train.dot_general %c25, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = train.mul %d, %c25 : tensor<16x16xf32>
  %z = train.add %y, %x : tensor<16x16xf32>
  return %z : tensor<16x16xf32>
}
