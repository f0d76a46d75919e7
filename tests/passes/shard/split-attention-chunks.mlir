// Attentions of some heads each (chunk-heads) that share keys and values: these are exchanged once, their gradients when they are
// added up, and what waits for the backward pass of the results waits with heads split.
// RUN: tessera-opt %s --split-attention=attention=ulysses -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: tessera-opt %t.mlir --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir
// RUN: tessera-interp %t.local.mlir --compare=%s --rtol=1e-5 --atol=1e-6 --quiet

module attributes {dist.mesh = #dist.mesh<seq = 2>} {
// CHECK-LABEL: func @chunks
// CHECK-DAG: %[[K:.*]] = dist.move_axes %arg2 {axes = ["seq"], from = 2 : i64, to = 1 : i64}
// CHECK-DAG: %[[V:.*]] = dist.move_axes %arg3 {axes = ["seq"], from = 2 : i64, to = 1 : i64}
// CHECK: %[[Y0:.*]], %{{.*}} = train.attention %{{.*}}, %[[K]], %[[V]]
// CHECK: %[[Y1:.*]], %{{.*}} = train.attention %{{.*}}, %[[K]], %[[V]]
// The concatenation is made again for the backward pass, of results that are exchanged again.
// CHECK: %[[W:.*]] = train.concat {{.*}} {dim = 1 : i64} :
// CHECK: train.tanh %[[W]]
// CHECK-DAG: %[[B0:.*]] = dist.move_axes %[[Y0]] {{.*}}from = 1 : i64, to = 2 : i64, train.backward}
// CHECK-DAG: %[[B1:.*]] = dist.move_axes %[[Y1]] {{.*}}from = 1 : i64, to = 2 : i64, train.backward}
// CHECK: %[[AGAIN:.*]] = train.concat %[[B0]], %[[B1]] {dim = 1 : i64, train.backward}
// CHECK: train.mul %[[AGAIN]]
// CHECK: %{{.*}}, %[[DK1:.*]], %[[DV1:.*]] = train.attention_grad
// CHECK: %{{.*}}, %[[DK0:.*]], %[[DV0:.*]] = train.attention_grad
// CHECK-DAG: %[[SK:.*]] = train.add %[[DK1]], %[[DK0]] {train.backward}
// CHECK-DAG: %[[SV:.*]] = train.add %[[DV1]], %[[DV0]] {train.backward}
// CHECK-DAG: %[[RK:.*]] = train.barrier %[[SK]]
// CHECK-DAG: %[[RV:.*]] = train.barrier %[[SV]]
// CHECK-DAG: %[[MK:.*]] = dist.move_axes %[[RK]] {{.*}}from = 1 : i64, to = 2 : i64, train.backward}
// CHECK-DAG: %[[MV:.*]] = dist.move_axes %[[RV]] {{.*}}from = 1 : i64, to = 2 : i64, train.backward}
// CHECK-DAG: %[[EXTRA:.*]] = train.add %[[MK]], %arg4
// CHECK: return %{{.*}}, %{{.*}}, %[[EXTRA]], %[[MV]]
func.func @chunks(%q: tensor<2x2x8x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, %p: tensor<2x2x8x2xf32> {train.role = "input", train.name = "p", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, %k: tensor<2x2x8x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, %v: tensor<2x2x8x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, %e: tensor<2x2x8x2xf32> {train.role = "input", train.name = "e", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, %d: tensor<2x2x8x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> (tensor<2x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x2x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x2x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %y0, %lse0 = train.attention %q, %k, %v {causal, scale = 0.5} : (tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>) -> (tensor<2x2x8x2xf32>, tensor<2x2x8xf32>)
  %y1, %lse1 = train.attention %p, %k, %v {causal, scale = 0.5} : (tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>) -> (tensor<2x2x8x2xf32>, tensor<2x2x8xf32>)
  %y = train.concat %y0, %y1 {dim = 1 : i64} : (tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>) -> tensor<2x4x8x2xf32>
  %t = train.tanh %y : tensor<2x4x8x2xf32>
  %m = train.mul %y, %y {train.backward} : tensor<2x4x8x2xf32>
  %dq1, %dk1, %dv1 = train.attention_grad %p, %k, %v, %y1, %lse1, %d {causal, scale = 0.5, train.backward} : (tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8xf32>, tensor<2x2x8x2xf32>) -> (tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>)
  %dq0, %dk0, %dv0 = train.attention_grad %q, %k, %v, %y0, %lse0, %d {causal, scale = 0.5, train.backward} : (tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8xf32>, tensor<2x2x8x2xf32>) -> (tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>)
  %dk = train.add %dk1, %dk0 {train.backward} : tensor<2x2x8x2xf32>
  %dv = train.add %dv1, %dv0 {train.backward} : tensor<2x2x8x2xf32>
  %more = train.add %dk, %e {train.backward} : tensor<2x2x8x2xf32>
  return %t, %m, %more, %dv : tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x2x8x2xf32>, tensor<2x2x8x2xf32>
}
}
