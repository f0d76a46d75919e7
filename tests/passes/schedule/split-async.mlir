// RUN: tessera-opt %s --split-async | FileCheck %s
// RUN: tessera-opt %s --split-async --split-async | FileCheck %s
// No diagnostic: every synchronous collective has its pair of start and done.

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @all
func.func @all(%x: tensor<4x2xf32>) -> (tensor<8x2xf32>, tensor<2x2xf32>, tensor<4x2xf32>, tensor<2x4xf32>, tensor<4x2xf32>, tensor<2x2xf32>) {
  // CHECK: %[[F:.*]] = dist.all_gather_start %arg0 {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["u"]>, schedule.reason = "where the collective was"} : (tensor<4x2xf32>) -> !dist.future<tensor<8x2xf32>>
  // CHECK-NEXT: %[[G:.*]] = dist.done %[[F]] {schedule.reason = "right after its start"}
  %g = dist.all_gather %x {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["u"]>} : (tensor<4x2xf32>) -> tensor<8x2xf32>
  // CHECK: %[[F:.*]] = dist.reduce_scatter_start {{.*}}train.backward} : (tensor<4x2xf32>) -> !dist.future<tensor<2x2xf32>>
  // CHECK-NEXT: dist.done %[[F]] {{.*}}train.backward}
  %s = dist.reduce_scatter %x {axes = ["shard"], dim = 0 : i64, train.backward} : (tensor<4x2xf32>) -> tensor<2x2xf32>
  // CHECK: %[[F:.*]] = dist.all_reduce_start
  // CHECK-NEXT: dist.done %[[F]]
  %r = dist.all_reduce %x {axes = ["shard"]} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  // CHECK: %[[F:.*]] = dist.all_to_all_start %arg0 {axes = ["shard"], concat_dim = 1 : i64, schedule.reason = {{.*}}, split_dim = 0 : i64}
  // CHECK-NEXT: dist.done %[[F]]
  %a = dist.all_to_all %x {axes = ["shard"], split_dim = 0 : i64, concat_dim = 1 : i64} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  // CHECK: %[[F:.*]] = dist.permute_start
  // CHECK-NEXT: dist.done %[[F]]
  %p = dist.permute %x {axes = ["shard"], shift = 1 : i64} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  // No communication, nothing to wait for.
  // CHECK: dist.slice_local
  %l = dist.slice_local %x {axes = ["shard"], dim = 0 : i64} : (tensor<4x2xf32>) -> tensor<2x2xf32>
  // CHECK: return %[[G]]
  return %g, %s, %r, %a, %p, %l : tensor<8x2xf32>, tensor<2x2xf32>, tensor<4x2xf32>, tensor<2x4xf32>, tensor<4x2xf32>, tensor<2x2xf32>
}
}
