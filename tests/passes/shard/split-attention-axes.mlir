// Two sequence axes beside one of samples: heads over the last one, a ring over the other.
// RUN: tessera-opt %s --split-attention=attention=ring+ulysses | FileCheck %s --check-prefixes=ALL,AUTO
// RUN: tessera-opt %s --split-attention -verify-diagnostics | FileCheck %s --check-prefixes=ALL,AUTO
// RUN: tessera-opt %s --split-attention=sequence-order=contiguous 2>/dev/null | FileCheck %s --check-prefixes=ALL,BOTH
// RUN: tessera-opt %s --split-attention=attention=ring | FileCheck %s --check-prefixes=ALL,RING
// RUN: tessera-opt %s --split-attention=attention=ring+ulysses --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding 2>/dev/null | FileCheck %s --check-prefix=LOCAL
// RUN: tessera-opt %s --split-attention=attention=allgather --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: tessera-opt %s --split-attention=attention=ring --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: tessera-opt %s --split-attention=attention=ring+ulysses --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: tessera-opt %s --split-attention=attention=auto --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: sed 's/"exchange"}/"exchange": zigzag}/g;s/"ring", "/"ring": zigzag, "/g' %s > %t.zigzag.mlir
// RUN: tessera-opt %t.zigzag.mlir --split-attention=attention=allgather --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: tessera-opt %t.zigzag.mlir --split-attention=attention=ring --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: tessera-opt %t.zigzag.mlir --split-attention=attention=ring+ulysses --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s
// RUN: tessera-opt %t.zigzag.mlir --split-attention=attention=auto --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.local.mlir 2>/dev/null
// RUN: tessera-interp %t.local.mlir --compare=%s

module attributes {dist.mesh = #dist.mesh<shard = 2, ring : sequence = 2, exchange : sequence = 2>} {
// ALL-LABEL: func @causal
// BOTH: %[[Q:.*]] = dist.move_axes %arg0 {axes = ["exchange"], from = 2 : i64, to = 1 : i64}
// BOTH-COUNT-2: dist.move_axes %{{.*}} {axes = ["exchange"], from = 2 : i64, to = 1 : i64}
// BOTH: train.attention %[[Q]], {{.*}}split = #train<attention_split ring>
// BOTH: dist.move_axes %{{.*}} {axes = ["exchange"], from = 1 : i64, to = 2 : i64} :
// BOTH: train.attention_grad {{.*}}split = #train<attention_split ring>
// Of causal attention positions stay split over the ring, and a zigzag balances it.
// AUTO: dist.move_axes %arg0 {axes = ["exchange"], from = 2 : i64, to = 1 : i64}
// AUTO: train.attention {{.*}}split = #train<attention_split ring>
// AUTO: dist.move_axes %{{.*}} {axes = ["exchange"], from = 1 : i64, to = 2 : i64, zigzag}
// AUTO: train.attention_grad {{.*}}split = #train<attention_split ring>
// AUTO-COUNT-3: dist.move_axes %{{.*}} {axes = ["exchange"], from = 1 : i64, to = 2 : i64, train.backward, zigzag}
// RING-NOT: dist.move_axes
// RING: train.attention %arg0, %arg1, %arg2 {{.*}}split = #train<attention_split ring>
// LOCAL-LABEL: func @causal
// LOCAL-COUNT-3: dist.all_to_all {{.*}} {axes = ["exchange"]
// LOCAL-COUNT-2: dist.permute {{.*}} {axes = ["ring"], shift = 1 : i64} : (tensor<1x1x8x2xf32>)
// LOCAL: train.attention {{.*}} {causal, scale = 5.000000e-01 : f64} : (tensor<1x2x8x2xf32>, tensor<1x1x8x2xf32>
// LOCAL-NOT: dist.permute
// LOCAL: train.attention {{.*}} keys(
// LOCAL: dist.all_to_all {{.*}} {axes = ["exchange"]
// LOCAL: train.tanh
// expected-remark@below {{attention ring+ulysses: the heads divide evenly among the ranks}}
func.func @causal(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %k: tensor<2x2x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %v: tensor<2x2x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x2x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x2x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}) {
  %o, %lse = train.attention %q, %k, %v {causal, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x2x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v, %o, %lse, %d {causal, scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x2x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x2x16x2xf32>
}

// expected-remark@below {{attention ring+ulysses: the heads divide evenly among the ranks}}
func.func @window(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}) {
  %o, %lse = train.attention %q, %k, %v {causal, window = 3 : i64, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v, %o, %lse, %d {causal, window = 3 : i64, scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>
}

// Nothing is causal: no zigzag.
// ALL-LABEL: func @ranges
// AUTO: dist.move_axes %{{.*}} {axes = ["exchange"], from = 1 : i64, to = 2 : i64} :
// expected-remark@below {{attention ring+ulysses: the heads divide evenly among the ranks}}
func.func @ranges(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}) {
  %b = train.constant dense<[[0, 0, 1, 0, 3, 4, 5, 6, 8, 9, 9, 0, 0, 0, 0, 15]]> : tensor<1x16xi64>
  %e = train.constant dense<[[1, 16, 5, 9, 9, 12, 13, 14, 15, 15, 10, 11, 8, 16, 0, 16], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]]> : tensor<2x16xi64>
  %o, %lse = train.attention %q, %k, %v keys(%b to %e) {scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<1x16xi64>, tensor<2x16xi64>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v keys(%b to %e), %o, %lse, %d {scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<1x16xi64>, tensor<2x16xi64>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>
}

// expected-remark@below {{attention ring+ulysses: the heads divide evenly among the ranks}}
func.func @mask(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>},
    %m: tensor<2x1x16x16xi1> {train.role = "input", train.name = "m", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}) -> (tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}, tensor<2x4x16x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "exchange"}, {}]>}) {
  %o, %lse = train.attention %q, %k, %v mask(%m) {causal, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x1x16x16xi1>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v mask(%m), %o, %lse, %d {causal, scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x1x16x16xi1>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>
}
}
