// A two-layer perceptron with bias, cross-entropy, global-norm clipping and AdamW on two flat units: forward, backward and
// update. The whole step on one rank.

module attributes {dist.mesh = #dist.mesh<shard = 1>} {
func.func @step(
    %u0: tensor<48xf32> {train.role = "param", train.name = "u0"},
    %u1: tensor<24xf32> {train.role = "param", train.name = "u1"},
    %m0: tensor<48xf32> {train.role = "state", train.name = "u0.m", train.of = "u0"},
    %v0: tensor<48xf32> {train.role = "state", train.name = "u0.v", train.of = "u0"},
    %m1: tensor<24xf32> {train.role = "state", train.name = "u1.m", train.of = "u1"},
    %v1: tensor<24xf32> {train.role = "state", train.name = "u1.v", train.of = "u1"},
    %x: tensor<12x4xf32> {train.role = "input", train.name = "x"},
    %t: tensor<12xi32> {train.role = "target", train.name = "targets"},
    %lr: tensor<f32> {train.role = "hyper", train.name = "lr"},
    %c1: tensor<f32> {train.role = "hyper", train.name = "bias_correction1"},
    %c2: tensor<f32> {train.role = "hyper", train.name = "bias_correction2"})
    -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "metric", train.name = "grad_norm"},
        tensor<48xf32> {train.alias = 0 : i64}, tensor<24xf32> {train.alias = 1 : i64},
        tensor<48xf32> {train.alias = 2 : i64}, tensor<48xf32> {train.alias = 3 : i64},
        tensor<24xf32> {train.alias = 4 : i64}, tensor<24xf32> {train.alias = 5 : i64}) {
  %w1f = train.slice %u0 {starts = array<i64: 0>, limits = array<i64: 32>, strides = array<i64: 1>} : (tensor<48xf32>) -> tensor<32xf32>
  %w1 = train.reshape %w1f : (tensor<32xf32>) -> tensor<4x8xf32>
  %b1 = train.slice %u0 {starts = array<i64: 32>, limits = array<i64: 40>, strides = array<i64: 1>} : (tensor<48xf32>) -> tensor<8xf32>
  %w2 = train.reshape %u1 : (tensor<24xf32>) -> tensor<8x3xf32>
  %h0 = train.dot_general %x, %w1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<12x4xf32>, tensor<4x8xf32>) -> tensor<12x8xf32>
  %bb = train.broadcast %b1 {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<12x8xf32>
  %h1 = train.add %h0, %bb : tensor<12x8xf32>
  %h = train.tanh %h1 : tensor<12x8xf32>
  %y = train.dot_general %h, %w2 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<12x8xf32>, tensor<8x3xf32>) -> tensor<12x3xf32>
  %rows, %lse = train.cross_entropy %y, %t {ignore_index = -1 : i64} : (tensor<12x3xf32>, tensor<12xi32>) -> (tensor<12xf32>, tensor<12xf32>)
  %sum = train.reduce sum, %rows {dimensions = array<i64: 0>} : (tensor<12xf32>) -> tensor<f32>
  %count = train.count_valid %t {ignore_index = -1 : i64} : (tensor<12xi32>) -> tensor<f32>
  %loss = train.div %sum, %count : tensor<f32>

  %one = train.constant {train.backward} dense<1.0> : tensor<f32>
  %inv = train.div %one, %count {train.backward} : tensor<f32>
  %lseb = train.broadcast %lse {broadcast_dimensions = array<i64: 0>, train.backward} : (tensor<12xf32>) -> tensor<12x3xf32>
  %shift = train.sub %y, %lseb {train.backward} : tensor<12x3xf32>
  %p = train.exp %shift {train.backward} : tensor<12x3xf32>
  %classes = train.iota {dim = 1 : i64, train.backward} : tensor<12x3xi32>
  %tb = train.broadcast %t {broadcast_dimensions = array<i64: 0>, train.backward} : (tensor<12xi32>) -> tensor<12x3xi32>
  %hit = train.compare eq, %classes, %tb {train.backward} : (tensor<12x3xi32>, tensor<12x3xi32>) -> tensor<12x3xi1>
  %hot = train.convert %hit {train.backward} : (tensor<12x3xi1>) -> tensor<12x3xf32>
  %diff = train.sub %p, %hot {train.backward} : tensor<12x3xf32>
  %none = train.constant {train.backward} dense<-1> : tensor<12x3xi32>
  %valid = train.compare ne, %tb, %none {train.backward} : (tensor<12x3xi32>, tensor<12x3xi32>) -> tensor<12x3xi1>
  %zero = train.constant {train.backward} dense<0.0> : tensor<12x3xf32>
  %masked = train.select %valid, %diff, %zero {train.backward} : tensor<12x3xi1>, tensor<12x3xf32>
  %scale = train.broadcast %inv {broadcast_dimensions = array<i64>, train.backward} : (tensor<f32>) -> tensor<12x3xf32>
  %dy = train.mul %masked, %scale {train.backward} : tensor<12x3xf32>
  %dw2 = train.dot_general %h, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, train.backward} : (tensor<12x8xf32>, tensor<12x3xf32>) -> tensor<8x3xf32>
  %g1 = train.reshape %dw2 {train.backward} : (tensor<8x3xf32>) -> tensor<24xf32>
  %dh = train.dot_general %dy, %w2 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, train.backward} : (tensor<12x3xf32>, tensor<8x3xf32>) -> tensor<12x8xf32>
  %hh = train.mul %h, %h {train.backward} : tensor<12x8xf32>
  %ones = train.constant {train.backward} dense<1.0> : tensor<12x8xf32>
  %dt = train.sub %ones, %hh {train.backward} : tensor<12x8xf32>
  %dh1 = train.mul %dh, %dt {train.backward} : tensor<12x8xf32>
  %db1 = train.reduce sum, %dh1 {dimensions = array<i64: 0>, train.backward} : (tensor<12x8xf32>) -> tensor<8xf32>
  %dw1 = train.dot_general %x, %dh1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, train.backward} : (tensor<12x4xf32>, tensor<12x8xf32>) -> tensor<4x8xf32>
  %dw1f = train.reshape %dw1 {train.backward} : (tensor<4x8xf32>) -> tensor<32xf32>
  %pad = train.constant {train.backward} dense<0.0> : tensor<8xf32>
  %g0 = train.concat %dw1f, %db1, %pad {dim = 0 : i64, train.backward} : (tensor<32xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<48xf32>

  %s0 = train.mul %g0, %g0 : tensor<48xf32>
  %q0 = train.reduce sum, %s0 {dimensions = array<i64: 0>} : (tensor<48xf32>) -> tensor<f32>
  %s1 = train.mul %g1, %g1 : tensor<24xf32>
  %q1 = train.reduce sum, %s1 {dimensions = array<i64: 0>} : (tensor<24xf32>) -> tensor<f32>
  %q = train.add %q0, %q1 : tensor<f32>
  %norm = train.sqrt %q : tensor<f32>
  %max = train.constant dense<0.5> : tensor<f32>
  %eps = train.constant dense<1.0e-06> : tensor<f32>
  %den = train.add %norm, %eps : tensor<f32>
  %ratio = train.div %max, %den : tensor<f32>
  %limit = train.compare lt, %ratio, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %clip = train.select %limit, %ratio, %one : tensor<i1>, tensor<f32>
  %n0:3 = train.adamw_update %u0, %m0, %v0, %g0 lr(%lr) correction(%c1, %c2) scale(%clip) {beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-08, weight_decay = 0.1, decay_elements = 32 : i64, train.unit = "u0"} : (tensor<48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<48xf32>, tensor<48xf32>, tensor<48xf32>)
  %n1:3 = train.adamw_update %u1, %m1, %v1, %g1 lr(%lr) correction(%c1, %c2) scale(%clip) {beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-08, weight_decay = 0.1, decay_elements = 24 : i64, train.unit = "u1"} : (tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<24xf32>, tensor<24xf32>, tensor<24xf32>)
  return %loss, %norm, %n0#0, %n1#0, %n0#1, %n0#2, %n1#1, %n1#2 : tensor<f32>, tensor<f32>, tensor<48xf32>, tensor<24xf32>, tensor<48xf32>, tensor<48xf32>, tensor<24xf32>, tensor<24xf32>
}
}
