// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(decompose,canonicalize,cse,join-waits))' | FileCheck %s
// RUN: tessera-opt %s --join-waits | FileCheck %s --check-prefix=ALONE
// RUN: tessera-opt %s --join-waits --join-waits | FileCheck %s --check-prefix=ALONE
// No diagnostic: where one wait dominates another of the same future, both give the same value.

// Two collectives become equal when what told them apart is gone: a / a.detach().
// CHECK-LABEL: func.func @detached
// CHECK:         %[[F:.*]] = dist.all_reduce_start
// CHECK-NEXT:    %[[A:.*]] = dist.done %[[F]] {schedule.reason = "first"}
// CHECK-NEXT:    train.div %[[A]], %[[A]]
// Not merged as long as they differ.
// ALONE-LABEL: func.func @detached
// ALONE-COUNT-2: dist.all_reduce_start
func.func @detached(%x: tensor<f32>) -> tensor<f32> {
  %f = dist.all_reduce_start %x {axes = ["shard"], schedule.reason = "where the collective was"} : (tensor<f32>) -> !dist.future<tensor<f32>>
  %a = dist.done %f {schedule.reason = "first"} : (!dist.future<tensor<f32>>) -> tensor<f32>
  %s = train.stop_gradient %x : tensor<f32>
  %g = dist.all_reduce_start %s {axes = ["shard"], schedule.reason = "where the collective was"} : (tensor<f32>) -> !dist.future<tensor<f32>>
  %b = dist.done %g {schedule.reason = "second"} : (!dist.future<tensor<f32>>) -> tensor<f32>
  %y = train.div %a, %b : tensor<f32>
  return %y : tensor<f32>
}

// Copies, too; what else is done meanwhile stays where it is.
// CHECK-LABEL: func.func @copies
// CHECK-COUNT-1: dist.copy_start
// CHECK:         %[[A:.*]] = dist.done %{{.*}} {schedule.reason = "first"}
// CHECK:         %[[E:.*]] = train.exp %[[A]]
// CHECK:         train.add %[[E]], %[[A]]
// CHECK-NOT:     dist.done
func.func @copies(%x: tensor<4xf32>) -> tensor<4xf32> {
  %f = dist.copy_start %x to "host" : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %g = dist.copy_start %x to "host" : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %a = dist.done %f {schedule.reason = "first"} : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
  %e = train.exp %a : tensor<4xf32>
  %b = dist.done %g {schedule.reason = "second"} : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
  %y = train.add %e, %b : tensor<4xf32>
  return %y : tensor<4xf32>
}

// In each micro-batch by itself, whatever blocks around it do.
// CHECK-LABEL: func.func @blocks
// CHECK:         dist.done
// CHECK:         train.accumulate
// CHECK:           %[[A:.*]] = dist.done %{{.*}} {schedule.reason = "first"}
// CHECK-NOT:       dist.done
// CHECK:           train.mul %[[A]], %[[A]]
func.func @blocks(%x: tensor<2x4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %h = dist.all_reduce_start %w {axes = ["shard"]} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %d = dist.done %h : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
  %r = train.accumulate %x {count = 2 : i64} : (tensor<2x4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4xf32>):
    %f = dist.all_reduce_start %m {axes = ["shard"]} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
    %s = train.stop_gradient %m : tensor<4xf32>
    %g = dist.all_reduce_start %s {axes = ["shard"]} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
    %a = dist.done %f {schedule.reason = "first"} : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
    %b = dist.done %g {schedule.reason = "second"} : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
    %p = train.mul %a, %b : tensor<4xf32>
    train.yield %p : tensor<4xf32>
  }
  return %r, %d : tensor<4xf32>, tensor<4xf32>
}
