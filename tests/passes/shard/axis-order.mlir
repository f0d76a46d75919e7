// The order in which a mesh names its axes decides a rank's position in its group, and with it the rows that the rank reads, the
// random numbers that it draws for them and its first element of an iota: one position for all.
// RUN: tessera-opt %s --annotate-sharding=strategy=ddp --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -split-input-file | FileCheck %s
// RUN: tessera-opt %s --annotate-sharding=strategy=hsdp --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -split-input-file | FileCheck %s --check-prefix=HSDP

// HSDP-LABEL: func @replicas_outside
// HSDP-SAME: %{{.*}}: tensor<2x3xf32> {dist.global = tensor<8x3xf32>, dist.sharding = #dist.sharding<[{"replicate", "shard"}, {}]>
// CHECK-LABEL: func @replicas_outside
// CHECK-SAME: %{{.*}}: tensor<2x3xf32> {dist.global = tensor<8x3xf32>, dist.sharding = #dist.sharding<[{"replicate", "shard"}, {}]>
// CHECK: %[[R:.*]] = dist.axis_index {axes = ["replicate"]}
// CHECK: %[[S:.*]] = dist.axis_index {axes = ["shard"]}
// CHECK: %[[TWO:.*]] = train.constant dense<2> : tensor<i64>
// CHECK: %[[MAJOR:.*]] = train.mul %[[R]], %[[TWO]]
// CHECK: %[[POSITION:.*]] = train.add %[[MAJOR]], %[[S]]
// CHECK: %[[FIRST:.*]] = train.mul %[[POSITION]]
// CHECK: train.rng_uniform %{{.*}} offsets(%[[FIRST]], %{{.*}}) {global_shape = array<i64: 8, 3>
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2>} {
func.func @replicas_outside(%x: tensor<8x3xf32> {train.role = "input", train.name = "x"}, %seed: tensor<i64> {train.role = "hyper", train.name = "seed"}) -> (tensor<8x3xf32> {train.role = "output"}) {
  %r = train.rng_uniform %seed {stream = 7 : i64} : (tensor<i64>) -> tensor<8x3xf32>
  %y = train.mul %x, %r : tensor<8x3xf32>
  return %y : tensor<8x3xf32>
}
}

// -----

// HSDP-LABEL: func @replicas_inside
// HSDP-SAME: %{{.*}}: tensor<2x3xf32> {dist.global = tensor<8x3xf32>, dist.sharding = #dist.sharding<[{"shard", "replicate"}, {}]>
// CHECK-LABEL: func @replicas_inside
// CHECK-SAME: %{{.*}}: tensor<2x3xf32> {dist.global = tensor<8x3xf32>, dist.sharding = #dist.sharding<[{"shard", "replicate"}, {}]>
// CHECK: %[[S:.*]] = dist.axis_index {axes = ["shard"]}
// CHECK: %[[R:.*]] = dist.axis_index {axes = ["replicate"]}
// CHECK: %[[TWO:.*]] = train.constant dense<2> : tensor<i64>
// CHECK: %[[MAJOR:.*]] = train.mul %[[S]], %[[TWO]]
// CHECK: %[[POSITION:.*]] = train.add %[[MAJOR]], %[[R]]
// CHECK: %[[FIRST:.*]] = train.mul %[[POSITION]]
// CHECK: train.rng_uniform %{{.*}} offsets(%[[FIRST]], %{{.*}}) {global_shape = array<i64: 8, 3>
module attributes {dist.mesh = #dist.mesh<shard = 2, replicate = 2>} {
func.func @replicas_inside(%x: tensor<8x3xf32> {train.role = "input", train.name = "x"}, %seed: tensor<i64> {train.role = "hyper", train.name = "seed"}) -> (tensor<8x3xf32> {train.role = "output"}) {
  %r = train.rng_uniform %seed {stream = 7 : i64} : (tensor<i64>) -> tensor<8x3xf32>
  %y = train.mul %x, %r : tensor<8x3xf32>
  return %y : tensor<8x3xf32>
}
}
