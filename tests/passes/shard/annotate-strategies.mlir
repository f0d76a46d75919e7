// What the strategies between ddp and zero3 say: one gather per step, outside of the loop over micro-batches, and where
// gradients are scattered.
// RUN: tessera-opt %s --annotate-sharding=strategy=zero1 | FileCheck %s --check-prefixes=CHECK,ONCE,ZERO1
// RUN: tessera-opt %s --annotate-sharding=strategy=zero2 | FileCheck %s --check-prefixes=CHECK,ONCE,ZERO2
// RUN: tessera-opt %s --annotate-sharding="strategy=zero3 keep-gathered=^u$" | FileCheck %s --check-prefixes=CHECK,ONCE,ZERO2
// RUN: tessera-opt %s --annotate-sharding="strategy=hsdp" | FileCheck %s --check-prefixes=CHECK,HSDP

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2>} {
// CHECK-LABEL: func @step
// CHECK-SAME: %[[U:arg0]]: tensor<4xf32> {dist.sharding = #dist.sharding<[{"shard"}]>
// CHECK-SAME: %[[M:arg1]]: tensor<4xf32> {dist.sharding = #dist.sharding<[{"shard"}]>
// ONCE: %[[G:.*]] = dist.constrain %[[U]] <[{}]> {origin = #dist.origin<step, ["u"]>}
// ONCE-NOT: dist.constrain %[[U]]
// CHECK: train.accumulate
// HSDP: dist.constrain %[[U]] <[{}]> {origin = #dist.origin<forward, ["u"]>}
// ONCE: train.mul %{{.*}}, %[[G]] : tensor<4xf32>
// HSDP: dist.constrain %[[U]] <[{}]> {origin = #dist.origin<backward, ["u"]>, train.backward}
// CHECK: %[[P:.*]] = train.mul %{{.*}} {train.backward}
// ZERO1: train.yield %{{.*}}, %[[P]]
// ZERO2: %[[S:.*]] = dist.constrain %[[P]] <[{"shard"}], unreduced = {"replicate"}> {origin = #dist.origin<gradient, ["u"]>
// ZERO2: train.yield %{{.*}}, %[[S]]
// HSDP: %[[S:.*]] = dist.constrain %[[P]] <[{"shard"}], unreduced = {"replicate"}> {origin = #dist.origin<gradient, ["u"]>
// CHECK: %[[R:.*]] = dist.constrain %{{.*}} <[{"shard"}]> {origin = #dist.origin<gradient, ["u"]>
// CHECK: train.sgd_update %[[U]], %[[R]] buffer(%[[M]])
func.func @step(%u: tensor<4xf32> {train.role = "param", train.name = "u"},
                %m: tensor<4xf32> {train.role = "state", train.name = "u.m", train.of = "u", train.state = "momentum"},
                %x: tensor<3x4xf32> {train.role = "input", train.name = "x"},
                %lr: tensor<f32> {train.role = "hyper", train.name = "lr"})
    -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.alias = 0 : i64}, tensor<4xf32> {train.alias = 1 : i64}) {
  %loss, %g = train.accumulate %x {count = 3 : i64} : (tensor<3x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %b: tensor<4xf32>):
    %y = train.mul %b, %u : tensor<4xf32>
    %l = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    %p = train.mul %b, %u {train.backward} : tensor<4xf32>
    train.yield %l, %p : tensor<f32>, tensor<4xf32>
  }
  %new:2 = train.sgd_update %u, %g buffer(%m) lr(%lr) {momentum = 0.9, weight_decay = 0.0, decay_elements = 0 : i64, train.unit = "u"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %new#0, %new#1 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
}
