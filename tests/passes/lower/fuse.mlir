// RUN: tessera-opt %s --decompose --fuse | FileCheck %s
// RUN: tessera-opt %s --decompose --fuse -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --rtol=1e-4 --atol=1e-5 --quiet
// RUN: tessera-opt %s --decompose --fuse --outline-kernels | kernel-check

// The residual sum, the norm and its statistics are one kernel; both column sums are one, which computes the norm again
// from its statistics.
// CHECK-LABEL: func.func @norm_block
// CHECK:         %[[Y:.*]]:4 = exec.fusion "row"(
// CHECK-NOT:     exec.fusion "elementwise"
// CHECK:         exec.fusion "column"(%[[Y]]#0,
// CHECK-NOT:     exec.fusion
// CHECK:         return
func.func @norm_block(%x: tensor<4x8x64xf32>, %r: tensor<4x8x64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>)
    -> (tensor<4x8x64xf32>, tensor<4x8x64xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<64xf32>, tensor<64xf32>) {
  %s = train.add %x, %r : tensor<4x8x64xf32>
  %y, %m, %rs = train.layer_norm layer, %s scale(%w) bias(%b) {epsilon = 1.0e-5 : f64} : (tensor<4x8x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<4x8x64xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  %db = train.reduce sum, %s {dimensions = array<i64: 0, 1>} : (tensor<4x8x64xf32>) -> tensor<64xf32>
  %p = train.mul %s, %y : tensor<4x8x64xf32>
  %dw = train.reduce sum, %p {dimensions = array<i64: 0, 1>} : (tensor<4x8x64xf32>) -> tensor<64xf32>
  return %s, %y, %m, %rs, %db, %dw : tensor<4x8x64xf32>, tensor<4x8x64xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<64xf32>, tensor<64xf32>
}

// A library op stands between; its operand's transpose stays outside, the bias' broadcast does not.
// CHECK-LABEL: func.func @library
// CHECK:         %[[T:.*]] = train.transpose
// CHECK:         %[[P:.*]] = train.dot_general %{{.*}}, %[[T]]
// CHECK:         exec.fusion "elementwise"(%[[P]], %{{.*}}) {extent = 8 : i64, grain = 512 : i64, inplace = array<i64: 0>}
// CHECK:           train.broadcast
// CHECK:           train.add
// CHECK:           train.tanh
func.func @library(%x: tensor<8x4xf32>, %w: tensor<16x4xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  %t = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<16x4xf32>) -> tensor<4x16xf32>
  %p = train.dot_general %x, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %bb = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %q = train.add %p, %bb : tensor<8x16xf32>
  %g = train.tanh %q : tensor<8x16xf32>
  return %g : tensor<8x16xf32>
}

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

// The second addition needs the product, which needs the first: they are not one kernel.
// CHECK-LABEL: func.func @no_cycle
// CHECK:         exec.fusion
// CHECK:         train.dot_general
// CHECK:         exec.fusion
func.func @no_cycle(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = train.add %x, %x : tensor<4x4xf32>
  %p = train.dot_general %a, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = train.add %a, %p : tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}

// AdamW updates parameter and moments in place of the arguments they alias.
// CHECK-LABEL: func.func @adamw
// CHECK:         exec.fusion "elementwise"({{.*}}) {extent = 40 : i64, grain = 8192 : i64, inplace = array<i64: [[P:[0-9]+]], [[M:[0-9]+]], [[V:[0-9]+]]>}
func.func @adamw(%p: tensor<40xf32> {train.role = "param", train.name = "u"}, %m: tensor<40xf32> {train.role = "state", train.name = "u.m", train.of = "u"}, %v: tensor<40xf32> {train.role = "state", train.name = "u.v", train.of = "u"}, %g: tensor<40xf32>, %lr: tensor<f32> {train.role = "hyper", train.name = "lr"}, %c1: tensor<f32> {train.role = "hyper", train.name = "bias_correction1"}, %c2: tensor<f32> {train.role = "hyper", train.name = "bias_correction2"})
    -> (tensor<40xf32> {train.alias = 0 : i64}, tensor<40xf32> {train.alias = 1 : i64}, tensor<40xf32> {train.alias = 2 : i64}) {
  %0:3 = train.adamw_update %p, %m, %v, %g lr(%lr) correction(%c1, %c2) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.1 : f64, decay_elements = 30 : i64} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
  return %0#0, %0#1, %0#2 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
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

// Inside a repetition the sum goes into the accumulator's place.
// CHECK-LABEL: func.func @accumulate
// CHECK:         exec.repeat
// CHECK:           exec.fusion "elementwise"({{.*}}) {{.*}}inplace = array<i64: {{[0-9]}}>
func.func @accumulate(%x: tensor<2x8xf32>) -> tensor<8xf32> {
  %z = train.constant dense<0.0> : tensor<8xf32>
  %0 = exec.repeat count = 2 batch(%x) init(%z) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<8xf32>, %acc: tensor<8xf32>):
    %e = train.exp %m : tensor<8xf32>
    %n = train.add %acc, %e : tensor<8xf32>
    exec.yield %n : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// A table that repeats itself is broadcast from the part that does not.
// CHECK-LABEL: func.func @repeated_table
// CHECK:         exec.fusion "elementwise"(%{{.*}})
// CHECK:           %[[C:.*]] = train.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK:           train.broadcast %[[C]] {broadcast_dimensions = array<i64: 1>} : (tensor<2xf32>) -> tensor<3x2xf32>
func.func @repeated_table(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %c = train.constant dense<[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]> : tensor<3x2xf32>
  %0 = train.mul %x, %c : tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// The kernel that updates units says which operands are their gradients; the marks do not stay in the body.
// CHECK-LABEL: @gradients_of_units
// CHECK: exec.fusion {{.*}}train.grad_operands = array<i64: 1>, train.units = ["a"]
// CHECK: exec.fusion {{.*}}train.grad_operands = array<i64: 1>, train.units = ["b"]
// CHECK-NOT: train.unit =
// CHECK: return
func.func @gradients_of_units(%a: tensor<32xf32> {train.role = "param", train.name = "a"}, %b: tensor<32xf32> {train.role = "param", train.name = "b"}, %x: tensor<4x4xf32>,
                              %y: tensor<4x8xf32>) -> (tensor<32xf32>, tensor<32xf32>) {
  %g = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %h = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %ga = train.reshape %g : (tensor<4x8xf32>) -> tensor<32xf32>
  %gb = train.reshape %h : (tensor<4x8xf32>) -> tensor<32xf32>
  %na = train.sub %a, %ga {train.unit = "a"} : tensor<32xf32>
  %nb = train.sub %b, %gb {train.unit = "b"} : tensor<32xf32>
  return %na, %nb : tensor<32xf32>, tensor<32xf32>
}

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
