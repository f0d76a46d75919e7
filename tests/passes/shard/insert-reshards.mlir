// RUN: tessera-opt %s --propagate-sharding --insert-reshards --verify-sharding | FileCheck %s

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// A partial sum is reduced once, before its first use that is not linear, and shared.
// CHECK-LABEL: func @reduce_once
// CHECK: %[[S:.*]] = train.reduce sum
// CHECK: %[[R:.*]] = dist.reshard %[[S]] <[], unreduced = {"shard"}> to <[]>
// CHECK: %[[E:.*]] = train.exp %[[R]]
// CHECK-NOT: dist.reshard
// CHECK: train.sqrt %[[R]]
func.func @reduce_once(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> (tensor<f32>, tensor<f32>) {
  %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %e = train.exp %s : tensor<f32>
  %q = train.sqrt %s : tensor<f32>
  return %e, %q : tensor<f32>, tensor<f32>
}

// A result is reduced as its function says, under its name.
// CHECK-LABEL: func @result
// CHECK: dist.reshard %{{.*}} <[], unreduced = {"shard"}> to <[]> {{.*}}origin = #dist.origin<result, ["loss"]>
func.func @result(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> (tensor<f32> {train.role = "loss", dist.sharding = #dist.sharding<[]>}) {
  %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// Constraints with different origins stay apart; one that changes nothing disappears.
// CHECK-LABEL: func @constrain
// CHECK-DAG: dist.reshard %arg0 <[{"shard"}]> to <[{}]> {{.*}}origin = #dist.origin<forward, ["u"]>
// CHECK-DAG: dist.reshard %arg0 <[{"shard"}]> to <[{}]> {{.*}}origin = #dist.origin<backward, ["u"]>
// CHECK-NOT: dist.reshard
// CHECK-NOT: dist.constrain
func.func @constrain(%u: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %f = dist.constrain %u <[{}]> {origin = #dist.origin<forward, ["u"]>} : tensor<8xf32>
  %b = dist.constrain %u <[{}]> {origin = #dist.origin<backward, ["u"]>} : tensor<8xf32>
  %n = dist.constrain %b <[{}]> {origin = #dist.origin<result, ["again"]>} : tensor<8xf32>
  return %f, %n : tensor<8xf32>, tensor<8xf32>
}

// A splat is made again, not resharded.
// CHECK-LABEL: func @splat
// CHECK: train.constant {dist.shardings = [#dist.sharding<[{"shard"}]>]} dense<1.0
// CHECK-NOT: dist.reshard
func.func @splat(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> tensor<8xf32> {
  %one = train.constant dense<1.0> : tensor<8xf32>
  %y = train.add %x, %one : tensor<8xf32>
  return %y : tensor<8xf32>
}

// What a region takes from above is changed once, outside.
// CHECK-LABEL: func @outside
// CHECK: %[[G:.*]] = dist.reshard %arg1
// CHECK: train.accumulate
// CHECK-NOT: dist.reshard
func.func @outside(%x: tensor<2x8xi32>, %u: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> tensor<8xi32> {
  %s = train.accumulate %x {count = 2 : i64} : (tensor<2x8xi32>) -> tensor<8xi32> {
  ^bb0(%i: tensor<i64>, %m: tensor<8xi32>):
    %p = train.sort_indices %u {dim = 0 : i64} : (tensor<8xf32>) -> tensor<8xi32>
    %q = train.mul %m, %p : tensor<8xi32>
    train.yield %q : tensor<8xi32>
  }
  return %s : tensor<8xi32>
}
}
