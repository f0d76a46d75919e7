// RUN: not tessera-opt %s --split-attention='attention=allgather gather-bytes=-1' 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not tessera-opt %s --split-attention='attention=allgather gather-type=f16' 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not tessera-opt %s --split-attention='attention=ring gather-bytes=8' 2>&1 | FileCheck %s --check-prefix=RING
// RUN: not tessera-opt %s --split-attention='attention=ulysses gather-type=fp32' 2>&1 | FileCheck %s --check-prefix=ULYSSES
// Where the compiler has chosen the attention, and where it is to choose, a remark.
// RUN: tessera-opt %s --split-attention='attention=ring gather-bytes=8 is-chosen' 2>&1 | FileCheck %s --check-prefix=CHOSEN
// RUN: tessera-opt %s --split-attention='gather-bytes=8' 2>&1 | FileCheck %s --check-prefix=CHOSEN
// BYTES: error: gather-bytes is -1, expected at least 0
// TYPE: error: unknown gather-type 'f16', expected compute or fp32
// RING: error: attention ring gathers no keys and values for some heads at a time or in another type
// ULYSSES: error: attention ulysses gathers no keys and values for some heads at a time or in another type
// CHOSEN: remark: attention {{ring|ulysses}}: no keys and values are gathered that could be for some heads at a time or in another type

!q = tensor<1x4x16x2xf32>
module attributes {dist.mesh = #dist.mesh<seq = 4>} {
func.func @plain(%q: !q {dist.sharding = #dist.sharding<[{}, {}, {"seq"}, {}]>}) -> !q {
  %o, %lse = train.attention %q, %q, %q {scale = 0.5} : (!q, !q, !q) -> (!q, tensor<1x4x16xf32>)
  return %o : !q
}
}
