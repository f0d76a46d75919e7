// Keys and values are gathered in f32, and their gradients added up so over ranks.
// RUN: tessera-opt %s --split-attention='attention=allgather gather-type=fp32' --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.wide.mlir 2>/dev/null
// RUN: FileCheck %s --check-prefix=WIDE --input-file %t.wide.mlir
// RUN: tessera-opt %s --split-attention='attention=allgather gather-bytes=1000000' --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.own.mlir 2>/dev/null
// RUN: FileCheck %s --check-prefix=OWN --input-file %t.own.mlir
// One rounding to bf16, at the end, is at most 2^-8 from the sum; four parts that are rounded and added up are not.
// RUN: tessera-interp %t.wide.mlir --compare=%s --rtol=0.00390625 --atol=0
// RUN: not tessera-interp %t.own.mlir --compare=%s --rtol=0.00390625 --atol=0
// One head alone may take more than it may.
// RUN: tessera-opt %s --split-attention='attention=allgather gather-type=fp32 gather-bytes=300' --propagate-sharding --insert-reshards --localize 2>&1 >/dev/null | FileCheck %s --check-prefix=TOO-MUCH

module attributes {dist.mesh = #dist.mesh<seq = 4>} {
// OWN-LABEL: func @narrow
// OWN-COUNT-2: dist.all_gather {{.*}} -> tensor<16x1x1x2xbf16>
// OWN-COUNT-2: dist.reduce_scatter {{.*}} -> tensor<4x1x1x2xbf16>
// WIDE-LABEL: func @narrow
// WIDE-COUNT-2: dist.all_gather {{.*}} -> tensor<16x1x1x2xf32>
// WIDE: train.attention_grad {{.*}} -> (tensor<1x2x4x2xbf16>, tensor<1x1x16x2xf32>, tensor<1x1x16x2xf32>)
// WIDE-COUNT-2: dist.reduce_scatter {{.*}} -> tensor<4x1x1x2xf32>
// WIDE: train.convert {{.*}} -> tensor<1x1x4x2xbf16>
// TOO-MUCH: remark: keys gathered by heads: each rank sends 192 bytes, gathered it would send
// TOO-MUCH: remark: keys and values of one head at a time, with their gradients, take 512 bytes, 212 more than the 300 that they may
func.func @narrow(%q: tensor<1x2x16x2xbf16> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>},
    %k: tensor<1x1x16x2xbf16> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>, dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>})
    -> (tensor<1x2x16x2xbf16> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}, tensor<1x1x16x2xbf16> {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) {
  %o, %lse = train.attention %q, %k, %k {scale = 0.5} : (tensor<1x2x16x2xbf16>, tensor<1x1x16x2xbf16>, tensor<1x1x16x2xbf16>) -> (tensor<1x2x16x2xbf16>, tensor<1x2x16xf32>)
  %dq, %dk, %dv = train.attention_grad %q, %k, %k, %o, %lse, %o {scale = 0.5, train.backward} : (tensor<1x2x16x2xbf16>, tensor<1x1x16x2xbf16>, tensor<1x1x16x2xbf16>, tensor<1x2x16x2xbf16>, tensor<1x2x16xf32>, tensor<1x2x16x2xbf16>) -> (tensor<1x2x16x2xbf16>, tensor<1x1x16x2xbf16>, tensor<1x1x16x2xbf16>)
  return %dq, %dk : tensor<1x2x16x2xbf16>, tensor<1x1x16x2xbf16>
}
}
