// RUN: tessera-opt %s --decompose --fuse | FileCheck %s
// RUN: tessera-opt %s --decompose --fuse -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --rtol=1e-4 --atol=1e-5 --quiet
// RUN: tessera-opt %s --decompose --fuse --outline-kernels | kernel-check
// What is compared differs in the order of sums and in what is computed twice, hence up to rounding.

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

// AdamW updates parameter and moments in place of the arguments they alias.
// CHECK-LABEL: func.func @adamw
// CHECK:         exec.fusion "elementwise"({{.*}}) {extent = 40 : i64, grain = 8192 : i64, inplace = array<i64: [[P:[0-9]+]], [[M:[0-9]+]], [[V:[0-9]+]]>}
func.func @adamw(%p: tensor<40xf32> {train.role = "param", train.name = "u"}, %m: tensor<40xf32> {train.role = "state", train.name = "u.m", train.of = "u"}, %v: tensor<40xf32> {train.role = "state", train.name = "u.v", train.of = "u"}, %g: tensor<40xf32>, %lr: tensor<f32> {train.role = "hyper", train.name = "lr"}, %c1: tensor<f32> {train.role = "hyper", train.name = "bias_correction1"}, %c2: tensor<f32> {train.role = "hyper", train.name = "bias_correction2"})
    -> (tensor<40xf32> {train.alias = 0 : i64}, tensor<40xf32> {train.alias = 1 : i64}, tensor<40xf32> {train.alias = 2 : i64}) {
  %0:3 = train.adamw_update %p, %m, %v, %g lr(%lr) correction(%c1, %c2) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.1 : f64, decay_elements = 30 : i64} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
  return %0#0, %0#1, %0#2 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
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

// What is scattered is reduced in a kernel of its own, also where it is one row.
// CHECK-LABEL: @scatter_of_one_row
// CHECK: exec.fusion "reduce_all"
// CHECK: exec.fusion "scatter"
// CHECK: return
func.func @scatter_of_one_row(%t: tensor<16x8xf32>, %i: tensor<1xi64>, %x: tensor<1x8xf32>) -> tensor<16x8xf32> {
  %s = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<1x8xf32>) -> tensor<1xf32>
  %b = train.broadcast %s {broadcast_dimensions = array<i64: 0>} : (tensor<1xf32>) -> tensor<1x8xf32>
  %d = train.sub %x, %b : tensor<1x8xf32>
  %r = train.scatter_add_rows %t, %i, %d : (tensor<16x8xf32>, tensor<1xi64>, tensor<1x8xf32>) -> tensor<16x8xf32>
  return %r : tensor<16x8xf32>
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
