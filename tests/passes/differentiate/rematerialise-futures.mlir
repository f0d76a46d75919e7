// RUN: tessera-opt %s --rematerialise=policy=selective | FileCheck %s

// What is not a tensor, such as the future of a collective, stays where it is; so does what waits for it.
// CHECK-LABEL: func.func @futures
// CHECK-COUNT-1: dist.all_gather_start
// CHECK-COUNT-1: dist.done
// CHECK-NOT: train.recompute
// CHECK: return
func.func @futures(%w: tensor<8xf32> {train.role = "param", train.name = "w"}, %x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> tensor<8xf32> {
  %f = dist.all_gather_start %x {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> !dist.future<tensor<8xf32>>
  %g = dist.done %f : (!dist.future<tensor<8xf32>>) -> tensor<8xf32>
  %d = train.mul %g, %w {train.backward} : tensor<8xf32>
  return %d : tensor<8xf32>
}
