// RUN: tessera-opt %s --split-attention=attention=allgather | FileCheck %s --check-prefixes=ALL,GATHER
// RUN: tessera-opt %s --split-attention=attention=ring | FileCheck %s --check-prefixes=ALL,RING
// RUN: tessera-opt %s --split-attention=attention=ulysses | FileCheck %s --check-prefixes=ALL,ULYSSES
// RUN: tessera-opt %s --split-attention -verify-diagnostics | FileCheck %s --check-prefixes=ALL,ULYSSES
// RUN: tessera-opt %s --split-attention='attention=ulysses sequence-order=zigzag' | FileCheck %s --check-prefix=ZIGZAG
// A ring is not asked for twice.
// RUN: tessera-opt %s --split-attention=attention=ring --split-attention=attention=ring | FileCheck %s --check-prefixes=ALL,RING
// What is sent for it.
// RUN: tessera-opt %s --split-attention=attention=allgather --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding 2>/dev/null | FileCheck %s --check-prefix=LOCAL-GATHER
// RUN: tessera-opt %s --split-attention=attention=ring --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding 2>/dev/null | FileCheck %s --check-prefix=LOCAL-RING
// RUN: tessera-opt %s --split-attention=attention=ulysses --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding 2>/dev/null | FileCheck %s --check-prefix=LOCAL-ULYSSES
// Results and gradients stay, in ranges and in a zigzag.
// RUN: tessera-opt %s --split-attention=attention=allgather --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: tessera-opt %s --split-attention=attention=ring --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: tessera-opt %s --split-attention=attention=ulysses --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: sed 's/{"seq"}/{"seq": zigzag}/g' %s > %t.zigzag.mlir
// RUN: tessera-opt %t.zigzag.mlir --split-attention=attention=allgather --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: tessera-opt %t.zigzag.mlir --split-attention=attention=ring --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: tessera-opt %t.zigzag.mlir --split-attention='attention=ulysses sequence-order=zigzag' --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s

module attributes {dist.mesh = #dist.mesh<seq = 4>} {
// ALL-LABEL: func @causal
// GATHER: train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64}
// GATHER: train.attention_grad {{.*}} {causal, scale = 5.000000e-01 : f64, train.backward}
// GATHER-NOT: dist.move_axes
// RING: train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64, split = #train<attention_split ring>}
// RING: train.attention_grad %arg0, %arg1, %arg2, {{.*}} {causal, scale = 5.000000e-01 : f64, split = #train<attention_split ring>, train.backward}
// RING-NOT: dist.move_axes
// ULYSSES: %[[Q:.*]] = dist.move_axes %arg0 {axes = ["seq"], from = 2 : i64, to = 1 : i64}
// ULYSSES: %[[K:.*]] = dist.move_axes %arg1 {axes = ["seq"], from = 2 : i64, to = 1 : i64}
// ULYSSES: %[[V:.*]] = dist.move_axes %arg2 {axes = ["seq"], from = 2 : i64, to = 1 : i64}
// ULYSSES: %[[O:.*]], %[[S:.*]] = train.attention %[[Q]], %[[K]], %[[V]] {causal, scale = 5.000000e-01 : f64}
// ULYSSES: %[[P:.*]] = dist.move_axes %[[O]] {axes = ["seq"], from = 1 : i64, to = 2 : i64}
// ULYSSES: train.tanh %[[P]]
// The gradient wants the result as it is; queries, keys and values have been moved before.
// ULYSSES: %[[SAME:.*]] = dist.move_axes %[[O]] {axes = ["seq"], from = 2 : i64, to = 1 : i64, train.backward}
// ULYSSES: %[[D:.*]] = dist.move_axes %arg3 {axes = ["seq"], from = 2 : i64, to = 1 : i64, train.backward}
// ULYSSES: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = train.attention_grad %[[Q]], %[[K]], %[[V]], %[[SAME]], %[[S]], %[[D]] {causal, scale = 5.000000e-01 : f64, train.backward}
// ULYSSES: %[[RQ:.*]] = dist.move_axes %[[DQ]] {axes = ["seq"], from = 1 : i64, to = 2 : i64, train.backward}
// ULYSSES: dist.move_axes %[[DK]] {axes = ["seq"], from = 1 : i64, to = 2 : i64, train.backward}
// ULYSSES: dist.move_axes %[[DV]] {axes = ["seq"], from = 1 : i64, to = 2 : i64, train.backward}
// ULYSSES: return %{{.*}}, %[[RQ]]
// ZIGZAG-LABEL: func @causal
// ZIGZAG-COUNT-3: dist.move_axes %{{.*}} {axes = ["seq"], from = 2 : i64, to = 1 : i64}
// ZIGZAG: train.attention
// ZIGZAG: dist.move_axes %{{.*}} {axes = ["seq"], from = 1 : i64, to = 2 : i64, zigzag}
// ZIGZAG: train.attention_grad
// ZIGZAG-COUNT-3: dist.move_axes %{{.*}} {axes = ["seq"], from = 1 : i64, to = 2 : i64, train.backward, zigzag}
// Keys and values are gathered, their gradients scattered; which keys a query sees is a range.
// LOCAL-GATHER-LABEL: func @causal
// LOCAL-GATHER-COUNT-2: dist.all_gather {{.*}}axes = ["seq"]
// LOCAL-GATHER: train.attention {{.*}} keys(%{{.*}} to %{{.*}}) {scale
// LOCAL-GATHER: train.attention_grad {{.*}} keys(%{{.*}} to %{{.*}}), {{.*}} {scale
// LOCAL-GATHER-COUNT-2: dist.reduce_scatter {{.*}}axes = ["seq"]
// Three times keys and values go on; the own ones are causal, and blocks are merged in f32.
// LOCAL-RING-LABEL: func @causal
// LOCAL-RING-COUNT-2: dist.permute {{.*}} {axes = ["seq"], shift = 1 : i64} : (tensor<2x4x4x2xf32>)
// LOCAL-RING: train.attention %arg0, %arg1, %arg2 {causal, scale
// LOCAL-RING-COUNT-2: dist.permute
// LOCAL-RING: train.attention %arg0, {{.*}} keys(%{{.*}} to %{{.*}}) {scale
// LOCAL-RING: train.log
// LOCAL-RING-COUNT-2: dist.permute
// LOCAL-RING: train.attention %arg0, {{.*}} keys(
// LOCAL-RING-NOT: dist.permute
// LOCAL-RING: train.attention %arg0, {{.*}} keys(
// LOCAL-RING: train.tanh
// In the backward pass their gradients follow them, and come back to where they belong.
// LOCAL-RING-COUNT-2: dist.permute
// LOCAL-RING: train.attention_grad {{.*}} {causal, partial, scale
// LOCAL-RING-COUNT-4: dist.permute
// LOCAL-RING: train.attention_grad {{.*}} keys({{.*}} {partial, scale
// LOCAL-RING-COUNT-4: dist.permute
// LOCAL-RING: train.attention_grad
// LOCAL-RING-COUNT-2: dist.permute
// LOCAL-RING: train.attention_grad
// LOCAL-RING-COUNT-2: dist.permute
// LOCAL-RING-NOT: dist.permute
// LOCAL-RING: return
// Four exchanges forward and four backward.
// LOCAL-ULYSSES-LABEL: func @causal
// LOCAL-ULYSSES-COUNT-3: dist.all_to_all
// LOCAL-ULYSSES: train.attention {{.*}} {causal, scale = 5.000000e-01 : f64} : (tensor<2x1x16x2xf32>
// LOCAL-ULYSSES: dist.all_to_all
// LOCAL-ULYSSES: train.tanh
// LOCAL-ULYSSES: dist.all_to_all
// LOCAL-ULYSSES: train.attention_grad
// LOCAL-ULYSSES-COUNT-3: dist.all_to_all
// LOCAL-ULYSSES-NOT: dist.all
// LOCAL-ULYSSES: return
// expected-remark@below {{attention ulysses: the heads divide evenly among the ranks}}
func.func @causal(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %o, %lse = train.attention %q, %k, %v {causal, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v, %o, %lse, %d {causal, scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>
}

// expected-remark@below {{attention ulysses: the heads divide evenly among the ranks}}
func.func @window(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %o, %lse = train.attention %q, %k, %v {causal, window = 5 : i64, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v, %o, %lse, %d {causal, window = 5 : i64, scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>
}

// expected-remark@below {{attention ulysses: the heads divide evenly among the ranks}}
func.func @everything(%q: tensor<2x8x16x4xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: tensor<2x4x16x4xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %v: tensor<2x4x16x4xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %d: tensor<2x8x16x4xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> (tensor<2x8x16x4xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x8x16x4xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x4xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x4xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %o, %lse = train.attention %q, %k, %v {scale = 0.5} : (tensor<2x8x16x4xf32>, tensor<2x4x16x4xf32>, tensor<2x4x16x4xf32>) -> (tensor<2x8x16x4xf32>, tensor<2x8x16xf32>)
  %y = train.tanh %o : tensor<2x8x16x4xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v, %o, %lse, %d {scale = 0.5, train.backward} : (tensor<2x8x16x4xf32>, tensor<2x4x16x4xf32>, tensor<2x4x16x4xf32>, tensor<2x8x16x4xf32>, tensor<2x8x16xf32>, tensor<2x8x16x4xf32>) -> (tensor<2x8x16x4xf32>, tensor<2x4x16x4xf32>, tensor<2x4x16x4xf32>)
  return %y, %dq, %dk, %dv : tensor<2x8x16x4xf32>, tensor<2x8x16x4xf32>, tensor<2x4x16x4xf32>, tensor<2x4x16x4xf32>
}

// Of the first sample some queries see nothing.
// expected-remark@below {{attention ulysses: the heads divide evenly among the ranks}}
func.func @ranges(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %b = train.constant dense<[[0, 0, 1, 0, 3, 4, 5, 6, 8, 9, 9, 0, 0, 0, 0, 15]]> : tensor<1x16xi64>
  %e = train.constant dense<[[1, 16, 5, 9, 9, 12, 13, 14, 15, 15, 10, 11, 8, 16, 0, 16], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]]> : tensor<2x16xi64>
  %o, %lse = train.attention %q, %k, %v keys(%b to %e) {scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<1x16xi64>, tensor<2x16xi64>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v keys(%b to %e), %o, %lse, %d {scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<1x16xi64>, tensor<2x16xi64>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>
}

// expected-remark@below {{attention ulysses: the heads divide evenly among the ranks}}
func.func @causal_ranges(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %b = train.constant dense<[[0, 0, 1, 0, 3, 4, 5, 6, 8, 9, 9, 0, 0, 0, 0, 15]]> : tensor<1x16xi64>
  %e = train.constant dense<[[1, 16, 5, 9, 9, 12, 13, 14, 15, 15, 10, 11, 8, 16, 0, 16], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]]> : tensor<2x16xi64>
  %o, %lse = train.attention %q, %k, %v keys(%b to %e) {causal, window = 7 : i64, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<1x16xi64>, tensor<2x16xi64>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v keys(%b to %e), %o, %lse, %d {causal, window = 7 : i64, scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<1x16xi64>, tensor<2x16xi64>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>
}

// Each head has a mask of its own.
// expected-remark@below {{attention ulysses: the heads divide evenly among the ranks}}
func.func @mask(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %r = train.iota {dim = 2 : i64} : tensor<1x4x16x16xi32>
  %c = train.iota {dim = 3 : i64} : tensor<1x4x16x16xi32>
  %h = train.iota {dim = 1 : i64} : tensor<1x4x16x16xi32>
  %s = train.mul %r, %c : tensor<1x4x16x16xi32>
  %a = train.add %s, %h : tensor<1x4x16x16xi32>
  %two = train.constant dense<2> : tensor<1x4x16x16xi32>
  %n = train.div %a, %two : tensor<1x4x16x16xi32>
  %w = train.mul %n, %two : tensor<1x4x16x16xi32>
  %m = train.compare eq, %w, %a : (tensor<1x4x16x16xi32>, tensor<1x4x16x16xi32>) -> tensor<1x4x16x16xi1>
  %o, %lse = train.attention %q, %k, %v mask(%m) {causal, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<1x4x16x16xi1>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v mask(%m), %o, %lse, %d {causal, scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<1x4x16x16xi1>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>
}

// Not in a ring: keys are gathered for what is added to scores.
// LOCAL-RING-LABEL: func @added
// LOCAL-RING-NOT: dist.permute
// LOCAL-RING-COUNT-2: dist.all_gather
// LOCAL-RING-NOT: dist.permute
// LOCAL-RING: return
// expected-remark@below {{attention ulysses: the heads divide evenly among the ranks}}
func.func @added(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %m = train.constant dense<[[[[0.5, -3.0e+38, 0.25, 1.0, 0.0, 0.0, 0.0, -2.0, 1.0, 0.5, 0.0, 0.0, 1.0, -1.0, 2.0, 0.125]]]]> : tensor<1x1x1x16xf32>
  %o, %lse = train.attention %q, %k, %v mask(%m) {causal, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<1x1x1x16xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v mask(%m), %o, %lse, %d {causal, scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<1x1x1x16xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>
}

// Nor where keys are other positions than queries.
// LOCAL-RING-LABEL: func @cross
// LOCAL-RING-NOT: dist.permute
// LOCAL-RING-COUNT-2: dist.all_gather
// LOCAL-RING-NOT: dist.permute
// LOCAL-RING: return
// expected-remark@below {{attention ulysses: the heads divide evenly among the ranks}}
func.func @cross(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: tensor<2x4x8x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %v: tensor<2x4x8x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<2x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %o, %lse = train.attention %q, %k, %v {scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v, %o, %lse, %d {scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>
}
}
