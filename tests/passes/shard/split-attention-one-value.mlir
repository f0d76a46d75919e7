// Queries, keys and values that are one value: their gradients, results of one op, are added up behind it.
// RUN: tessera-opt %s --split-attention=attention=ulysses | FileCheck %s
// RUN: tessera-opt %s --split-attention=attention=ulysses --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir
// RUN: tessera-interp %t.local.mlir --compare=%s

module attributes {dist.mesh = #dist.mesh<seq = 2>} {
// CHECK-LABEL: func @one
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = train.attention_grad
// CHECK: %[[A:.*]] = train.add %[[DQ]], %[[DK]] {train.backward}
// CHECK: %[[AB:.*]] = train.barrier %[[A]]
// CHECK: %[[S:.*]] = train.add %[[AB]], %[[DV]] {train.backward}
// CHECK: %[[SB:.*]] = train.barrier %[[S]]
// CHECK: dist.move_axes %[[SB]] {axes = ["seq"], from = 1 : i64, to = 2 : i64, train.backward}
// CHECK-NOT: dist.move_axes
func.func @one(%x: tensor<1x2x8x2xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %d: tensor<1x2x8x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> (tensor<1x2x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %o, %lse = train.attention %x, %x, %x {causal, scale = 0.5} : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>) -> (tensor<1x2x8x2xf32>, tensor<1x2x8xf32>)
  %dq, %dk, %dv = train.attention_grad %x, %x, %x, %o, %lse, %d {causal, scale = 0.5, train.backward} : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8xf32>, tensor<1x2x8x2xf32>) -> (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>)
  %a = train.add %dq, %dk {train.backward} : tensor<1x2x8x2xf32>
  %s = train.add %a, %dv {train.backward} : tensor<1x2x8x2xf32>
  return %s : tensor<1x2x8x2xf32>
}
}
