// A reduction ends before the next one of its kind over its own axes, not before one over others: the sum of an activation
// over tp, which compute waits for, leaves that of a gradient over dp under way.
// RUN: tessera-opt %s --split-async --prefetch --verify-schedule | FileCheck %s

module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {
// CHECK-LABEL: func @sums
// CHECK: %[[A:.*]] = dist.all_reduce_start %{{.*}} {axes = ["dp"]
// CHECK: %[[T:.*]] = dist.all_reduce_start %{{.*}} {axes = ["tp"]
// CHECK: dist.done %[[T]] {schedule.reason = "at its first use"}
// CHECK: dist.done %[[A]] {schedule.reason = "before the next collective of its kind and axes starts"}
// CHECK: %[[B:.*]] = dist.all_reduce_start %{{.*}} {axes = ["dp"]
// CHECK: dist.done %[[B]] {schedule.reason = "at its first use"}
func.func @sums(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = train.exp %x : tensor<4xf32>
  %first = dist.all_reduce %a {axes = ["dp"], origin = #dist.origin<gradient, ["a"]>} : (tensor<4xf32>) -> tensor<4xf32>
  %b = train.tanh %a : tensor<4xf32>
  %sum = dist.all_reduce %b {axes = ["tp"]} : (tensor<4xf32>) -> tensor<4xf32>
  %c = train.sqrt %sum : tensor<4xf32>
  %second = dist.all_reduce %c {axes = ["dp"], origin = #dist.origin<gradient, ["b"]>} : (tensor<4xf32>) -> tensor<4xf32>
  %both = train.add %first, %second : tensor<4xf32>
  return %both, %c : tensor<4xf32>, tensor<4xf32>
}
}
