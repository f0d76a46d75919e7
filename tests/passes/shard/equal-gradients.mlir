// Two units with the same gradient (biases that are added to one value): each has its own, behind a barrier, so that what is
// done to the gradient of one unit is not done to that of the other.
// RUN: tessera-opt %s --annotate-sharding=strategy=ddp | FileCheck %s --check-prefixes=CHECK,DDP
// RUN: tessera-opt %s --annotate-sharding=strategy=zero2 | FileCheck %s --check-prefixes=CHECK,ZERO2

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @step
// CHECK: train.accumulate
// ZERO2: %[[P:.*]] = train.mul %{{.*}} {train.backward}
// ZERO2: %[[PU:.*]] = dist.constrain %[[P]] <[{"shard"}]> {origin = #dist.origin<gradient, ["u"]>
// ZERO2: %[[BARRIER:.*]] = train.barrier %[[P]] {segment = "v", train.backward}
// ZERO2: %[[PV:.*]] = dist.constrain %[[BARRIER]] <[{"shard"}]> {origin = #dist.origin<gradient, ["v"]>
// ZERO2: train.yield %{{.*}}, %[[PU]], %[[PV]]
// CHECK: dist.constrain %{{.*}} {origin = #dist.origin<gradient, ["u"]>
// CHECK: return
// CHECK-LABEL: func @whole
// DDP: %[[G:.*]] = train.mul %{{.*}} {train.backward}
// DDP: %[[GU:.*]] = dist.constrain %[[G]] <[{}]> {origin = #dist.origin<gradient, ["u"]>
// The norm reads slices, updates do not.
// DDP: %[[SLICE:.*]] = dist.constrain %[[GU]] <[{"shard"}]>
// DDP: train.reduce sum, %[[SLICE]]
// DDP: train.sgd_update %{{.*}}, %[[GU]]
// DDP: %[[OWN:.*]] = train.barrier %[[G]] {segment = "v", train.backward}
// DDP: %[[GV:.*]] = dist.constrain %[[OWN]] <[{}]> {origin = #dist.origin<gradient, ["v"]>
// DDP: train.sgd_update %{{.*}}, %[[GV]]
func.func @step(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %v: tensor<4xf32> {train.role = "param", train.name = "v"},
                %x: tensor<3x4xf32> {train.role = "input", train.name = "x"}, %lr: tensor<f32> {train.role = "hyper", train.name = "lr"})
    -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.alias = 0 : i64}, tensor<4xf32> {train.alias = 1 : i64}) {
  %loss, %g, %h = train.accumulate %x {count = 3 : i64} : (tensor<3x4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %b: tensor<4xf32>):
    %s = train.add %u, %v : tensor<4xf32>
    %y = train.mul %b, %s : tensor<4xf32>
    %l = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    %p = train.mul %b, %b {train.backward} : tensor<4xf32>
    train.yield %l, %p, %p : tensor<f32>, tensor<4xf32>, tensor<4xf32>
  }
  %nu = train.sgd_update %u, %g lr(%lr) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64, train.unit = "u"} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %nv = train.sgd_update %v, %h lr(%lr) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64, train.unit = "v"} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %loss, %nu, %nv : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
func.func @whole(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %v: tensor<4xf32> {train.role = "param", train.name = "v"},
                 %x: tensor<4xf32>, %lr: tensor<f32> {train.role = "hyper", train.name = "lr"})
    -> (tensor<f32> {train.role = "metric"}, tensor<4xf32> {train.alias = 0 : i64}, tensor<4xf32> {train.alias = 1 : i64}) {
  %g = train.mul %x, %x {train.backward} : tensor<4xf32>
  %norm = train.reduce sum, %g {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %nu = train.sgd_update %u, %g lr(%lr) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64, train.unit = "u"} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %nv = train.sgd_update %v, %g lr(%lr) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64, train.unit = "v"} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %norm, %nu, %nv : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
}
