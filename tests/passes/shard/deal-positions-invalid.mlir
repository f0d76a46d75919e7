// What is not dealt, and why.
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ulysses sequence-order=dealt}))' 2>&1 | FileCheck %s --check-prefix=HEADS
// HEADS: error: sequence-order dealt: each rank has all positions of its heads, and so the same work
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring sequence-order=dealt:blocks=3}))' 2>&1 | FileCheck %s --check-prefix=DIVIDES
// DIVIDES: error: sequence-order dealt: positions do not divide by 6, 3 blocks for each of 2 ranks
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring sequence-order=dealt:blocks=1}))' 2>&1 | FileCheck %s --check-prefix=BLOCKS
// BLOCKS: error: sequence-order: expected 'dealt:blocks=<2 to 1024>', got 'dealt:blocks=1'
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring sequence-order=dealt}))' 2>&1 | FileCheck %s --check-prefix=LEARNT
// LEARNT: error: sequence-order dealt: what keys a query sees follows from what is no input
// RUN: not tessera-opt %S/Inputs/not-dealt.mlir --pass-pipeline='builtin.module(func.func(propagate-sharding,insert-reshards,localize))' 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: dimension 0 is dealt in 8 blocks, but no dist.deal in front says in which order

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
