// Keys and values are gathered for some heads at a time.
// RUN: tessera-opt %s --split-attention='attention=allgather gather-bytes=512' -verify-diagnostics | FileCheck %s --check-prefix=MARK
// RUN: tessera-opt %s --split-attention='attention=allgather gather-bytes=512' --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.blocks.mlir 2>/dev/null
// RUN: FileCheck %s --check-prefix=LOCAL --input-file %t.blocks.mlir
// Every value is that of the whole form, bit by bit, and that of one rank up to rounding.
// RUN: tessera-opt %s --split-attention='attention=allgather gather-bytes=1000000' --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.whole.mlir 2>/dev/null
// RUN: FileCheck %s --check-prefix=WHOLE --input-file %t.whole.mlir
// RUN: tessera-interp %t.blocks.mlir --compare=%t.whole.mlir --rtol=0 --atol=0
// RUN: tessera-interp %t.blocks.mlir --compare=%s
// RUN: sed 's/{"seq"}/{"seq": zigzag}/g' %s > %t.zigzag.mlir
// RUN: tessera-opt %t.zigzag.mlir --split-attention='attention=allgather gather-bytes=512' --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.blocks.mlir 2>/dev/null
// RUN: tessera-interp %t.blocks.mlir --compare=%s
// The gather of a block is under way while the block in front of it is computed.
// RUN: tessera-opt %t.blocks.mlir --canonicalize --cse --split-async --prefetch --verify-schedule | FileCheck %s --check-prefix=SCHEDULE
// RUN: tessera-opt %t.blocks.mlir --canonicalize --cse --split-async --prefetch-auto=target=h100x8 --verify-schedule | FileCheck %s --check-prefix=SCHEDULE
// Of a ring only what does not travel.
// RUN: tessera-opt %s --split-attention='attention=ring gather-bytes=512 is-chosen' 2>/dev/null | FileCheck %s --check-prefix=RING
// A second run changes nothing.
// RUN: tessera-opt %s --split-attention='attention=allgather gather-bytes=512' --split-attention='attention=allgather gather-bytes=512' 2>/dev/null | FileCheck %s --check-prefix=MARK

!q = tensor<1x8x16x2xf32>
!k = tensor<1x4x16x2xf32>
module attributes {dist.mesh = #dist.mesh<seq = 4>} {
// MARK-LABEL: func @grouped
// MARK: train.attention %arg0, {{.*}} {causal, dist.gather_bytes = 512 : i64, scale
// MARK: train.attention_grad {{.*}} {causal, dist.gather_bytes = 512 : i64, scale
// Two of four key heads forward, with four query heads; backward one, since gradients count.
// LOCAL-LABEL: func @grouped
// LOCAL-COUNT-4: dist.all_gather {{.*}} {axes = ["seq"], dim = 0 : i64} : ({{.*}}) -> tensor<16x1x2x2xf32>
// LOCAL: train.attention %{{.*}} keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64} : (tensor<1x4x4x2xf32>, tensor<1x2x16x2xf32>
// LOCAL-NOT: dist.all_gather
// LOCAL: train.attention %{{.*}} keys(
// LOCAL: train.concat %{{.*}} {dim = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>) -> tensor<1x8x4x2xf32>
// LOCAL-COUNT-4: dist.all_gather {{.*}} -> tensor<16x1x1x2xf32>
// LOCAL: train.attention_grad {{.*}} keys(%{{.*}} to %{{.*}}), {{.*}} -> (tensor<1x2x4x2xf32>, tensor<1x1x16x2xf32>, tensor<1x1x16x2xf32>)
// LOCAL-COUNT-2: dist.reduce_scatter {{.*}} -> tensor<4x1x1x2xf32>
// LOCAL-COUNT-2: dist.all_gather {{.*}} -> tensor<16x1x1x2xf32>
// LOCAL: train.attention_grad
// LOCAL-COUNT-2: dist.reduce_scatter
// LOCAL-COUNT-2: dist.all_gather
// LOCAL: train.attention_grad
// LOCAL-COUNT-2: dist.reduce_scatter
// LOCAL-NOT: dist.all_gather
// LOCAL: train.attention_grad
// LOCAL-COUNT-2: dist.reduce_scatter
// LOCAL: train.concat %{{.*}} {dim = 1 : i64} : (tensor<1x2x4x2xf32>, tensor<1x2x4x2xf32>, tensor<1x2x4x2xf32>, tensor<1x2x4x2xf32>) -> tensor<1x8x4x2xf32>
// LOCAL-NOT: dist.gather
// WHOLE-LABEL: func @grouped
// WHOLE-COUNT-2: dist.all_gather
// WHOLE: train.attention
// WHOLE-COUNT-2: dist.all_gather
// WHOLE: train.attention_grad
// WHOLE-COUNT-2: dist.reduce_scatter
// WHOLE-NOT: dist.
// WHOLE: return
// SCHEDULE-LABEL: func @grouped
// SCHEDULE-COUNT-4: dist.all_gather_start
// SCHEDULE: train.attention
// SCHEDULE-COUNT-2: dist.done {{.*}} "at the first use of what arrives"
// SCHEDULE: train.attention %
// SCHEDULE-COUNT-4: dist.all_gather_start
// SCHEDULE: train.attention_grad
// SCHEDULE-COUNT-2: dist.reduce_scatter_start
// SCHEDULE: dist.all_gather_start
// SCHEDULE: dist.all_gather_start
// SCHEDULE: train.attention_grad
// SCHEDULE: return
func.func @grouped(%q: !q {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: !k {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %v: !k {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %d: !q {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>})
    -> (!q {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, !q {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, !k {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, !k {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %key = train.tanh %k : !k
  %value = train.exp %v : !k
  %o, %lse = train.attention %q, %key, %value {causal, scale = 0.5} : (!q, !k, !k) -> (!q, tensor<1x8x16xf32>)
  %dq, %dk, %dv = train.attention_grad %q, %key, %value, %o, %lse, %d {causal, scale = 0.5, train.backward} : (!q, !k, !k, !q, tensor<1x8x16xf32>, !q) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

// A mask that is added has its rows with the queries; of one with heads each block has its own.
// RING-LABEL: func @grouped
// RING: train.attention {{.*}} split = #train<attention_split ring>}
// RING-LABEL: func @added
// RING: train.attention {{.*}} {dist.gather_bytes = 512 : i64, scale
func.func @added(%q: !q {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: !k {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %m: tensor<1x8x16x16xf32> {train.role = "input", train.name = "m"}) -> (!q {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %o, %lse = train.attention %q, %k, %k mask(%m) {scale = 0.5} : (!q, !k, !k, tensor<1x8x16x16xf32>) -> (!q, tensor<1x8x16xf32>)
  return %o : !q
}

// Not applied to keys of another sequence.
// MARK-LABEL: func @cross
// MARK-NOT: dist.gather
// MARK: train.attention
// MARK: train.attention {{.*}} {dist.gather_bytes = 512
func.func @cross(%q: !q {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, %k: tensor<1x4x32x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> !q {
  // expected-remark@+1 {{keys of all heads are gathered at once, in their own type: it has 16 queries and 32 keys}}
  %o, %lse = train.attention %q, %k, %k {scale = 0.5} : (!q, tensor<1x4x32x2xf32>, tensor<1x4x32x2xf32>) -> (!q, tensor<1x8x16xf32>)
  %p, %lse2 = train.attention %o, %o, %o {scale = 0.5} : (!q, !q, !q) -> (!q, tensor<1x8x16xf32>)
  return %p : !q
}
}
