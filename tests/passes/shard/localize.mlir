// RUN: tessera-opt %s --propagate-sharding --insert-reshards --localize --verify-sharding -split-input-file | FileCheck %s
// RUN: tessera-opt %s --propagate-sharding --insert-reshards --verify-sharding -split-input-file | FileCheck %s --check-prefix=GLOBAL
// GLOBAL: dist.reshard

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// CHECK-LABEL: func @gather
// CHECK-SAME: %arg0: tensor<2xf32> {dist.global = tensor<8xf32>, dist.sharding = #dist.sharding<[{"shard"}]>}
// CHECK-SAME: -> (tensor<8xf32> {dist.global = tensor<8xf32>
// CHECK: dist.all_gather %arg0 {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["u"]>} : (tensor<2xf32>) -> tensor<8xf32>
func.func @gather(%u: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> (tensor<8xf32> {dist.sharding = #dist.sharding<[{}]>}) {
  %f = dist.constrain %u <[{}]> {origin = #dist.origin<forward, ["u"]>} : tensor<8xf32>
  return %f : tensor<8xf32>
}

// A partial sum over both axes is scattered over one and added up over the other, the small part last.
// CHECK-LABEL: func @scatter
// CHECK: %[[S:.*]] = train.reduce sum, %{{.*}} : (tensor<1x4xf32>) -> tensor<4xf32>
// CHECK: %[[R:.*]] = dist.reduce_scatter %[[S]] {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["u"]>} : (tensor<4xf32>) -> tensor<1xf32>
// CHECK: dist.all_reduce %[[R]] {axes = ["replicate"], origin = #dist.origin<gradient, ["u"]>} : (tensor<1xf32>)
func.func @scatter(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"replicate", "shard"}, {}]>}) -> (tensor<4xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) {
  %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8x4xf32>) -> tensor<4xf32>
  %g = dist.constrain %s <[{"shard"}]> {origin = #dist.origin<gradient, ["u"]>} : tensor<4xf32>
  return %g : tensor<4xf32>
}

// Ranks add up in the type that the constraint names; what follows is in the value's own.
// CHECK-LABEL: func @narrow
// GLOBAL: dist.reshard {{.*}}origin = #dist.origin<gradient, ["u"]>, reduce_type = bf16}
// CHECK: %[[N:.*]] = train.convert %{{.*}} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK: %[[R:.*]] = dist.all_reduce %[[N]] {{.*}} : (tensor<4xbf16>) -> tensor<4xbf16>
// CHECK: train.convert %[[R]] : (tensor<4xbf16>) -> tensor<4xf32>
func.func @narrow(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<4xf32> {dist.sharding = #dist.sharding<[{}]>}) {
  %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8x4xf32>) -> tensor<4xf32>
  %g = dist.constrain %s <[{}]> {origin = #dist.origin<gradient, ["u"]>, reduce_type = bf16} : tensor<4xf32>
  return %g : tensor<4xf32>
}

// Other dimensions are moved to the front and back.
// CHECK-LABEL: func @inner
// CHECK: %[[T:.*]] = train.transpose %arg0 {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
// CHECK: %[[G:.*]] = dist.all_gather %[[T]] {axes = ["shard"], dim = 0 : i64} : (tensor<2x3xf32>) -> tensor<8x3xf32>
// CHECK: train.transpose %[[G]] {permutation = array<i64: 1, 0>} : (tensor<8x3xf32>) -> tensor<3x8xf32>
func.func @inner(%x: tensor<3x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}) -> tensor<3x8xi32> {
  %y = train.sort_indices %x {dim = 1 : i64} : (tensor<3x8xf32>) -> tensor<3x8xi32>
  return %y : tensor<3x8xi32>
}

// What each rank gets lies together, and so does what each one sends.
// CHECK-LABEL: func @exchange
// CHECK: %[[P:.*]] = train.reshape %arg0 : (tensor<1x8xf32>) -> tensor<1x1x4x2xf32>
// CHECK: %[[T:.*]] = train.transpose %[[P]] {permutation = array<i64: 2, 0, 1, 3>} : (tensor<1x1x4x2xf32>) -> tensor<4x1x1x2xf32>
// CHECK: %[[M:.*]] = train.reshape %[[T]] : (tensor<4x1x1x2xf32>) -> tensor<4x1x2xf32>
// CHECK: %[[E:.*]] = dist.all_to_all %[[M]] {axes = ["shard"], concat_dim = 0 : i64, split_dim = 0 : i64} : (tensor<4x1x2xf32>) -> tensor<4x1x2xf32>
// CHECK: train.reshape {{.*}} -> tensor<4x2xf32>
// CHECK: return
func.func @exchange(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<4x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}) {
  return %x : tensor<4x8xf32>
}

// What is split inside of 3 blocks is a dimension of its own between the blocks.
// CHECK-LABEL: func @blocks
// CHECK: %[[Y:.*]] = train.reshape %arg0 : (tensor<2x3x2xf32>) -> tensor<2x6xf32>
// CHECK: %[[B:.*]] = train.reshape %[[Y]] : (tensor<2x6xf32>) -> tensor<2x3x2xf32>
// CHECK: %[[T:.*]] = train.transpose %[[B]] {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x2xf32>) -> tensor<2x2x3xf32>
// CHECK: %[[G:.*]] = dist.all_gather %[[T]] {axes = ["shard"], dim = 0 : i64} : (tensor<2x2x3xf32>) -> tensor<8x2x3xf32>
// CHECK: %[[W:.*]] = train.transpose %[[G]] {permutation = array<i64: 1, 2, 0>} : (tensor<8x2x3xf32>) -> tensor<2x3x8xf32>
// CHECK: train.reshape %[[W]] : (tensor<2x3x8xf32>) -> tensor<2x24xf32>
func.func @blocks(%x: tensor<2x3x8xf32> {dist.sharding = #dist.sharding<[{}, {}, {"shard"}]>}) -> (tensor<2x24xf32> {dist.sharding = #dist.sharding<[{}, {}]>}) {
  %y = train.reshape %x : (tensor<2x3x8xf32>) -> tensor<2x24xf32>
  return %y : tensor<2x24xf32>
}

// A replicated value that becomes a partial sum counts on the first rank only.
// CHECK-LABEL: func @mask
// CHECK: dist.axis_index {axes = ["shard"]}
// CHECK: train.select
func.func @mask(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p = dist.constrain %x <[{}], unreduced = {"shard"}> : tensor<4xf32>
  return %p : tensor<4xf32>
}

// Ops that depend on their place get an offset.
// CHECK-LABEL: func @offsets
// CHECK: %[[I:.*]] = dist.axis_index {axes = ["shard"]} : tensor<i64>
// CHECK: %[[TWO:.*]] = train.constant dense<2> : tensor<i64>
// CHECK: %[[O:.*]] = train.mul %[[I]], %[[TWO]]
// CHECK: train.iota offset(%[[O]] : tensor<i64>) {dim = 0 : i64} : tensor<2x3xf32>
// CHECK: train.iota {dim = 1 : i64} : tensor<2x3xf32>
// CHECK: train.rng_uniform %{{.*}} offsets(%{{.*}}, %{{.*}}) {global_shape = array<i64: 8, 3>, stream = 7 : i64}
// CHECK: train.slice %{{.*}} {limits = array<i64: 2, 2>, starts = array<i64: 0, 1>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
func.func @offsets(%x: tensor<8x3xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %seed: tensor<i64>) -> tensor<8x1xf32> {
  %i = train.iota {dim = 0 : i64} : tensor<8x3xf32>
  %j = train.iota {dim = 1 : i64} : tensor<8x3xf32>
  %r = train.rng_uniform %seed {stream = 7 : i64} : (tensor<i64>) -> tensor<8x3xf32>
  %a = train.add %x, %i : tensor<8x3xf32>
  %b = train.add %a, %j : tensor<8x3xf32>
  %c = train.add %b, %r : tensor<8x3xf32>
  %s = train.slice %c {starts = array<i64: 0, 1>, limits = array<i64: 8, 2>, strides = array<i64: 1, 1>} : (tensor<8x3xf32>) -> tensor<8x1xf32>
  return %s : tensor<8x1xf32>
}

// CHECK-LABEL: func @update
// CHECK: %[[I:.*]] = dist.axis_index
// CHECK: %[[O:.*]] = train.mul %[[I]]
// CHECK: train.sgd_update %arg0, %arg1 lr(%arg2) offset(%[[O]])
// CHECK-SAME: decay_elements = 6
func.func @update(%p: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}, %g: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}, %lr: tensor<f32>) -> tensor<8xf32> {
  %n = train.sgd_update %p, %g lr(%lr) {momentum = 0.0, weight_decay = 0.1, decay_elements = 6 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %n : tensor<8xf32>
}
}
