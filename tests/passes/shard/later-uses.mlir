// What the backward pass reads of an attention's result is made again for it, with the views in between.
// RUN: tessera-opt %s --split-attention=attention=ulysses | FileCheck %s
// RUN: tessera-opt %s --split-attention=attention=ulysses --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.mlir
// RUN: tessera-interp %t.mlir --compare=%s --quiet
// Without heads to exchange nothing is made again.
// RUN: tessera-opt %s --split-attention=attention=ring 2>&1 | FileCheck %s --check-prefix=RING --implicit-check-not=dist.move_axes
// RING: train.attention {{.*}} split = #train<attention_split ring>

module attributes {dist.mesh = #dist.mesh<seq = 2>} {
// Between the passes a result waits with heads split. The backward pass exchanges it again for itself, in front of its first reader,
// and repeats the views that it reads.
// CHECK-LABEL: func @views
// CHECK: %[[O:.*]], %{{.*}} = train.attention
// CHECK: %[[NOW:.*]] = dist.move_axes %[[O]] {axes = ["seq"], from = 1 : i64, to = 2 : i64} :
// CHECK: %[[T:.*]] = train.transpose %[[NOW]]
// CHECK: %[[R:.*]] = train.reshape %[[T]]
// CHECK: %[[Y:.*]] = train.tanh %[[R]]
// CHECK: train.neg %{{.*}} {train.backward}
// CHECK-NEXT: %[[LATER:.*]] = dist.move_axes %[[O]] {axes = ["seq"], from = 1 : i64, to = 2 : i64, train.backward}
// CHECK-NEXT: %[[T2:.*]] = train.transpose %[[LATER]] {permutation = array<i64: 0, 2, 1, 3>, train.backward}
// CHECK-NEXT: %[[R2:.*]] = train.reshape %[[T2]] {train.backward}
// CHECK-NEXT: train.mul %{{.*}}, %[[R2]] {train.backward}
// CHECK-NEXT: train.mul %[[LATER]], %[[LATER]] {train.backward}
// CHECK-NOT: dist.move_axes
func.func @views(%q: tensor<1x4x8x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>})
    -> (tensor<1x8x8xf32> {dist.sharding = #dist.sharding<[{}, {"seq"}, {}]>}, tensor<1x8x8xf32> {dist.sharding = #dist.sharding<[{}, {"seq"}, {}]>}, tensor<1x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %o, %lo = train.attention %q, %q, %q {scale = 0.5} : (tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>) -> (tensor<1x4x8x2xf32>, tensor<1x4x8xf32>)
  %t = train.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x4x8x2xf32>) -> tensor<1x8x4x2xf32>
  %r = train.reshape %t : (tensor<1x8x4x2xf32>) -> tensor<1x8x8xf32>
  %y = train.tanh %r : tensor<1x8x8xf32>
  %n = train.neg %y {train.backward} : tensor<1x8x8xf32>
  %d = train.mul %n, %r {train.backward} : tensor<1x8x8xf32>
  %e = train.mul %o, %o {train.backward} : tensor<1x4x8x2xf32>
  return %y, %d, %e : tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x4x8x2xf32>
}

// Not applied: what the backward pass reads is another value, made of what was exchanged once; attention's own gradient wants
// heads split anyway.
// CHECK-LABEL: func @others
// CHECK: %[[O:.*]], %[[LSE:.*]] = train.attention
// CHECK: %[[NOW:.*]] = dist.move_axes %[[O]] {axes = ["seq"], from = 1 : i64, to = 2 : i64} :
// CHECK-NEXT: %[[Y:.*]] = train.tanh %[[NOW]]
// CHECK-NEXT: %[[D:.*]] = train.mul %[[Y]], %[[Y]] {train.backward}
// CHECK-NOT: from = 1 : i64, to = 2 : i64, train.backward
// CHECK: train.attention_grad
func.func @others(%q: tensor<1x4x8x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>})
    -> (tensor<1x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<1x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %o, %lo = train.attention %q, %q, %q {scale = 0.5} : (tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>) -> (tensor<1x4x8x2xf32>, tensor<1x4x8xf32>)
  %y = train.tanh %o : tensor<1x4x8x2xf32>
  %d = train.mul %y, %y {train.backward} : tensor<1x4x8x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %q, %q, %o, %lo, %d {scale = 0.5, train.backward} : (tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>, tensor<1x4x8xf32>, tensor<1x4x8x2xf32>) -> (tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>)
  return %y, %dq : tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>
}

// Results of attentions that each take some heads are views of their concatenation, which is made again; one with anything else is
// none, and stays.
// CHECK-LABEL: func @joined
// CHECK: %[[A:.*]], %{{.*}} = train.attention
// CHECK: %[[B:.*]], %{{.*}} = train.attention
// CHECK: %[[MIXED:.*]] = train.concat %{{.*}}, %arg0 {dim = 1 : i64} :
// CHECK-DAG: %[[LATER_A:.*]] = dist.move_axes %[[A]] {axes = ["seq"], from = 1 : i64, to = 2 : i64, train.backward}
// CHECK-DAG: %[[LATER_B:.*]] = dist.move_axes %[[B]] {axes = ["seq"], from = 1 : i64, to = 2 : i64, train.backward}
// CHECK: %[[AGAIN:.*]] = train.concat %[[LATER_A]], %[[LATER_B]] {dim = 1 : i64, train.backward}
// CHECK: train.neg %[[AGAIN]] {train.backward}
// CHECK: train.neg %[[MIXED]] {train.backward}
func.func @joined(%q: tensor<1x2x8x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
                  %k: tensor<1x2x8x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>})
    -> (tensor<1x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<1x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<1x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<1x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %a, %la = train.attention %q, %q, %q {scale = 0.5} : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>) -> (tensor<1x2x8x2xf32>, tensor<1x2x8xf32>)
  %b, %lb = train.attention %k, %k, %k {scale = 0.5} : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>) -> (tensor<1x2x8x2xf32>, tensor<1x2x8xf32>)
  %y = train.concat %a, %b {dim = 1 : i64} : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>) -> tensor<1x4x8x2xf32>
  %t = train.tanh %y : tensor<1x4x8x2xf32>
  %m = train.concat %a, %q {dim = 1 : i64} : (tensor<1x2x8x2xf32>, tensor<1x2x8x2xf32>) -> tensor<1x4x8x2xf32>
  %s = train.tanh %m : tensor<1x4x8x2xf32>
  %d = train.neg %y {train.backward} : tensor<1x4x8x2xf32>
  %e = train.neg %m {train.backward} : tensor<1x4x8x2xf32>
  return %t, %s, %d, %e : tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>, tensor<1x4x8x2xf32>
}
}
