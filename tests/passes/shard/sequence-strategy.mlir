// How the attentions of a step are computed and how positions are dealt: what is asked for, what is left open, and what cannot be.
// RUN: rm -rf %t && split-file %s %t

// RUN: not tessera-opt %t/attention.mlir --split-attention=attention=rings -split-input-file 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not tessera-opt %t/attention.mlir --split-attention=sequence-order=zig -split-input-file 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not tessera-opt %t/attention.mlir --split-attention=attention=ring:chunk=2 -split-input-file 2>&1 | FileCheck %s --check-prefix=RING-CHUNK
// RUN: not tessera-opt %t/attention.mlir --split-attention=attention=ulysses:chunk=0 -split-input-file 2>&1 | FileCheck %s --check-prefix=NO-CHUNK
// RUN: not tessera-opt %t/attention.mlir --split-attention=attention=ulysses -split-input-file 2>&1 | FileCheck %t/attention.mlir --check-prefix=ULYSSES
// RUN: not tessera-opt %t/attention.mlir --split-attention=attention=ring+ulysses -split-input-file 2>&1 | FileCheck %t/attention.mlir --check-prefix=BOTH
// RUN: tessera-opt %t/attention.mlir --split-attention -split-input-file -verify-diagnostics | FileCheck %t/attention.mlir
// RUN: tessera-opt %t/attention.mlir --split-attention=attention=allgather -split-input-file | FileCheck %t/attention.mlir --check-prefixes=SAME,NONE
// RUN: tessera-opt %t/attention.mlir --split-attention=attention=ring -split-input-file | FileCheck %t/attention.mlir --check-prefix=NONE
// NAME: error: attention: unknown value 'rings', expected allgather, ring, ulysses, ring+ulysses or auto
// ORDER: error: sequence-order: unknown value 'zig', expected contiguous, zigzag, dealt or auto
// RING-CHUNK: error: attention: 'ring' exchanges no heads that ':chunk=2' could take some of at a time
// NO-CHUNK: error: attention: expected 'ulysses:chunk=<query heads>', got 'ulysses:chunk=0'

// RUN: tessera-opt %t/refused.mlir --split-attention=attention=ring -verify-diagnostics | FileCheck %t/refused.mlir

// RUN: tessera-opt %t/documents.mlir --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring}))' -verify-diagnostics | FileCheck %t/documents.mlir
// RUN: tessera-opt %t/documents.mlir --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring},split-attention{attention=ring},propagate-sharding,insert-reshards,verify-sharding,localize,verify-sharding))' -o %t/local.mlir 2>/dev/null
// RUN: tessera-interp %t/local.mlir --compare=%t/documents.mlir --quiet
// RUN: tessera-opt %t/order.mlir --split-input-file --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring}))' -verify-diagnostics | FileCheck %t/order.mlir
// RUN: tessera-opt %t/long.mlir --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring}))' 2>/dev/null | FileCheck %t/long.mlir
// RUN: tessera-opt %t/long.mlir --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ulysses}))' 2>/dev/null | FileCheck %t/long.mlir --check-prefix=HEADS

// RUN: not tessera-opt %t/learnt.mlir --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ulysses sequence-order=dealt}))' 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: error: sequence-order dealt: each rank has all positions of its heads, and so the same work
// RUN: not tessera-opt %t/learnt.mlir --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring sequence-order=dealt:blocks=3}))' 2>&1 | FileCheck %s --check-prefix=DIVIDES
// DIVIDES: error: sequence-order dealt: positions do not divide by 6, 3 blocks for each of 2 ranks
// RUN: not tessera-opt %t/learnt.mlir --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring sequence-order=dealt:blocks=1}))' 2>&1 | FileCheck %s --check-prefix=BLOCKS
// BLOCKS: error: sequence-order: expected 'dealt:blocks=<2 to 1024>', got 'dealt:blocks=1'
// RUN: not tessera-opt %t/learnt.mlir --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring sequence-order=dealt}))' 2>&1 | FileCheck %s --check-prefix=LEARNT
// LEARNT: error: sequence-order dealt: what keys a query sees follows from what is no input
// RUN: not tessera-opt %t/no-attention.mlir --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring sequence-order=dealt}))' 2>&1 | FileCheck %s --check-prefix=NO-ATTENTION
// NO-ATTENTION: error: sequence-order dealt: there is no attention whose work could be dealt

//--- attention.mlir
// BOTH: error: attention ring+ulysses needs 2 axes of role sequence larger than 1, the major one for the ring, got #dist.mesh<shard = 2, seq = 4>

// The first attention whose heads the ranks do not divide.
// ULYSSES: error: {{.*}}has 4 query heads and 2 key heads, which do not divide evenly among 4 ranks; use ring or allgather, or ring+ulysses with a smaller last sequence axis
// ULYSSES-NOT: error: {{.*}}4 query heads and 2 key heads
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 4>} {
// CHECK-LABEL: func @few_keys
// CHECK-NOT: dist.move_axes
// CHECK: train.attention {{.*}} split = #train<attention_split ring>
// CHECK: train.attention_grad {{.*}} split = #train<attention_split ring>
// SAME-LABEL: func @few_keys
// SAME-NOT: dist.move_axes
// SAME-NOT: split
// SAME: return
// expected-remark@below {{attention ring: the heads do not divide evenly among the ranks}}
func.func @few_keys(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>},
    %k: tensor<2x2x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>},
    %v: tensor<2x2x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>},
    %d: tensor<2x4x16x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>}) -> (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x2x16x2xf32>) {
  %o, %lse = train.attention %q, %k, %v {causal, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x2x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v, %o, %lse, %d {causal, scale = 0.5, train.backward} : (tensor<2x4x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x2x16x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x2x16x2xf32>, tensor<2x2x16x2xf32>
}
}

// -----

// Three ranks for the exchange, whatever the ring has.
// BOTH: error: {{.*}}has 4 query heads and 4 key heads, which do not divide evenly among 3 ranks
module attributes {dist.mesh = #dist.mesh<ring : sequence = 2, exchange : sequence = 3>} {
// CHECK-LABEL: func @by_three
// CHECK-NOT: dist.move_axes
// CHECK: train.attention {{.*}} split = #train<attention_split ring>
// expected-remark@below {{attention ring: the heads do not divide evenly among the ranks}}
func.func @by_three(%q: tensor<2x4x24x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>},
    %k: tensor<2x4x24x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>},
    %v: tensor<2x4x24x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>},
    %d: tensor<2x4x24x2xf32> {train.role = "input", train.name = "d", train.dims = #train.dims<[sample, none, position, none]>}) -> (tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>) {
  %o, %lse = train.attention %q, %k, %v {causal, scale = 0.5} : (tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>) -> (tensor<2x4x24x2xf32>, tensor<2x4x24xf32>)
  %y = train.tanh %o : tensor<2x4x24x2xf32>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v, %o, %lse, %d {causal, scale = 0.5, train.backward} : (tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>, tensor<2x4x24xf32>, tensor<2x4x24x2xf32>) -> (tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>)
  return %y, %dq, %dk, %dv : tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>, tensor<2x4x24x2xf32>
}
}

// -----

// No zigzag where twice as many ranges do not divide the length.
module attributes {dist.mesh = #dist.mesh<ring : sequence = 2, exchange : sequence = 2>} {
// CHECK-LABEL: func @short
// CHECK: train.attention {{.*}} split = #train<attention_split ring>
// CHECK: dist.move_axes %{{.*}} {axes = ["exchange"], from = 1 : i64, to = 2 : i64} :
// expected-remark@below {{attention ring+ulysses: the heads divide evenly among the ranks}}
func.func @short(%q: tensor<2x2x12x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>},
    %k: tensor<2x2x12x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>},
    %v: tensor<2x2x12x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>}) -> (tensor<2x2x12x2xf32>) {
  %o, %lse = train.attention %q, %k, %v {causal, scale = 0.5} : (tensor<2x2x12x2xf32>, tensor<2x2x12x2xf32>, tensor<2x2x12x2xf32>) -> (tensor<2x2x12x2xf32>, tensor<2x2x12xf32>)
  %y = train.tanh %o : tensor<2x2x12x2xf32>
  return %y : tensor<2x2x12x2xf32>
}
}

// -----

// Not applied: an axis of size 1, no sequence axis.
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 1>} {
// CHECK-LABEL: func @one
// CHECK-NOT: dist.move_axes
// CHECK: train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64} :
// NONE-LABEL: func @one
// NONE: train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64} :
func.func @one(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>}) -> (tensor<2x4x16x2xf32>) {
  %o, %lse = train.attention %q, %k, %v {causal, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  return %y : tensor<2x4x16x2xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2, replicate = 2>} {
// CHECK-LABEL: func @samples
// CHECK-NOT: dist.move_axes
// CHECK: train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64} :
// NONE-LABEL: func @samples
// NONE: train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64} :
func.func @samples(%q: tensor<2x4x16x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>},
    %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>},
    %v: tensor<2x4x16x2xf32> {train.role = "input", train.name = "v", train.dims = #train.dims<[sample, none, position, none]>}) -> (tensor<2x4x16x2xf32>) {
  %o, %lse = train.attention %q, %k, %v {causal, scale = 0.5} : (tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x16x2xf32>, tensor<2x4x16xf32>)
  %y = train.tanh %o : tensor<2x4x16x2xf32>
  return %y : tensor<2x4x16x2xf32>
}
}

//--- refused.mlir
// Keys go from rank to rank where there are as many as queries and no mask is added to the scores.
module attributes {dist.mesh = #dist.mesh<seq = 2>} {
// CHECK-LABEL: func @refused
// CHECK: train.attention {{.*}} split = #train<attention_split ring>
// CHECK-NOT: split =
// CHECK: return
func.func @refused(%q: tensor<2x4x8x2xf32> {train.role = "input", train.name = "q", train.dims = #train.dims<[sample, none, position, none]>},
                   %k: tensor<2x4x16x2xf32> {train.role = "input", train.name = "k", train.dims = #train.dims<[sample, none, position, none]>},
                   %m: tensor<2x1x8x8xf32>, %b: tensor<2x1x8x8xi1>) -> (tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>) {
  %0, %l0 = train.attention %q, %q, %q mask(%b) {scale = 0.5} : (tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x1x8x8xi1>) -> (tensor<2x4x8x2xf32>, tensor<2x4x8xf32>)
  // expected-remark@+1 {{keys are gathered, not sent from rank to rank: it has 8 queries and 16 keys}}
  %1, %l1 = train.attention %q, %k, %k {scale = 0.5} : (tensor<2x4x8x2xf32>, tensor<2x4x16x2xf32>, tensor<2x4x16x2xf32>) -> (tensor<2x4x8x2xf32>, tensor<2x4x8xf32>)
  // expected-remark@+1 {{keys are gathered, not sent from rank to rank: its mask is added to the scores}}
  %2, %l2 = train.attention %q, %q, %q mask(%m) {scale = 0.5} : (tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x1x8x8xf32>) -> (tensor<2x4x8x2xf32>, tensor<2x4x8xf32>)
  return %0, %1, %2 : tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>
}
}

//--- documents.mlir
// Documents that follow from the batch: two blocks for each rank, which is what divides.
// CHECK-LABEL: func @documents
// CHECK-SAME: %arg1: tensor<4x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {"seq"}]>
// CHECK: dist.deal %{{.*}} : tensor<2x8xi64>
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
// expected-remark@below {{positions are dealt in 8 blocks, by the pairs that their queries see; inputs are gathered for it}}
func.func @documents(%ids: tensor<4x16xi64> {train.dims = #train.dims<[sample, position]>, train.name = "ids", train.role = "input"},
                     %x: tensor<4x16xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %end = train.constant dense<16> : tensor<4x16xi64>
  %q = train.broadcast %x {broadcast_dimensions = array<i64: 0, 2>} : (tensor<4x16xf32>) -> tensor<4x1x16x1xf32>
  %y, %lse = train.attention %q, %q, %q keys(%ids to %end) {causal, scale = 0.5} : (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x16xi64>, tensor<4x16xi64>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x1x16x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

//--- order.mlir
// Causal attention alone: a zigzag is enough.
// CHECK-LABEL: func @causal
// CHECK-SAME: {"seq": zigzag}
// CHECK-NOT: dist.deal
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
func.func @causal(%x: tensor<4x16xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %q = train.broadcast %x {broadcast_dimensions = array<i64: 0, 2>} : (tensor<4x16xf32>) -> tensor<4x1x16x1xf32>
  %y, %lse = train.attention %q, %q, %q {causal, scale = 0.5} : (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x1x16x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// Not in a zigzag: all see all keys.
// CHECK-LABEL: func @all_keys
// CHECK-NOT: zigzag
// CHECK-NOT: dist.deal
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
func.func @all_keys(%x: tensor<4x16xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %q = train.broadcast %x {broadcast_dimensions = array<i64: 0, 2>} : (tensor<4x16xf32>) -> tensor<4x1x16x1xf32>
  %y, %lse = train.attention %q, %q, %q {scale = 0.5} : (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x1x16x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// Nor where two ranges for each rank do not divide the length.
// CHECK-LABEL: func @odd
// CHECK-SAME: {"seq"}
// CHECK-NOT: dist.deal
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
func.func @odd(%x: tensor<4x6xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %q = train.broadcast %x {broadcast_dimensions = array<i64: 0, 2>} : (tensor<4x6xf32>) -> tensor<4x1x6x1xf32>
  %y, %lse = train.attention %q, %q, %q {causal, scale = 0.5} : (tensor<4x1x6x1xf32>, tensor<4x1x6x1xf32>, tensor<4x1x6x1xf32>) -> (tensor<4x1x6x1xf32>, tensor<4x1x6xf32>)
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x1x6x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// Nor are blocks dealt there.
// CHECK-LABEL: func @odd_documents
// CHECK-NOT: dist.deal
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
// expected-remark@below {{positions are not dealt by the work of documents: positions do not divide by two blocks for each rank}}
func.func @odd_documents(%ids: tensor<4x10xi64> {train.dims = #train.dims<[sample, position]>, train.name = "ids", train.role = "input"},
                         %x: tensor<4x10xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %end = train.constant dense<10> : tensor<4x10xi64>
  %q = train.broadcast %x {broadcast_dimensions = array<i64: 0, 2>} : (tensor<4x10xf32>) -> tensor<4x1x10x1xf32>
  %y, %lse = train.attention %q, %q, %q keys(%ids to %end) {causal, scale = 0.5} : (tensor<4x1x10x1xf32>, tensor<4x1x10x1xf32>, tensor<4x1x10x1xf32>, tensor<4x10xi64>, tensor<4x10xi64>) -> (tensor<4x1x10x1xf32>, tensor<4x1x10xf32>)
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x1x10x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// Not applied by itself where an input has more than a number for each position: all of it would be gathered.
// CHECK-LABEL: func @wide_input
// CHECK-NOT: dist.deal
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
// expected-remark@below {{positions are not dealt by the work of documents: an input has more than a number for each position, and would be gathered}}
func.func @wide_input(%ids: tensor<4x16xi64> {train.dims = #train.dims<[sample, position]>, train.name = "ids", train.role = "input"},
                      %x: tensor<4x16x8xf32> {train.dims = #train.dims<[sample, position, none]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %end = train.constant dense<16> : tensor<4x16xi64>
  %q = train.reshape %x : (tensor<4x16x8xf32>) -> tensor<4x1x16x8xf32>
  %y, %lse = train.attention %q, %q, %q keys(%ids to %end) {causal, scale = 0.5} :
    (tensor<4x1x16x8xf32>, tensor<4x1x16x8xf32>, tensor<4x1x16x8xf32>, tensor<4x16xi64>, tensor<4x16xi64>) -> (tensor<4x1x16x8xf32>, tensor<4x1x16xf32>)
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x1x16x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

//--- long.mlir
// 16 blocks for each rank at most, of at least 128 positions each, but four if they divide.
// CHECK-LABEL: func @many
// CHECK: dist.deal %{{.*}} : tensor<2x32xi64>
// Where each rank has all positions of its heads, the work is the same anyway.
// HEADS-LABEL: func @many
// HEADS-NOT: dist.deal
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
func.func @many(%ids: tensor<4x8192xi64> {train.dims = #train.dims<[sample, position]>, train.name = "ids", train.role = "input"},
                %x: tensor<4x8192xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %end = train.constant dense<8192> : tensor<4x8192xi64>
  %q = train.broadcast %x {broadcast_dimensions = array<i64: 0, 2>} : (tensor<4x8192xf32>) -> tensor<4x2x8192x1xf32>
  %y, %lse = train.attention %q, %q, %q keys(%ids to %end) {causal, scale = 0.5} : (tensor<4x2x8192x1xf32>, tensor<4x2x8192x1xf32>, tensor<4x2x8192x1xf32>, tensor<4x8192xi64>, tensor<4x8192xi64>) -> (tensor<4x2x8192x1xf32>, tensor<4x2x8192xf32>)
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x2x8192x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @few
// CHECK: dist.deal %{{.*}} : tensor<2x16xi64>
// HEADS-LABEL: func @few
// HEADS-NOT: dist.deal
func.func @few(%ids: tensor<4x2048xi64> {train.dims = #train.dims<[sample, position]>, train.name = "ids", train.role = "input"},
               %x: tensor<4x2048xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %end = train.constant dense<2048> : tensor<4x2048xi64>
  %q = train.broadcast %x {broadcast_dimensions = array<i64: 0, 2>} : (tensor<4x2048xf32>) -> tensor<4x2x2048x1xf32>
  %y, %lse = train.attention %q, %q, %q keys(%ids to %end) {causal, scale = 0.5} : (tensor<4x2x2048x1xf32>, tensor<4x2x2048x1xf32>, tensor<4x2x2048x1xf32>, tensor<4x2048xi64>, tensor<4x2048xi64>) -> (tensor<4x2x2048x1xf32>, tensor<4x2x2048xf32>)
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x2x2048x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

//--- learnt.mlir
module attributes {dist.mesh = #dist.mesh<seq = 2>} {
func.func @learnt(%x: tensor<4x16xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"},
                  %w: tensor<1xf32> {train.name = "w", train.role = "param"}) -> (tensor<f32> {train.role = "loss"}) {
  %end = train.constant dense<16> : tensor<1x16xi64>
  %q = train.broadcast %x {broadcast_dimensions = array<i64: 0, 2>} : (tensor<4x16xf32>) -> tensor<4x2x16x1xf32>
  %whole = train.convert %w : (tensor<1xf32>) -> tensor<1xi64>
  %begin = train.broadcast %whole {broadcast_dimensions = array<i64: 0>} : (tensor<1xi64>) -> tensor<1x16xi64>
  %y, %lse = train.attention %q, %q, %q keys(%begin to %end) {causal, scale = 0.5} :
    (tensor<4x2x16x1xf32>, tensor<4x2x16x1xf32>, tensor<4x2x16x1xf32>, tensor<1x16xi64>, tensor<1x16xi64>) -> (tensor<4x2x16x1xf32>, tensor<4x2x16xf32>)
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x2x16x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

//--- no-attention.mlir
module attributes {dist.mesh = #dist.mesh<seq = 2>} {
func.func @none(%x: tensor<4x16xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"}) -> (tensor<f32> {train.role = "loss"}) {
  %loss = train.reduce sum, %x {dimensions = array<i64: 0, 1>} : (tensor<4x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
