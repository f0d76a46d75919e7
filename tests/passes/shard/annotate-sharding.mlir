// RUN: tessera-opt %s --annotate-sharding=strategy=zero3 -split-input-file -verify-diagnostics | FileCheck %s --check-prefixes=CHECK,ZERO3
// RUN: tessera-opt %s --annotate-sharding=strategy=ddp -split-input-file | FileCheck %s --check-prefixes=CHECK,DDP

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2>} {
// One gather for forward, one for backward; what both phases read of the unit is made twice.
// CHECK-LABEL: func @gathers
// ZERO3-SAME: %[[U:arg0]]: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>
// DDP-SAME: %[[U:arg0]]: tensor<8xf32> {dist.sharding = #dist.sharding<[{}]>
// CHECK-SAME: %{{.*}}: tensor<4x2xf32> {dist.sharding = #dist.sharding<[{"replicate", "shard"}, {}]>
// ZERO3-SAME: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>, train.of = "u", train.role = "grad"}
// DDP-SAME: tensor<8xf32> {dist.sharding = #dist.sharding<[{}]>, train.of = "u", train.role = "grad"}
func.func @gathers(%u: tensor<8xf32> {train.role = "param", train.name = "u"},
                   %x: tensor<4x2xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<8xf32> {train.role = "grad", train.of = "u"}) {
  // ZERO3: %[[F:.*]] = dist.constrain %[[U]] <[{}]> {origin = #dist.origin<forward, ["u"]>}
  // ZERO3: %[[W:.*]] = train.reshape %[[F]] : (tensor<8xf32>) -> tensor<2x4xf32>
  // ZERO3: train.dot_general %{{.*}}, %[[W]]
  // ZERO3: %[[B:.*]] = dist.constrain %[[U]] <[{}]> {origin = #dist.origin<backward, ["u"]>, train.backward}
  // ZERO3: %[[V:.*]] = train.reshape %[[B]] {train.backward}
  // ZERO3: train.mul %[[V]], %[[V]]
  // DDP: %[[W:.*]] = train.reshape %[[U]]
  // DDP-NOT: dist.constrain
  // DDP: train.mul %[[W]], %[[W]]
  %w = train.reshape %u : (tensor<8xf32>) -> tensor<2x4xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
  %s = train.mul %w, %w {train.backward} : tensor<2x4xf32>
  %g = train.reshape %s {train.backward} : (tensor<2x4xf32>) -> tensor<8xf32>
  // ZERO3: dist.constrain %{{.*}} <[{"shard"}]> {origin = #dist.origin<gradient, ["u"]>, train.backward}
  // DDP: dist.constrain %{{.*}} <[{}]> {origin = #dist.origin<gradient, ["u"]>, train.backward}
  return %loss, %g : tensor<f32>, tensor<8xf32>
}

// Under accumulation zero3 scatters inside the loop and owes the sum over replicas until after it; ddp reduces once. The
// global norm reads slices in both.
// CHECK-LABEL: func @accumulated
// CHECK-SAME: tensor<3x4xf32> {dist.sharding = #dist.sharding<[{}, {"replicate", "shard"}]>
func.func @accumulated(%u: tensor<4xf32> {train.role = "param", train.name = "u"},
                       %x: tensor<3x4xf32> {train.role = "input", train.name = "x"},
                       %lr: tensor<f32> {train.role = "hyper", train.name = "lr"})
    -> (tensor<f32> {train.role = "metric"}, tensor<4xf32> {train.alias = 0 : i64}) {
  // CHECK: train.accumulate
  %g = train.accumulate %x {count = 3 : i64} : (tensor<3x4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4xf32>):
    // ZERO3: %[[W:.*]] = dist.constrain %arg0 <[{}]> {origin = #dist.origin<backward, ["u"]>, train.backward}
    // CHECK: %[[M:.*]] = train.mul
    %p = train.mul %m, %u {train.backward} : tensor<4xf32>
    // ZERO3: %[[S:.*]] = dist.constrain %[[M]] <[{"shard"}], unreduced = {"replicate"}>
    // ZERO3: train.yield %[[S]]
    // DDP: train.yield %[[M]]
    train.yield %p : tensor<4xf32>
  }
  // ZERO3: %[[G:.*]] = dist.constrain %{{.*}} <[{"shard"}]> {origin = #dist.origin<gradient, ["u"]>
  // ZERO3: train.mul %[[G]], %[[G]]
  // DDP: %[[G:.*]] = dist.constrain %{{.*}} <[{}]> {origin = #dist.origin<gradient, ["u"]>
  // DDP: %[[P:.*]] = dist.constrain %[[G]] <[{"shard"}]> :
  // DDP: train.mul %[[P]], %[[P]]
  %s = train.mul %g, %g : tensor<4xf32>
  %n = train.reduce sum, %s {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  // CHECK: train.sgd_update %arg0, %[[G]]
  %new = train.sgd_update %u, %g lr(%lr) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64, train.unit = "u"} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %n, %new : tensor<f32>, tensor<4xf32>
}

// The clamp of a count cannot be sharded; without an ignored index it is a constant.
// CHECK-LABEL: func @count
// CHECK: %[[C:.*]] = train.compare ne
// CHECK: %[[V:.*]] = train.convert %[[C]]
// CHECK: %[[S:.*]] = train.reduce sum, %[[V]] {dimensions = array<i64: 0, 1>}
// CHECK: train.max %[[S]],
// CHECK: train.constant dense<8.0
// CHECK-NOT: train.count_valid
func.func @count(%t: tensor<4x2xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "metric"}, tensor<f32> {train.role = "metric"}) {
  %a = train.count_valid %t {ignore_index = -100 : i64} : (tensor<4x2xi32>) -> tensor<f32>
  %b = train.count_valid %t : (tensor<4x2xi32>) -> tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}
}

// -----

// Names of axes are free: samples are split over both roles, state over data axes alone, however many there are. A sample's place
// is where the input says.
module attributes {dist.mesh = #dist.mesh<nodes : replica = 2, a : data = 2, b : data = 2>} {
// CHECK-LABEL: func @roles
// ZERO3-SAME: tensor<8xf32> {dist.sharding = #dist.sharding<[{"a", "b"}]>
// DDP-SAME: tensor<8xf32> {dist.sharding = #dist.sharding<[{}]>
// CHECK-SAME: tensor<3x8xf32> {dist.sharding = #dist.sharding<[{}, {"nodes", "a", "b"}]>, train.dims = #train.dims<[position, sample]>
// CHECK-SAME: tensor<8xf32> {dist.sharding = #dist.sharding<[{"nodes", "a", "b"}]>, train.dims = #train.dims<[sample]>
func.func @roles(%u: tensor<8xf32> {train.role = "param", train.name = "u"},
                 %x: tensor<3x8xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[position, sample]>},
                 %y: tensor<8xf32> {train.role = "input", train.name = "y"}) {
  return
}
}
