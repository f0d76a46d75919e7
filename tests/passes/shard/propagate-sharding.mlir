// RUN: tessera-opt %s --propagate-sharding | FileCheck %s

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// A batch flows forward; a sum over it is unreduced, and stays so through linear ops.
// CHECK-LABEL: func @forward
// CHECK-SAME: -> (tensor<f32> {dist.sharding = #dist.sharding<[]>})
func.func @forward(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %w: tensor<4x2xf32>) -> tensor<f32> {
  // CHECK: train.dot_general {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}]>]
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  // CHECK: train.reduce sum{{.*}}dist.shardings = [#dist.sharding<[], unreduced = {"shard"}>]
  %s = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<8x2xf32>) -> tensor<f32>
  // CHECK: train.neg {{.*}}dist.shardings = [#dist.sharding<[], unreduced = {"shard"}>]
  %n = train.neg %s : tensor<f32>
  // CHECK: train.exp {{.*}}dist.shardings = [#dist.sharding<[]>]
  %e = train.exp %n : tensor<f32>
  return %e : tensor<f32>
}

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

// The major factor of merged dimensions carries the axis both ways.
// CHECK-LABEL: func @reshape
func.func @reshape(%x: tensor<8x6x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {}]>}) -> tensor<2x2x48xf32> {
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}]>]
  %a = train.reshape %x : (tensor<8x6x4xf32>) -> tensor<48x4xf32>
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}, {}]>]
  %b = train.reshape %a : (tensor<48x4xf32>) -> tensor<8x3x8xf32>
  // Two and two of "shard" cannot be told apart: an axis is not split.
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{}, {}, {}]>]
  %c = train.reshape %b : (tensor<8x3x8xf32>) -> tensor<2x2x48xf32>
  return %c : tensor<2x2x48xf32>
}

// A minor factor carries the axis inside of blocks: of 5, then of 2 where the dimension is cut there. A result has one range per rank, or is whole.
// CHECK-LABEL: func @blocks
// CHECK-SAME: -> (tensor<40xf32> {dist.sharding = #dist.sharding<[{}]>}, tensor<5x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>})
func.func @blocks(%x: tensor<5x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}, %z: tensor<10x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}) -> (tensor<40xf32>, tensor<5x8xf32>) {
  // CHECK: train.reshape %arg0 {dist.shardings = [#dist.sharding<[{5, "shard"}]>]}
  %a = train.reshape %x : (tensor<5x8xf32>) -> tensor<40xf32>
  // CHECK: train.iota {{.*}}dist.shardings = [#dist.sharding<[{5, "shard"}]>]
  %i = train.iota {dim = 0 : i64} : tensor<40xf32>
  // CHECK: train.add {{.*}}dist.shardings = [#dist.sharding<[{5, "shard"}]>]
  %b = train.add %a, %i : tensor<40xf32>
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{}, {"shard"}]>]
  %c = train.reshape %b : (tensor<40xf32>) -> tensor<5x8xf32>
  // CHECK: train.reshape %arg1 {dist.shardings = [#dist.sharding<[{10, "shard"}]>]}
  %d = train.reshape %z : (tensor<10x8xf32>) -> tensor<80xf32>
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{}, {2, "shard"}]>]
  %e = train.reshape %d : (tensor<80xf32>) -> tensor<5x16xf32>
  // What is no part of a factor cannot be split: 4 rows of 10 are no rows of 8.
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{}, {}]>]
  %f = train.reshape %b : (tensor<40xf32>) -> tensor<4x10xf32>
  return %b, %c : tensor<40xf32>, tensor<5x8xf32>
}

// Sums of partial sums are partial sums; zeros are their own.
// CHECK-LABEL: func @gradient
func.func @gradient(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %b: tensor<4xf32>, %i: tensor<8xi32> {dist.sharding = #dist.sharding<[{"shard"}]>})
    -> (tensor<8xf32>, tensor<4xf32>, tensor<10x4xf32> {dist.sharding = #dist.sharding<[{}, {}]>}) {
  %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8x4xf32>) -> tensor<4xf32>
  %zero = train.constant dense<0.0> : tensor<4xf32>
  // CHECK: train.concat {{.*}}dist.shardings = [#dist.sharding<[{}], unreduced = {"shard"}>]
  %g = train.concat %s, %zero {dim = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  // CHECK: train.add {{.*}}dist.shardings = [#dist.sharding<[{}]>]
  %a = train.add %s, %b : tensor<4xf32>
  %init = train.constant dense<0.0> : tensor<10x4xf32>
  // CHECK: train.scatter_add_rows {{.*}}dist.shardings = [#dist.sharding<[{}, {}], unreduced = {"shard"}>]
  %e = train.scatter_add_rows %init, %i, %x : (tensor<10x4xf32>, tensor<8xi32>, tensor<8x4xf32>) -> tensor<10x4xf32>
  return %g, %a, %e : tensor<8xf32>, tensor<4xf32>, tensor<10x4xf32>
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
