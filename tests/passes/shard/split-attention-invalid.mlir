// What is refused, what is left to the compiler, and where nothing changes.
// RUN: not tessera-opt %s --split-attention=attention=rings -split-input-file 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not tessera-opt %s --split-attention=sequence-order=zig -split-input-file 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not tessera-opt %s --split-attention=attention=ulysses -split-input-file 2>&1 | FileCheck %s --check-prefix=ULYSSES
// RUN: not tessera-opt %s --split-attention=attention=ring+ulysses -split-input-file 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: tessera-opt %s --split-attention -split-input-file -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --split-attention=attention=allgather -split-input-file | FileCheck %s --check-prefixes=SAME,NONE
// RUN: tessera-opt %s --split-attention=attention=ring -split-input-file | FileCheck %s --check-prefix=NONE

// NAME: error: attention: unknown value 'rings', expected allgather, ring, ulysses, ring+ulysses or auto
// ORDER: error: sequence-order: unknown value 'zig', expected contiguous, zigzag, dealt or auto
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
