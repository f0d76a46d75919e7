// Where the collectives of a block may stand, which all policies share.
// RUN: tessera-opt %s --split-async --prefetch --verify-schedule | FileCheck %s
// RUN: tessera-opt %s --split-async --prefetch-auto --verify-schedule | FileCheck %s --check-prefix=AUTO

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2>} {
// The gather of an activation starts where it is and ends at its first use; a unit that is used after it does not start
// before it, so that gathers end in the order in which they start.
// CHECK-LABEL: func @activation
// CHECK: train.exp
// CHECK-NEXT: %[[G:.*]] = dist.all_gather_start %{{.*}} "where the collective was"
// CHECK-NEXT: dist.all_gather_start %arg0 {{.*}}schedule.reason = "after the gather of {{.*}}, which cannot be delayed"
// CHECK-NEXT: dist.done %[[G]] {schedule.reason = "before the next gather over its axes ends"}
// CHECK-NEXT: dist.done
// AUTO-LABEL: func @activation
// AUTO: train.exp
// AUTO-NEXT: %[[G:.*]] = dist.all_gather_start %{{.*}} "where the collective was"
// AUTO-NEXT: dist.all_gather_start %arg0 {{.*}}schedule.reason = "after the gather of {{.*}}, which cannot be delayed"
func.func @activation(%a: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<8xf32> {
  %e = train.exp %x : tensor<4xf32>
  %g = dist.all_gather %e {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  %u = dist.all_gather %a {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  %r = train.mul %g, %u : tensor<8xf32>
  return %r : tensor<8xf32>
}

// One over another axis does not hold it back.
// CHECK-LABEL: func @other_axis
// CHECK-NOT: cannot be delayed
// CHECK: return
func.func @other_axis(%a: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<8xf32> {
  %e = train.exp %x : tensor<4xf32>
  %g = dist.all_gather %e {axes = ["replicate"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  %t = train.tanh %g : tensor<8xf32>
  %u = dist.all_gather %a {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  %r = train.mul %t, %u : tensor<8xf32>
  return %r : tensor<8xf32>
}

// A join that has a part twice comes behind all of its parts, whichever of them is moved last.
// CHECK-LABEL: func @repeated
// CHECK: train.exp
// CHECK-DAG: %[[A:.*]] = train.slice %{{.*}} {{.*}}starts = array<i64: 0>
// CHECK-DAG: %[[B:.*]] = train.slice %{{.*}} {{.*}}starts = array<i64: 2>
// CHECK: train.concat %[[A]], %[[B]], %[[A]]
// CHECK-NEXT: dist.all_reduce_start
// CHECK: train.tanh
func.func @repeated(%x: tensor<4xf32>) -> (tensor<6xf32>, tensor<4xf32>) {
  %e = train.exp %x : tensor<4xf32>
  %t = train.tanh %e : tensor<4xf32>
  %a = train.slice %e {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %b = train.slice %e {starts = array<i64: 2>, limits = array<i64: 4>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %c = train.concat %a, %b, %a {dim = 0 : i64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<6xf32>
  %r = dist.all_reduce %c {axes = ["shard"]} : (tensor<6xf32>) -> tensor<6xf32>
  return %r, %t : tensor<6xf32>, tensor<4xf32>
}

// What is joined for a gather moves with it; what shows a part of its result moves to the part's first use, so that the gather
// ends there.
// CHECK-LABEL: func @assembly
// CHECK: %[[BOTH:.*]] = train.concat %arg0, %arg1
// CHECK-NEXT: dist.all_gather_start %[[BOTH]]
// CHECK-NEXT: train.exp
// CHECK-NEXT: train.tanh
// CHECK-NEXT: dist.done {{.*}}schedule.reason = "at the first use of the unit"
// CHECK-NEXT: train.slice
// CHECK-NEXT: train.reshape
// CHECK-NEXT: train.mul
func.func @assembly(%a: tensor<2xf32>, %b: tensor<2xf32>, %x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %e = train.exp %x : tensor<2x2xf32>
  %both = train.concat %a, %b {dim = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %u = dist.all_gather %both {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  %s = train.slice %u {starts = array<i64: 2>, limits = array<i64: 6>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>
  %w = train.reshape %s : (tensor<4xf32>) -> tensor<2x2xf32>
  %t = train.tanh %e : tensor<2x2xf32>
  %r = train.mul %t, %w : tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// A reduction of another kind does not end the one before it; what only the block's end reads ends there.
// CHECK-LABEL: func @kinds
// CHECK: train.exp
// CHECK-NEXT: dist.reduce_scatter_start
// CHECK-NEXT: train.sqrt
// CHECK-NEXT: dist.all_reduce_start
// CHECK: train.tanh
// CHECK: dist.done {{.*}}schedule.reason = "at its first use"
// CHECK: train.add
// CHECK: dist.done {{.*}}schedule.reason = "at its first use"
// CHECK-NEXT: return
func.func @kinds(%x: tensor<8xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %p = train.exp %x : tensor<8xf32>
  %q = train.sqrt %y : tensor<4xf32>
  %a = dist.reduce_scatter %p {axes = ["shard"], dim = 0 : i64} : (tensor<8xf32>) -> tensor<4xf32>
  %b = dist.all_reduce %q {axes = ["shard"]} : (tensor<4xf32>) -> tensor<4xf32>
  %t = train.tanh %y : tensor<4xf32>
  %s = train.add %a, %t : tensor<4xf32>
  return %s, %b : tensor<4xf32>, tensor<4xf32>
}

// Not applied: a gather inside a loop of what the loop computes.
// CHECK-LABEL: func @computed
// CHECK: train.accumulate
// CHECK: %[[E:.*]] = train.exp
// CHECK-NEXT: dist.all_gather_start %[[E]] {{.*}}schedule.reason = "where the collective was"
// CHECK-NEXT: dist.done
func.func @computed(%x: tensor<2x4xf32>) -> tensor<8xf32> {
  %s = train.accumulate %x {count = 2 : i64} : (tensor<2x4xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4xf32>):
    %e = train.exp %m : tensor<4xf32>
    %g = dist.all_gather %e {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
    train.yield %g : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}
}
