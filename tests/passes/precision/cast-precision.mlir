// RUN: tessera-opt %s --split-input-file --cast-precision --verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --split-input-file --cast-precision --cast-precision 2>/dev/null | FileCheck %s

// The unit is converted once, products and what they read are bf16, constants and chains of elementwise ops are f32. The
// gradient of a parameter leaves its product in f32, and the update reads the f32 unit.

// CHECK-LABEL: func.func @mlp
// CHECK-SAME: (%[[U:.*]]: tensor<32xf32> {{.*}}, %[[X:.*]]: tensor<2x4xf32>
func.func @mlp(%u: tensor<32xf32> {train.role = "param", train.name = "u"},
               %x: tensor<2x4xf32> {train.role = "input", train.name = "x"},
               %target: tensor<2x8xf32> {train.role = "target", train.name = "targets"},
               %lr: tensor<f32> {train.role = "hyper", train.name = "lr"})
    -> (tensor<f32> {train.role = "loss", train.name = "loss"}, tensor<32xf32> {train.alias = 0 : i64}) {
  %third = train.constant dense<0.3> : tensor<2x8xf32>
  %two = train.constant {train.backward} dense<2.0> : tensor<2x8xf32>
  // CHECK: %[[UN:.*]] = train.convert %[[U]] : (tensor<32xf32>) -> tensor<32xbf16>
  // CHECK: %[[W:.*]] = train.reshape %[[UN]] : (tensor<32xbf16>) -> tensor<4x8xbf16>
  %w = train.reshape %u : (tensor<32xf32>) -> tensor<4x8xf32>
  // CHECK: %[[XN:.*]] = train.convert %[[X]] : (tensor<2x4xf32>) -> tensor<2x4xbf16>
  // CHECK: %[[Y:.*]] = train.dot_general %[[XN]], %[[W]] {{.*}} (tensor<2x4xbf16>, tensor<4x8xbf16>) -> tensor<2x8xbf16>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  // CHECK: %[[YW:.*]] = train.convert %[[Y]] : (tensor<2x8xbf16>) -> tensor<2x8xf32>
  // CHECK: %[[S:.*]] = train.mul %[[YW]], %{{.*}} : tensor<2x8xf32>
  %s = train.mul %y, %third : tensor<2x8xf32>
  // The loss is computed from targets elementwise: f32 throughout.
  // CHECK: %[[D:.*]] = train.sub %[[S]], %{{.*}} : tensor<2x8xf32>
  %d = train.sub %s, %target : tensor<2x8xf32>
  // CHECK: %[[SQUARE:.*]] = train.mul %[[D]], %[[D]] : tensor<2x8xf32>
  %square = train.mul %d, %d : tensor<2x8xf32>
  // CHECK: train.reduce sum, %[[SQUARE]] {{.*}} : (tensor<2x8xf32>) -> tensor<f32>
  %loss = train.reduce sum, %square {dimensions = array<i64: 0, 1>} : (tensor<2x8xf32>) -> tensor<f32>
  %dd = train.mul %d, %two {train.backward} : tensor<2x8xf32>
  // CHECK: %[[DD:.*]] = train.mul %[[D]], %{{.*}} {train.backward} : tensor<2x8xf32>
  // CHECK: %[[DDN:.*]] = train.convert %[[DD]] {train.backward} : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  // CHECK: %[[DW:.*]] = train.dot_general %[[XN]], %[[DDN]] {{.*}} (tensor<2x4xbf16>, tensor<2x8xbf16>) -> tensor<4x8xf32>
  %dw = train.dot_general %x, %dd {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, train.backward} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  // CHECK: %[[G:.*]] = train.reshape %[[DW]] {{.*}} -> tensor<32xf32>
  %g = train.reshape %dw {train.backward} : (tensor<4x8xf32>) -> tensor<32xf32>
  // CHECK: train.sgd_update %[[U]], %[[G]]
  %new = train.sgd_update %u, %g lr(%lr) {momentum = 0.0 : f64, weight_decay = 0.0 : f64, decay_elements = 0 : i64} : (tensor<32xf32>, tensor<32xf32>, tensor<f32>) -> tensor<32xf32>
  return %loss, %new : tensor<f32>, tensor<32xf32>
}

// -----

// Attention's log-sum-exp and norms' statistics are f32; so are the operands of reductions. A value that a library reads
// is rounded once.

// CHECK-LABEL: func.func @block
func.func @block(%u: tensor<16xf32> {train.role = "param", train.name = "u"},
                 %x: tensor<1x2x4x16xf32> {train.role = "input", train.name = "x"})
    -> (tensor<1x2x4x16xf32> {train.role = "output", train.name = "y"}, tensor<1x2x4xf32> {train.role = "output", train.name = "sums"}) {
  // CHECK: train.layer_norm rms, %{{.*}} scale(%{{.*}}) {{.*}} : (tensor<1x2x4x16xbf16>, tensor<16xbf16>) -> (tensor<1x2x4x16xbf16>, tensor<1x2x4xf32>, tensor<1x2x4xf32>)
  %n, %mean, %rstd = train.layer_norm rms, %x scale(%u) {epsilon = 1.0e-5 : f64} : (tensor<1x2x4x16xf32>, tensor<16xf32>) -> (tensor<1x2x4x16xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>)
  // CHECK: %[[OUT:.*]], %{{.*}} = train.attention {{.*}} -> (tensor<1x2x4x16xbf16>, tensor<1x2x4xf32>)
  %out, %lse = train.attention %n, %n, %n {causal, scale = 0.25 : f64} : (tensor<1x2x4x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4x16xf32>) -> (tensor<1x2x4x16xf32>, tensor<1x2x4xf32>)
  // CHECK: %[[EXP:.*]] = train.exp %{{.*}} : tensor<1x2x4x16xf32>
  %e = train.exp %out : tensor<1x2x4x16xf32>
  // CHECK: train.reduce sum, %[[EXP]] {{.*}} : (tensor<1x2x4x16xf32>) -> tensor<1x2x4xf32>
  %sums = train.reduce sum, %e {dimensions = array<i64: 3>} : (tensor<1x2x4x16xf32>) -> tensor<1x2x4xf32>
  // CHECK: %[[LAST:.*]] = train.convert %[[OUT]] : (tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xf32>
  // CHECK: return %[[LAST]]
  return %out, %sums : tensor<1x2x4x16xf32>, tensor<1x2x4xf32>
}

// -----

// Convolutions, and products that depend on no parameter and no input, stay f32.

// CHECK-LABEL: func.func @not_applied
func.func @not_applied(%u: tensor<4xf32> {train.role = "param", train.name = "u"},
                       %x: tensor<1x1x3x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<1x1x2x2xf32>, tensor<4x4xf32>) {
  %w = train.reshape %u : (tensor<4xf32>) -> tensor<1x1x2x2xf32>
  // CHECK: train.conv2d {{.*}} (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  // expected-remark @below {{stays f32: convolutions are not computed in bf16}}
  %y = train.conv2d %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %i = train.iota {dim = 0 : i64} : tensor<4x2xf32>
  // CHECK: train.dot_general {{.*}} (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  // expected-remark @below {{stays f32: it depends on no parameter and no floating point input}}
  %p = train.dot_general %i, %i {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  return %y, %p : tensor<1x1x2x2xf32>, tensor<4x4xf32>
}

// -----

// What the model itself computes in bf16 stays so, and what it makes of it is data like any other.

// CHECK-LABEL: func.func @given
func.func @given(%u: tensor<16xf32> {train.role = "param", train.name = "u"},
                 %x: tensor<4x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<4x4xbf16> {train.role = "output"}, tensor<4x4xf32> {train.role = "output"}) {
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  // CHECK: %[[Y:.*]] = train.dot_general {{.*}} -> tensor<4x4xbf16>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[E:.*]] = train.exp %{{.*}} : tensor<4x4xf32>
  %e = train.exp %y : tensor<4x4xf32>
  // CHECK: %[[H:.*]] = train.convert %[[E]] : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %h = train.convert %e : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  // CHECK: %[[A:.*]] = train.add %[[H]], %[[H]] : tensor<4x4xbf16>
  %a = train.add %h, %h : tensor<4x4xbf16>
  // CHECK: %[[C:.*]] = train.concat %[[A]], %[[H]] {dim = 0 : i64} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %c = train.concat %a, %h {dim = 0 : i64} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  // CHECK: %[[I:.*]] = train.convert %[[C]] : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  %i = train.convert %c : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  // CHECK: %[[N:.*]] = train.convert %[[I]] : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  // CHECK: train.dot_general %[[N]], {{.*}} -> tensor<8x4xbf16>
  %z = train.dot_general %i, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %s = train.slice %z {starts = array<i64: 0, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
  // CHECK: return %[[A]], %{{.*}} : tensor<4x4xbf16>, tensor<4x4xf32>
  return %a, %s : tensor<4x4xbf16>, tensor<4x4xf32>
}

// -----

// CHECK-LABEL: func.func @nothing
// CHECK-NOT: bf16
// expected-remark @below {{not computed in bf16: the step has no f32 parameters}}
func.func @nothing(%x: tensor<2x4xf32> {train.role = "input", train.name = "x"}) -> tensor<2x2xf32> {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// What reads a parameter that is computed in f32 is f32: a router's product widens what was stored in bf16, its softmax
// is not rounded, and its gradient's product reads f32. What it sends back is rounded where other data is.

// CHECK-LABEL: func.func @router
// CHECK-SAME: (%[[R:.*]]: tensor<16xf32> {{.*}}, %[[U:.*]]: tensor<16xf32> {{.*}}, %[[X:.*]]: tensor<2x4xf32>
func.func @router(%r: tensor<16xf32> {train.role = "param", train.name = "r", train.compute_type = f32},
                  %u: tensor<16xf32> {train.role = "param", train.name = "u"},
                  %x: tensor<2x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<2x4xf32> {train.role = "output", train.name = "y"}, tensor<16xf32> {train.role = "grad", train.of = "r"},
        tensor<16xf32> {train.role = "grad", train.of = "u"}) {
  // CHECK-NOT: train.convert %[[R]]
  // CHECK: %[[RW:.*]] = train.reshape %[[R]] : (tensor<16xf32>) -> tensor<4x4xf32>
  %rw = train.reshape %r : (tensor<16xf32>) -> tensor<4x4xf32>
  // CHECK: %[[W:.*]] = train.reshape %{{.*}} : (tensor<16xbf16>) -> tensor<4x4xbf16>
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  // CHECK: %[[H:.*]] = train.dot_general {{.*}} -> tensor<2x4xbf16>
  %h = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  // CHECK: %[[HW:.*]] = train.convert %[[H]] : (tensor<2x4xbf16>) -> tensor<2x4xf32>
  // CHECK: %[[L:.*]] = train.dot_general %[[HW]], %[[RW]] {{.*}} (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %l = train.dot_general %h, %rw {compute_type = f32, lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  // CHECK: %[[S:.*]] = train.softmax %[[L]] {{.*}} : tensor<2x4xf32>
  %s = train.softmax %l {dim = 1 : i64} : tensor<2x4xf32>
  // CHECK: %[[D:.*]] = train.mul %[[S]], %{{.*}} {train.backward} : tensor<2x4xf32>
  // CHECK-NOT: train.convert %[[D]]
  %d = train.mul %s, %h {train.backward} : tensor<2x4xf32>
  // CHECK: %[[HG:.*]] = train.convert %[[H]] {train.backward} : (tensor<2x4xbf16>) -> tensor<2x4xf32>
  // CHECK: train.dot_general %[[HG]], %[[D]] {{.*}} (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %dr = train.dot_general %h, %d {compute_type = f32, lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, train.backward} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[DH:.*]] = train.dot_general %[[D]], %{{.*}} {{.*}} (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  // CHECK: %[[DHN:.*]] = train.convert %[[DH]] {train.backward} : (tensor<2x4xf32>) -> tensor<2x4xbf16>
  %dh = train.dot_general %d, %rw {compute_type = f32, lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, train.backward} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  // CHECK: train.dot_general %{{.*}}, %[[DHN]] {{.*}} (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<4x4xf32>
  %du = train.dot_general %x, %dh {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, train.backward} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %gr = train.reshape %dr {train.backward} : (tensor<4x4xf32>) -> tensor<16xf32>
  %gu = train.reshape %du {train.backward} : (tensor<4x4xf32>) -> tensor<16xf32>
  return %s, %gr, %gu : tensor<2x4xf32>, tensor<16xf32>, tensor<16xf32>
}

// -----

// Where all parameters are computed in f32, so is the step.

// CHECK-LABEL: func.func @all
// CHECK-NOT: bf16
// expected-remark @below {{not computed in bf16: all f32 parameters are computed in f32}}
func.func @all(%u: tensor<16xf32> {train.role = "param", train.name = "u", train.compute_type = f32},
               %x: tensor<2x4xf32> {train.role = "input", train.name = "x"}) -> tensor<2x4xf32> {
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// A norm whose scale is read in f32 is computed in f32, and goes on as what it reads; a bias that is, broadcast, is no
// data either, nor is a scaled and normed weight. A concatenation with other values is data.

// CHECK-LABEL: func.func @kept_others
// CHECK-SAME: (%[[S:.*]]: tensor<4xf32> {{.*}}, %[[R:.*]]: tensor<16xf32> {{.*}}, %[[U:.*]]: tensor<16xf32>
func.func @kept_others(%s: tensor<4xf32> {train.role = "param", train.name = "s", train.compute_type = f32},
                       %r: tensor<16xf32> {train.role = "param", train.name = "r", train.compute_type = f32},
                       %u: tensor<16xf32> {train.role = "param", train.name = "u"},
                       %x: tensor<4x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<4x4xf32> {train.role = "output", train.name = "y"}, tensor<8x4xf32> {train.role = "output", train.name = "z"}) {
  %third = train.constant dense<0.3> : tensor<16xf32>
  %uw = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  // CHECK: %[[H:.*]] = train.dot_general {{.*}} -> tensor<4x4xbf16>
  %h = train.dot_general %x, %uw {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[HW:.*]] = train.convert %[[H]] : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  // CHECK: %[[N:.*]], %{{.*}}, %{{.*}} = train.layer_norm rms, %[[HW]] scale(%[[S]]) {{.*}} : (tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // What a norm of data makes is stored in bf16.
  // CHECK: %[[NN:.*]] = train.convert %[[N]] : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %n, %mean, %rstd = train.layer_norm rms, %h scale(%s) {epsilon = 1.0e-5 : f64} : (tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
  %scaled = train.mul %r, %third : tensor<16xf32>
  // CHECK: %[[V:.*]] = train.reshape %{{.*}} : (tensor<16xf32>) -> tensor<4x4xf32>
  %v = train.reshape %scaled : (tensor<16xf32>) -> tensor<4x4xf32>
  // CHECK: %[[ROWS:.*]] = train.reduce sum, %[[V]] {{.*}} : (tensor<4x4xf32>) -> tensor<4xf32>
  // CHECK: %[[WIDE:.*]] = train.broadcast %[[ROWS]] {{.*}} : (tensor<4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[W:.*]] = train.div %[[V]], %[[WIDE]] : tensor<4x4xf32>
  %rows = train.reduce sum, %v {dimensions = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
  %wide = train.broadcast %rows {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x4xf32>
  %w = train.div %v, %wide : tensor<4x4xf32>
  // CHECK: %[[NW:.*]] = train.convert %[[NN]] : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  // CHECK: %[[L:.*]] = train.dot_general %[[NW]], %[[W]] {compute_type = f32{{.*}} (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = train.dot_general %n, %w {compute_type = f32, lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[B:.*]] = train.broadcast %[[S]] {{.*}} : (tensor<4xf32>) -> tensor<4x4xf32>
  %b = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[SUM:.*]] = train.add %[[L]], %[[B]] : tensor<4x4xf32>
  // CHECK: train.softmax %[[SUM]] {{.*}} : tensor<4x4xf32>
  %sum = train.add %l, %b : tensor<4x4xf32>
  %y = train.softmax %sum {dim = 1 : i64} : tensor<4x4xf32>
  // CHECK: train.concat {{.*}} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %z = train.concat %w, %h {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %y, %z : tensor<4x4xf32>, tensor<8x4xf32>
}

// -----

// What follows from such a parameter by a mask that is computed, a softmax or a norm of it is f32, as is what reads it.

// CHECK-LABEL: func.func @kept_alone
// CHECK-SAME: (%[[R:.*]]: tensor<4x4xf32> {{.*}}, %[[U:.*]]: tensor<16xf32>
func.func @kept_alone(%r: tensor<4x4xf32> {train.role = "param", train.name = "r", train.compute_type = f32},
                      %u: tensor<16xf32> {train.role = "param", train.name = "u"},
                      %x: tensor<4x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<4x4xf32> {train.role = "output", train.name = "y"}) {
  %uw = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %two = train.constant dense<2> : tensor<4xi64>
  %h = train.dot_general %x, %uw {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %count = train.iota {dim = 0 : i64} : tensor<4xi64>
  %counts = train.compare lt, %count, %two : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
  %ones = train.convert %counts : (tensor<4xi1>) -> tensor<4xf32>
  // Sums of what is no data are none, wherever they are repeated.
  %rows = train.reduce sum, %ones {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %share = train.broadcast %rows {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %weights = train.div %ones, %share : tensor<4xf32>
  %mask = train.broadcast %weights {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[M:.*]] = train.mul %[[R]], %{{.*}} : tensor<4x4xf32>
  %m = train.mul %r, %mask : tensor<4x4xf32>
  // CHECK: %[[S:.*]] = train.softmax %[[M]] {{.*}} : tensor<4x4xf32>
  %s = train.softmax %m {dim = 1 : i64} : tensor<4x4xf32>
  // CHECK: %[[N:.*]], %{{.*}}, %{{.*}} = train.layer_norm rms, %[[S]] {{.*}} -> (tensor<4x4xf32>
  %n, %mean, %rstd = train.layer_norm rms, %s {epsilon = 1.0e-5 : f64} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK-NOT: train.convert %[[N]]
  // CHECK: train.dot_general %{{.*}}, %[[N]] {{.*}} (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = train.dot_general %h, %n {compute_type = f32, lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A frozen parameter that is held in bf16 and was widened for the model is read as it is held: rows of a table, too.

// CHECK-LABEL: func.func @held
// CHECK-SAME: (%[[T:.*]]: tensor<32xbf16>
func.func @held(%t: tensor<32xbf16> {train.role = "frozen", train.name = "t", train.model_type = f32},
                %u: tensor<16xf32> {train.role = "param", train.name = "u"},
                %ids: tensor<2xi64> {train.role = "input", train.name = "ids"})
    -> (tensor<2x4xf32> {train.role = "output", train.name = "y"}) {
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %table = train.reshape %t : (tensor<32xbf16>) -> tensor<8x4xbf16>
  // CHECK: %[[WIDE:.*]] = train.convert %{{.*}} : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  // CHECK: %[[HELD:.*]] = train.convert %[[WIDE]] : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %wide = train.convert %table : (tensor<8x4xbf16>) -> tensor<8x4xf32>
  // CHECK: train.gather_rows %[[HELD]], %{{.*}} -> tensor<2x4xbf16>
  %x = train.gather_rows %wide, %ids : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// What such a product makes stays f32, also where its rows are added up and repeated, and where data choose among it: the
// weights of the experts that are chosen.

// CHECK-LABEL: func.func @renorm
// CHECK-SAME: (%[[R:.*]]: tensor<4x4xf32>
func.func @renorm(%r: tensor<4x4xf32> {train.role = "param", train.name = "r", train.compute_type = f32},
                  %u: tensor<16xf32> {train.role = "param", train.name = "u"},
                  %x: tensor<2x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<4x2xf32> {train.role = "output", train.name = "y"}, tensor<2x2xf32> {train.role = "output", train.name = "z"}) {
  %uw = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %h = train.dot_general %x, %uw {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %l = train.dot_general %r, %h {compute_type = f32, lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x4xf32>, tensor<2x4xf32>) -> tensor<4x2xf32>
  %p = train.softmax %l {dim = 0 : i64} : tensor<4x2xf32>
  %order = train.sort_indices %p {descending, dim = 0 : i64} : (tensor<4x2xf32>) -> tensor<4x2xi64>
  %first = train.slice %order {starts = array<i64: 0, 0>, limits = array<i64: 4, 1>, strides = array<i64: 1, 1>} : (tensor<4x2xi64>) -> tensor<4x1xi64>
  %rows = train.reshape %first : (tensor<4x1xi64>) -> tensor<4xi64>
  // CHECK: %[[G:.*]] = train.gather_rows %{{.*}}, %{{.*}} -> tensor<4x2xf32>
  %g = train.gather_rows %p, %rows : (tensor<4x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>
  // CHECK: %[[SUM:.*]] = train.reduce sum, %[[G]]
  %sum = train.reduce sum, %g {dimensions = array<i64: 1>} : (tensor<4x2xf32>) -> tensor<4xf32>
  // CHECK: %[[REPEATED:.*]] = train.broadcast %[[SUM]]
  %repeated = train.broadcast %sum {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x2xf32>
  // CHECK: %[[Q:.*]] = train.div %[[G]], %[[REPEATED]] : tensor<4x2xf32>
  // CHECK-NEXT: %[[Y:.*]] = train.softmax %[[Q]] {{.*}} : tensor<4x2xf32>
  %q = train.div %g, %repeated : tensor<4x2xf32>
  %y = train.softmax %q {dim = 1 : i64} : tensor<4x2xf32>
  // A product that reads no such parameter is one in bf16.
  // CHECK: train.dot_general {{.*}} -> tensor<2x2xbf16>
  %z = train.dot_general %y, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  return %y, %z : tensor<4x2xf32>, tensor<2x2xf32>
}

// -----

// What is no data is not rounded before it meets what is: a norm and a softmax of numbers, rows of them repeated.

// CHECK-LABEL: func.func @neutral
func.func @neutral(%u: tensor<16xf32> {train.role = "param", train.name = "u"},
                   %x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output", train.name = "y"}) {
  %uw = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %count = train.iota {dim = 0 : i64} : tensor<4x4xi64>
  %float = train.convert %count : (tensor<4x4xi64>) -> tensor<4x4xf32>
  // CHECK: train.iota
  // CHECK-NOT: bf16
  // CHECK: train.layer_norm rms, %{{.*}} -> (tensor<4x4xf32>
  %n, %mean, %rstd = train.layer_norm rms, %float {epsilon = 1.0e-5 : f64} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
  %sum = train.reduce sum, %n {dimensions = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
  %repeated = train.broadcast %sum {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[S:.*]] = train.softmax {{.*}} : tensor<4x4xf32>
  %s = train.softmax %repeated {dim = 0 : i64} : tensor<4x4xf32>
  // CHECK: %[[N:.*]] = train.convert %[[S]] : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  // CHECK: train.dot_general %{{.*}}, %[[N]] {{.*}} -> tensor<4x4xbf16>
  %h = train.dot_general %uw, %s {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = train.mul %h, %x : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A weight that becomes 8 bits stays f32 until then; what it meets is rounded as ever.

// CHECK-LABEL: func.func @scaling
// CHECK-SAME: %[[X:.*]]: tensor<2x16xf32> {{.*}}, %[[W:.*]]: tensor<32x16xf32>
func.func @scaling(%x: tensor<2x16xf32> {train.role = "input", train.name = "x"},
                   %w: tensor<32x16xf32> {train.role = "param", train.name = "w", train.compute_type = f8E4M3FN})
    -> (tensor<2x32xf32> {train.role = "output", train.name = "y"}) {
  // CHECK: %[[XN:.*]] = train.convert %[[X]] : (tensor<2x16xf32>) -> tensor<2x16xbf16>
  // CHECK: train.dot_general %[[XN]], %[[W]] {{.*}} scaling = #train.scaling<rowwise, activation, weight>} : (tensor<2x16xbf16>, tensor<32x16xf32>) -> tensor<2x32xbf16>
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<2x16xf32>, tensor<32x16xf32>) -> tensor<2x32xf32>
  %y = train.tanh %0 : tensor<2x32xf32>
  return %y : tensor<2x32xf32>
}

// -----

// A scale of each channel, of statistics and a parameter, is read in many places, and stays f32; what it scales is kept in
// bf16.
// CHECK-LABEL: func.func @scale_of_channels
// CHECK: %[[RSTD:.*]] = train.rsqrt
// CHECK: %[[SCALE:.*]] = train.mul %[[RSTD]], %{{.*}} : tensor<4xf32>
// CHECK-NEXT: train.broadcast %[[SCALE]] {{.*}} : (tensor<4xf32>) -> tensor<64x4xf32>
func.func @scale_of_channels(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<64x4xf32> {train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}, tensor<64x4xf32>) {
  %square = train.mul %x, %x : tensor<64x4xf32>
  %sum = train.reduce sum, %square {dimensions = array<i64: 0>} : (tensor<64x4xf32>) -> tensor<4xf32>
  %rstd = train.rsqrt %sum : tensor<4xf32>
  %scale = train.mul %rstd, %w : tensor<4xf32>
  %each = train.broadcast %scale {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<64x4xf32>
  %y = train.mul %x, %each : tensor<64x4xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<64x4xf32>) -> tensor<f32>
  %back = train.mul %y, %each {train.backward} : tensor<64x4xf32>
  return %loss, %back : tensor<f32>, tensor<64x4xf32>
}

// -----

// What is kept of values whose distance from their mean the backward pass reads are the values: distances that were rounded
// would err by the same between two powers of two.
// CHECK-LABEL: func.func @centred
// CHECK: %[[KEPT:.*]] = train.convert %{{.*}} : (tensor<64x4xf32>) -> tensor<64x4xbf16>
// CHECK: %[[WIDE:.*]] = train.convert %[[KEPT]] : (tensor<64x4xbf16>) -> tensor<64x4xf32>
// CHECK: %[[CENTRED:.*]] = train.sub %{{.*}}, %{{.*}} : tensor<64x4xf32>
// CHECK-NEXT: %[[SQUARE:.*]] = train.mul %[[CENTRED]], %[[CENTRED]] : tensor<64x4xf32>
// CHECK: train.mul %{{.*}}, %[[CENTRED]] {train.backward} : tensor<64x4xf32>
func.func @centred(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<64x4xf32> {train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}, tensor<64x4xf32>) {
  %each = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<64x4xf32>
  %h = train.mul %x, %each : tensor<64x4xf32>
  %sum = train.reduce sum, %h {dimensions = array<i64: 0>} : (tensor<64x4xf32>) -> tensor<4xf32>
  %mean = train.broadcast %sum {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<64x4xf32>
  %centred = train.sub %h, %mean : tensor<64x4xf32>
  %square = train.mul %centred, %centred : tensor<64x4xf32>
  %loss = train.reduce sum, %square {dimensions = array<i64: 0, 1>} : (tensor<64x4xf32>) -> tensor<f32>
  %two = train.broadcast %loss {broadcast_dimensions = array<i64>, train.backward} : (tensor<f32>) -> tensor<64x4xf32>
  %back = train.mul %two, %centred {train.backward} : tensor<64x4xf32>
  return %loss, %back : tensor<f32>, tensor<64x4xf32>
}
