// RUN: tessera-opt %s --propagate-sharding | FileCheck %s

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// What nothing decides is decided by its users: the broadcast scalar, the random numbers, and the constant that stays
// whole until it is used.
// CHECK-LABEL: func @backward
func.func @backward(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"replicate", "shard"}, {}]>}, %c: tensor<f32>, %seed: tensor<i64>) -> tensor<8x4xf32> {
  // CHECK: train.broadcast {{.*}}dist.shardings = [#dist.sharding<[{"replicate", "shard"}, {}]>]
  %b = train.broadcast %c {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<8x4xf32>
  // CHECK: train.rng_uniform {{.*}}dist.shardings = [#dist.sharding<[{"replicate", "shard"}, {}]>]
  %r = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<8x4xf32>
  // CHECK: train.constant {dist.shardings = [#dist.sharding<[{}, {}]>]}
  %half = train.constant dense<0.5> : tensor<8x4xf32>
  %keep = train.compare lt, %r, %half : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %y = train.mul %x, %b : tensor<8x4xf32>
  %z = train.select %keep, %y, %half : tensor<8x4xi1>, tensor<8x4xf32>
  return %z : tensor<8x4xf32>
}

// A user that needs the value whole keeps it whole.
// CHECK-LABEL: func @objection
func.func @objection(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}, %c: tensor<f32>) -> (tensor<8xi32>, tensor<8xf32>) {
  // CHECK: train.broadcast {{.*}}dist.shardings = [#dist.sharding<[{}]>]
  %b = train.broadcast %c {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<8xf32>
  %s = train.sort_indices %b {dim = 0 : i64} : (tensor<8xf32>) -> tensor<8xi32>
  %y = train.mul %x, %b : tensor<8xf32>
  return %s, %y : tensor<8xi32>, tensor<8xf32>
}

// Regions: a micro-batch loses the counting dimension, sums over iterations stay unreduced.
// CHECK-LABEL: func @accumulate
func.func @accumulate(%x: tensor<3x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}) -> tensor<f32> {
  // CHECK: train.accumulate {{.*}}dist.shardings = [#dist.sharding<[], unreduced = {"shard"}>]
  %s = train.accumulate %x {count = 3 : i64} : (tensor<3x8xf32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %m: tensor<8xf32>):
    // CHECK: train.exp {{.*}}dist.shardings = [#dist.sharding<[{"shard"}]>]
    %e = train.exp %m : tensor<8xf32>
    %r = train.reduce sum, %e {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    train.yield %r : tensor<f32>
  }
  return %s : tensor<f32>
}

// Grouped heads: the heads of the keys carry the axis, not the size of a group.
// CHECK-LABEL: func @heads
func.func @heads(%q: tensor<2x8x4x4xf32> {dist.sharding = #dist.sharding<[{"replicate"}, {"shard"}, {}, {}]>}, %k: tensor<2x4x4x4xf32>) -> tensor<2x8x4x4xf32> {
  // CHECK: train.attention {{.*}}dist.shardings = [#dist.sharding<[{"replicate"}, {"shard"}, {}, {}]>, #dist.sharding<[{"replicate"}, {"shard"}, {}]>]
  %o, %lse = train.attention %q, %k, %k {scale = 0.5, causal} : (tensor<2x8x4x4xf32>, tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>) -> (tensor<2x8x4x4xf32>, tensor<2x8x4xf32>)
  return %o : tensor<2x8x4x4xf32>
}
}
