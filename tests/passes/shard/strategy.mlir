// What the rows of the table of strategies say: which state is split, when a unit is gathered, and where gradients become whole or
// parts. One gather per step is outside of the loop over micro-batches.
// RUN: tessera-opt %s --annotate-sharding=strategy=ddp | FileCheck %s --check-prefix=DDP
// RUN: tessera-opt %s --annotate-sharding=strategy=zero1 | FileCheck %s --check-prefixes=CHECK,ONCE,ZERO1
// RUN: tessera-opt %s --annotate-sharding=strategy=zero2 | FileCheck %s --check-prefixes=CHECK,ONCE,ZERO2
// RUN: tessera-opt %s --annotate-sharding=strategy=zero3 | FileCheck %s --check-prefixes=CHECK,HSDP
// RUN: tessera-opt %s --annotate-sharding="strategy=zero3 keep-gathered=^u$" | FileCheck %s --check-prefixes=CHECK,ONCE,ZERO2
// RUN: tessera-opt %s --annotate-sharding="strategy=hsdp" | FileCheck %s --check-prefixes=CHECK,HSDP

// Whatever the strategy, a step computes the same.
// DEFINE: %{strategy} =
// DEFINE: %{compare} = tessera-opt %s --annotate-sharding=strategy=%{strategy} --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.mlir && tessera-interp %t.mlir --compare=%s --quiet
// REDEFINE: %{strategy} = ddp
// RUN: %{compare}
// REDEFINE: %{strategy} = zero1
// RUN: %{compare}
// REDEFINE: %{strategy} = zero2
// RUN: %{compare}
// REDEFINE: %{strategy} = zero3
// RUN: %{compare}
// REDEFINE: %{strategy} = hsdp
// RUN: %{compare}

// Not applied: a name that is no row, an insistence on replicas or shards that the mesh has not, nothing to split state over, a
// unit that is gathered once by the strategy anyway.
// RUN: not tessera-opt %s --annotate-sharding=strategy=zero9 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: unknown strategy 'zero9', expected ddp, zero1, zero2, zero3 or hsdp
// RUN: sed 's/replicate = 2, shard = 2/shard = 4/' %s | not tessera-opt --annotate-sharding=strategy=hsdp 2>&1 | FileCheck %s --check-prefix=NO-REPLICAS
// NO-REPLICAS: error: strategy hsdp needs a mesh with an axis of role replica and one of role data, both larger than 1, got #dist.mesh<shard = 4>
// RUN: sed 's/replicate = 2, shard = 2/replicate = 4/' %s > %t.replicas.mlir
// RUN: not tessera-opt %t.replicas.mlir --annotate-sharding=strategy=hsdp 2>&1 | FileCheck %s --check-prefix=NO-SHARDS
// NO-SHARDS: error: strategy hsdp needs a mesh with an axis of role replica and one of role data, both larger than 1, got #dist.mesh<replicate = 4>
// RUN: tessera-opt %t.replicas.mlir --annotate-sharding=strategy=zero1 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: remark: nothing is sharded: mesh #dist.mesh<replicate = 4> has no axis larger than 1 that state is split over
// RUN: tessera-opt %t.replicas.mlir --annotate-sharding=strategy=ddp 2>&1 | FileCheck %s --check-prefix=QUIET --implicit-check-not=remark
// QUIET: func.func @step
// RUN: not tessera-opt %s --annotate-sharding="strategy=zero2 keep-gathered=u" 2>&1 | FileCheck %s --check-prefix=KEEP
// KEEP: error: keep-gathered needs a strategy that gathers units more than once per step, got zero2

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
// DDP-LABEL: func @step
// DDP-SAME: %[[U:arg0]]: tensor<4xf32> {dist.sharding = #dist.sharding<[{}]>
// DDP-SAME: %[[M:arg1]]: tensor<4xf32> {dist.sharding = #dist.sharding<[{}]>
// DDP-NOT: dist.constrain
// DDP: train.accumulate
// DDP-NOT: dist.constrain
// DDP: train.yield
// DDP: %[[R:.*]] = dist.constrain %{{.*}} <[{}]> {origin = #dist.origin<gradient, ["u"]>
// DDP: train.sgd_update %[[U]], %[[R]] buffer(%[[M]])
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
