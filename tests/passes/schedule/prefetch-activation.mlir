// RUN: tessera-opt %s --split-async --prefetch --verify-schedule | FileCheck %s

// The gather of an activation stays where it is; a unit that is used after it does not start before it, so that
// gathers end in the order in which they start.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @activation
// CHECK: train.exp
// CHECK: dist.all_gather_start
// CHECK-NEXT: dist.done
// CHECK: dist.all_gather_start %arg0 {{.*}}schedule.reason = "after the gather of {{.*}}, which cannot be delayed"
// CHECK: dist.done
func.func @activation(%a: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<8xf32> {
  %e = train.exp %x : tensor<4xf32>
  %g = dist.all_gather %e {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  %u = dist.all_gather %a {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  %r = train.mul %g, %u : tensor<8xf32>
  return %r : tensor<8xf32>
}
}
