// RUN: tessera-opt %s --decompose | FileCheck %s
// RUN: tessera-opt %s --decompose -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --atol=1e-5 --quiet
// No diagnostic: each op of its list has one rule for all operands that its verifier allows.

// CHECK-LABEL: func.func @softmax
// CHECK-NOT:     train.softmax
// CHECK:         train.reduce max
// CHECK:         train.exp
// CHECK:         train.reduce sum
// CHECK:         train.div
func.func @softmax(%x: tensor<4x5x8xf32>) -> (tensor<4x5x8xf32>, tensor<4x5x8xf32>) {
  %0 = train.softmax %x {dim = 2 : i64} : tensor<4x5x8xf32>
  %1 = train.softmax %x {dim = 1 : i64, train.backward} : tensor<4x5x8xf32>
  return %0, %1 : tensor<4x5x8xf32>, tensor<4x5x8xf32>
}

// The ops that replace a backward op belong to the backward pass too.
// CHECK-LABEL: func.func @backward
// CHECK:         train.exp {{.*}} {train.backward}
func.func @backward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = train.softmax %x {dim = 1 : i64, train.backward} : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// By comparing all pairs; ties and NaN included.
// CHECK-LABEL: func.func @sort_indices
// CHECK-NOT:     train.sort_indices
// CHECK:         train.reduce sum
// CHECK:         train.reduce sum
func.func @sort_indices(%x: tensor<4x7xf32>) -> (tensor<4x7xi64>, tensor<4x7xi32>, tensor<5x4xi32>) {
  %0 = train.sort_indices %x {dim = 1 : i64} : (tensor<4x7xf32>) -> tensor<4x7xi64>
  %1 = train.sort_indices %x {descending, dim = 0 : i64} : (tensor<4x7xf32>) -> tensor<4x7xi32>
  %c = train.constant dense<[[1.0, 0x7FC00000, 1.0, -0.0], [0.0, 0x7FC00000, 3.0, 0.0], [0.0, 2.0, 3.0, 0.0], [5.0, 2.0, 3.0, 0.0], [1.0, 0x7F800000, 3.0, 0.0]]> : tensor<5x4xf32>
  %2 = train.sort_indices %c {descending, dim = 0 : i64} : (tensor<5x4xf32>) -> tensor<5x4xi32>
  return %0, %1, %2 : tensor<4x7xi64>, tensor<4x7xi32>, tensor<5x4xi32>
}

// CHECK-LABEL: func.func @norms
// CHECK-NOT:     train.layer_norm
// CHECK:         train.rsqrt
func.func @norms(%x: tensor<3x5x16xf32>, %s: tensor<16xf32>, %b: tensor<16xf32>)
    -> (tensor<3x5x16xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5x16xf32>, tensor<3x5xf32>, tensor<3x5xf32>) {
  %0:3 = train.layer_norm layer, %x scale(%s) bias(%b) {epsilon = 1.0e-5 : f64} : (tensor<3x5x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<3x5x16xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
  %1:3 = train.layer_norm rms, %x scale(%s) {epsilon = 1.0e-5 : f64} : (tensor<3x5x16xf32>, tensor<16xf32>) -> (tensor<3x5x16xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
  return %0#0, %0#1, %0#2, %1#0, %1#1, %1#2 : tensor<3x5x16xf32>, tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5x16xf32>, tensor<3x5xf32>, tensor<3x5xf32>
}

// CHECK-LABEL: func.func @losses
// CHECK-NOT:     train.cross_entropy
// CHECK-NOT:     train.count_valid
func.func @losses(%x: tensor<12x10xf32>, %t: tensor<12xi32>) -> (tensor<12xf32>, tensor<12xf32>, tensor<f32>, tensor<12xf32>, tensor<f32>) {
  %0:2 = train.cross_entropy %x, %t {ignore_index = -100 : i64, label_smoothing = 0.1 : f64} : (tensor<12x10xf32>, tensor<12xi32>) -> (tensor<12xf32>, tensor<12xf32>)
  %1:2 = train.cross_entropy %x, %t {ignore_index = -100 : i64} : (tensor<12x10xf32>, tensor<12xi32>) -> (tensor<12xf32>, tensor<12xf32>)
  %2 = train.count_valid %t {ignore_index = -100 : i64} : (tensor<12xi32>) -> tensor<f32>
  %3 = train.count_valid %t : (tensor<12xi32>) -> tensor<f32>
  return %0#0, %0#1, %2, %1#0, %3 : tensor<12xf32>, tensor<12xf32>, tensor<f32>, tensor<12xf32>, tensor<f32>
}

// Part of the unit decays: the comparison is made in i32 against a limit that is computed once.
// CHECK-LABEL: func.func @adamw
// CHECK-NOT:     train.adamw_update
// CHECK:         train.iota {dim = 0 : i64} : tensor<40xi32>
// CHECK:         train.select
func.func @adamw(%p: tensor<40xf32> {train.role = "param", train.name = "u"}, %m: tensor<40xf32> {train.role = "state", train.name = "u.m", train.of = "u"}, %v: tensor<40xf32> {train.role = "state", train.name = "u.v", train.of = "u"}, %g: tensor<40xf32>, %lr: tensor<f32> {train.role = "hyper", train.name = "lr"}, %c1: tensor<f32> {train.role = "hyper", train.name = "bias_correction1"}, %c2: tensor<f32> {train.role = "hyper", train.name = "bias_correction2"}, %s: tensor<f32>, %o: tensor<i64>)
    -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) {
  %0:3 = train.adamw_update %p, %m, %v, %g lr(%lr) correction(%c1, %c2) scale(%s) offset(%o) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.1 : f64, decay_elements = 30 : i64} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i64>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
  return %0#0, %0#1, %0#2 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
}

// CHECK-LABEL: func.func @sgd
// CHECK-NOT:     train.sgd_update
func.func @sgd(%p: tensor<40xf32>, %b: tensor<40xf32>, %g: tensor<40xf32>, %lr: tensor<f32> {train.role = "hyper", train.name = "lr"}) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) {
  %0:2 = train.sgd_update %p, %g buffer(%b) lr(%lr) {momentum = 0.9 : f64, weight_decay = 0.01 : f64, decay_elements = 40 : i64, nesterov} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<f32>) -> (tensor<40xf32>, tensor<40xf32>)
  %1 = train.sgd_update %p, %g lr(%lr) {momentum = 0.0 : f64, weight_decay = 0.0 : f64, decay_elements = 0 : i64} : (tensor<40xf32>, tensor<40xf32>, tensor<f32>) -> tensor<40xf32>
  return %0#0, %0#1, %1 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
}

// An update with a flag stores new values or old ones; the parameter's is computed from the states that are stored, so that
// no other is kept.
// CHECK-LABEL: func.func @guarded_adamw
// CHECK:         %[[M:.*]] = train.select %{{.*}}, %{{.*}}, %arg1
// CHECK:         %[[V:.*]] = train.select %{{.*}}, %{{.*}}, %arg2
// CHECK:         train.sqrt %[[V]]
// CHECK:         train.mul %{{.*}}, %[[M]]
// CHECK:         %[[P:.*]] = train.select %{{.*}}, %{{.*}}, %arg0
// CHECK:         return %[[P]], %[[M]], %[[V]]
func.func @guarded_adamw(%p: tensor<40xf32>, %m: tensor<40xf32>, %v: tensor<40xf32>, %g: tensor<40xf32>, %lr: tensor<f32>, %c: tensor<f32>, %apply: tensor<i1>)
    -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) {
  %0:3 = train.adamw_update %p, %m, %v, %g lr(%lr) correction(%c, %c) apply(%apply) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.1 : f64, decay_elements = 30 : i64} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
  return %0#0, %0#1, %0#2 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
}

// CHECK-LABEL: func.func @guarded_sgd
// CHECK:         %[[B:.*]] = train.select %{{.*}}, %{{.*}}, %arg1
// CHECK:         train.mul %{{.*}}, %[[B]]
// CHECK:         %[[P:.*]] = train.select %{{.*}}, %{{.*}}, %arg0
// CHECK:         %[[Q:.*]] = train.select %{{.*}}, %{{.*}}, %arg0
// CHECK:         return %[[P]], %[[B]], %[[Q]]
func.func @guarded_sgd(%p: tensor<40xf32>, %b: tensor<40xf32>, %g: tensor<40xf32>, %lr: tensor<f32>, %apply: tensor<i1>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) {
  %0:2 = train.sgd_update %p, %g buffer(%b) lr(%lr) apply(%apply) {momentum = 0.9 : f64, weight_decay = 0.01 : f64, decay_elements = 40 : i64} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<f32>, tensor<i1>) -> (tensor<40xf32>, tensor<40xf32>)
  %1 = train.sgd_update %p, %g lr(%lr) apply(%apply) {momentum = 0.0 : f64, weight_decay = 0.0 : f64, decay_elements = 0 : i64} : (tensor<40xf32>, tensor<40xf32>, tensor<f32>, tensor<i1>) -> tensor<40xf32>
  return %0#0, %0#1, %1 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
}

// The parameter is computed from the moments before they are rounded.
// CHECK-LABEL: func.func @narrow_moments
// CHECK:         %[[M:.*]] = train.stochastic_round %[[WIDE_M:.*]], %arg5 offset(%arg6) {lane = 0 : i64, stream = 7 : i64}
// CHECK:         %[[V:.*]] = train.stochastic_round %[[WIDE_V:.*]], %arg5 offset(%arg6) {lane = 1 : i64, stream = 7 : i64}
// CHECK:         train.sqrt %[[WIDE_V]]
// CHECK:         train.mul %{{.*}}, %[[WIDE_M]]
// CHECK:         return %{{.*}}, %[[M]], %[[V]]
func.func @narrow_moments(%p: tensor<40xf32>, %m: tensor<40xbf16>, %v: tensor<40xbf16>, %g: tensor<40xf32>, %lr: tensor<f32>, %seed: tensor<i64>, %o: tensor<i64>)
    -> (tensor<40xf32>, tensor<40xbf16>, tensor<40xbf16>) {
  %c = train.constant dense<0.5> : tensor<f32>
  %v2 = train.mul %v, %v : tensor<40xbf16>
  %0:3 = train.adamw_update %p, %m, %v2, %g lr(%lr) correction(%c, %c) seed(%seed) offset(%o) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, epsilon = 1.0e-3 : f64, weight_decay = 0.0 : f64, decay_elements = 0 : i64, rounding_stream = 7 : i64} : (tensor<40xf32>, tensor<40xbf16>, tensor<40xbf16>, tensor<40xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<i64>) -> (tensor<40xf32>, tensor<40xbf16>, tensor<40xbf16>)
  return %0#0, %0#1, %0#2 : tensor<40xf32>, tensor<40xbf16>, tensor<40xbf16>
}

// What is no number is neither above nor below a limit.
// CHECK-LABEL: func.func @lion
// CHECK-NOT:     train.lion_update
// CHECK:         %[[ABOVE:.*]] = train.compare gt, %arg2, %[[MOST:.*]] {train.unit = "u"}
// CHECK:         %[[BELOW:.*]] = train.compare lt, %arg2, %[[LEAST:.*]] :
// CHECK:         %[[LOW:.*]] = train.select %[[BELOW]], %[[LEAST]], %arg2
// CHECK:         train.select %[[ABOVE]], %[[MOST]], %[[LOW]]
func.func @lion(%p: tensor<40xf32>, %m: tensor<40xf32>, %g: tensor<40xf32>, %lr: tensor<f32>, %o: tensor<i64>) -> (tensor<40xf32>, tensor<40xf32>) {
  %0:2 = train.lion_update %p, %m, %g lr(%lr) offset(%o) {beta1 = 0.9 : f64, beta2 = 0.99 : f64, weight_decay = 0.1 : f64, decay_elements = 30 : i64, clip_value = 0.5 : f64, train.unit = "u"} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<f32>, tensor<i64>) -> (tensor<40xf32>, tensor<40xf32>)
  return %0#0, %0#1 : tensor<40xf32>, tensor<40xf32>
}

// CHECK-LABEL: func.func @scatter
// CHECK-SAME:    %[[ACC:[a-z0-9]*]]: tensor<10x4xf32>
// CHECK:         train.scatter_add_rows %[[ACC]],
// CHECK-NOT:     train.add
func.func @scatter(%acc: tensor<10x4xf32>, %i: tensor<6xi32>, %u: tensor<6x4xf32>) -> tensor<10x4xf32> {
  %z = train.constant dense<0.0> : tensor<10x4xf32>
  %0 = train.scatter_add_rows %z, %i, %u : (tensor<10x4xf32>, tensor<6xi32>, tensor<6x4xf32>) -> tensor<10x4xf32>
  %1 = train.add %acc, %0 : tensor<10x4xf32>
  return %1 : tensor<10x4xf32>
}

// The mark of a unit is on the first op that reads the gradient itself: with a scale its product, else what the update
// begins with.
// CHECK-LABEL: func.func @marks
// CHECK:         train.mul %[[G:arg3]], %{{.*}} {train.unit = "scaled"}
// CHECK-NOT:     train.unit
// CHECK:         train.sub %[[G]], %arg1 {train.unit = "adamw"}
// CHECK-NOT:     train.unit
// CHECK:         train.add %[[G]], %{{.*}} {train.unit = "decay"}
// CHECK-NOT:     train.unit
// CHECK:         train.mul %{{.*}}, %[[G]] {train.unit = "sgd"}
// CHECK-NOT:     train.unit
// CHECK:         return
func.func @marks(%p: tensor<40xf32>, %m: tensor<40xf32>, %v: tensor<40xf32>, %g: tensor<40xf32>, %lr: tensor<f32>, %s: tensor<f32>)
    -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) {
  %0:3 = train.adamw_update %p, %m, %v, %g lr(%lr) correction(%lr, %lr) scale(%s) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64, decay_elements = 0 : i64, train.unit = "scaled"} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
  %1:3 = train.adamw_update %p, %m, %v, %g lr(%lr) correction(%lr, %lr) {beta1 = 0.9 : f64, beta2 = 0.95 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64, decay_elements = 0 : i64, train.unit = "adamw"} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
  %2 = train.sgd_update %p, %g lr(%lr) {momentum = 0.0 : f64, weight_decay = 0.01 : f64, decay_elements = 40 : i64, train.unit = "decay"} : (tensor<40xf32>, tensor<40xf32>, tensor<f32>) -> tensor<40xf32>
  %3 = train.sgd_update %p, %g lr(%lr) {momentum = 0.0 : f64, weight_decay = 0.0 : f64, decay_elements = 0 : i64, train.unit = "sgd"} : (tensor<40xf32>, tensor<40xf32>, tensor<f32>) -> tensor<40xf32>
  return %0#0, %1#0, %2, %3 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
}

// Products of 8-bit floats: of powers of two in bf16, which holds each value times its inverse scale; of other scales that do
// not change along what is contracted, on the result; else in f32.
// CHECK-LABEL: func.func @scaled_dot
// CHECK-NOT:     train.scaled_dot
// CHECK:         train.dot_general {{.*}} : (tensor<4x8xbf16>, tensor<6x8xbf16>) -> tensor<4x6xbf16>
// CHECK:         %[[P:.*]] = train.dot_general {{.*}} : (tensor<4x8xbf16>, tensor<6x8xbf16>) -> tensor<4x6xf32>
// CHECK:         train.mul %[[P]]
// CHECK:         train.dot_general {{.*}} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
func.func @scaled_dot(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> (tensor<4x6xbf16>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %s = train.constant dense<[[2.0, 4.0], [0.5, 1.0], [1.0, 2.0], [8.0, 1.0]]> : tensor<4x2xf32>
  %i = train.constant dense<[[0.5, 0.25], [2.0, 1.0], [1.0, 0.5], [0.125, 1.0]]> : tensor<4x2xf32>
  %r = train.constant dense<[[3.0], [1.5], [0.7], [9.0]]> : tensor<4x1xf32>
  %t = train.constant dense<1.3> : tensor<f32>
  %q = train.quantize %x, %s : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x8xf8E4M3FN>
  %p = train.quantize %w, %t : (tensor<6x8xf32>, tensor<f32>) -> tensor<6x8xf8E5M2>
  %one = train.constant dense<1.0> : tensor<f32>
  %0 = train.scaled_dot %q, %p scaled %i, %one {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two} : (tensor<4x8xf8E4M3FN>, tensor<6x8xf8E5M2>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x6xbf16>
  %1 = train.scaled_dot %q, %p scaled %r, %t {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x8xf8E4M3FN>, tensor<6x8xf8E5M2>, tensor<4x1xf32>, tensor<f32>) -> tensor<4x6xf32>
  %2 = train.scaled_dot %q, %p scaled %i, %t {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x8xf8E4M3FN>, tensor<6x8xf8E5M2>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %0, %1, %2 : tensor<4x6xbf16>, tensor<4x6xf32>, tensor<4x6xf32>
}
