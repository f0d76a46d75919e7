// Values beside attention over documents whose positions are dealt.
module attributes {dist.mesh = #dist.mesh<seq = 1>} {
// A query of its own, whose work is not dealt.
func.func @onequery(%ids: tensor<4x16xi64> {train.dims = #train.dims<[sample, position]>, train.name = "ids", train.role = "input"},
                     %x: tensor<4x16xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %end = train.constant dense<16> : tensor<4x16xi64>
  %q = train.reshape %x : (tensor<4x16xf32>) -> tensor<4x1x16x1xf32>
  %y, %lse = train.attention %q, %q, %q keys(%ids to %end) {causal, scale = 0.5} :
    (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x16xi64>, tensor<4x16xi64>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %one = train.constant dense<1.0> : tensor<4x1x1x1xf32>
  %z, %lse2 = train.attention %one, %y, %y {scale = 0.5} :
    (tensor<4x1x1x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>) -> (tensor<4x1x1x1xf32>, tensor<4x1x1xf32>)
  %loss = train.reduce sum, %z {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x1x1x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Positions along two dimensions, one exchanged for the other.
func.func @a2a(%ids: tensor<4x16xi64> {train.dims = #train.dims<[sample, position]>, train.name = "ids", train.role = "input"},
                     %x: tensor<4x16xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %end = train.constant dense<16> : tensor<4x16xi64>
  %q = train.reshape %x : (tensor<4x16xf32>) -> tensor<4x1x16x1xf32>
  %y, %lse = train.attention %q, %q, %q keys(%ids to %end) {causal, scale = 0.5} :
    (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x16xi64>, tensor<4x16xi64>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %f = train.reshape %y : (tensor<4x1x16x1xf32>) -> tensor<4x16xf32>
  %s = train.broadcast %f {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x16xf32>) -> tensor<4x16x16xf32>
  %ia = train.iota {dim = 1 : i64} : tensor<4x16x16xi64>
  %a = train.convert %ia : (tensor<4x16x16xi64>) -> tensor<4x16x16xf32>
  %ib = train.iota {dim = 2 : i64} : tensor<4x16x16xi64>
  %b = train.convert %ib : (tensor<4x16x16xi64>) -> tensor<4x16x16xf32>
  %bb = train.mul %b, %b : tensor<4x16x16xf32>
  %c = train.add %a, %bb : tensor<4x16x16xf32>
  %e = train.mul %s, %c : tensor<4x16x16xf32>
  %t = train.transpose %e {permutation = array<i64: 0, 2, 1>} : (tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  %u = train.mul %s, %t : tensor<4x16x16xf32>
  %loss = train.reduce sum, %u {dimensions = array<i64: 0, 1, 2>} : (tensor<4x16x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// A value of positions that leaves the loop over micro-batches.
func.func @acc(%u: tensor<16xf32> {train.role = "param", train.name = "u"},
   %ids: tensor<3x4x16xi64> {train.dims = #train.dims<[micro_batch, sample, position]>, train.name = "ids", train.role = "input"},
   %x: tensor<3x4x16xf32> {train.dims = #train.dims<[micro_batch, sample, position]>, train.name = "x", train.role = "input"},
   %lr: tensor<f32> {train.role = "hyper", train.name = "lr"})
    -> (tensor<f32> {train.role = "loss"}, tensor<16xf32> {train.alias = 0 : i64}) {
  %loss, %g = train.accumulate %ids, %x {count = 3 : i64} : (tensor<3x4x16xi64>, tensor<3x4x16xf32>) -> (tensor<f32>, tensor<16xf32>) {
  ^bb0(%i: tensor<i64>, %id: tensor<4x16xi64>, %xx: tensor<4x16xf32>):
  %ub = train.broadcast %u {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<4x16xf32>
  %xu = train.add %xx, %ub : tensor<4x16xf32>
  %end = train.constant dense<16> : tensor<4x16xi64>
  %q = train.reshape %xu : (tensor<4x16xf32>) -> tensor<4x1x16x1xf32>
  %y, %lse = train.attention %q, %q, %q keys(%id to %end) {causal, scale = 0.5} :
    (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x16xi64>, tensor<4x16xi64>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %l = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x1x16x1xf32>) -> tensor<f32>
  %f = train.reshape %y {train.backward} : (tensor<4x1x16x1xf32>) -> tensor<4x16xf32>
  %p = train.reduce sum, %f {dimensions = array<i64: 0>, train.backward} : (tensor<4x16xf32>) -> tensor<16xf32>
    train.yield %l, %p : tensor<f32>, tensor<16xf32>
  }
  %new = train.sgd_update %u, %g lr(%lr) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64, train.unit = "u"} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  return %loss, %new : tensor<f32>, tensor<16xf32>
}

// Attention of two batch sizes.
func.func @h(%ids: tensor<4x16xi64> {train.dims = #train.dims<[sample, position]>, train.name = "ids", train.role = "input"},
                     %x: tensor<4x16xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %end = train.constant dense<16> : tensor<4x16xi64>
  %q = train.reshape %x : (tensor<4x16xf32>) -> tensor<4x1x16x1xf32>
  %y, %lse = train.attention %q, %q, %q keys(%ids to %end) {causal, scale = 0.5} :
    (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x16xi64>, tensor<4x16xi64>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %w = train.reshape %y : (tensor<4x1x16x1xf32>) -> tensor<8x1x8x1xf32>
  %i2 = train.reshape %ids : (tensor<4x16xi64>) -> tensor<8x8xi64>
  %e2 = train.constant dense<8> : tensor<8x8xi64>
  %z, %lse2 = train.attention %w, %w, %w keys(%i2 to %e2) {scale = 0.5} :
    (tensor<8x1x8x1xf32>, tensor<8x1x8x1xf32>, tensor<8x1x8x1xf32>, tensor<8x8xi64>, tensor<8x8xi64>) -> (tensor<8x1x8x1xf32>, tensor<8x1x8xf32>)
  %loss = train.reduce sum, %z {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<8x1x8x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
