// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=full}))' 2>&1 | FileCheck %s --check-prefix=FULL
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=selective}))' | FileCheck %s --check-prefix=SELECTIVE

// A model without blocks is one segment. Recomputing all of it at the start of the backward pass would save nothing.
// The random mask is made again from the same seed, which is read through a barrier.

// FULL: remark: nothing is recomputed: no name has an integer component
// FULL-NOT: train.recompute
// SELECTIVE: train.tanh
// SELECTIVE: train.rng_uniform
// SELECTIVE: train.barrier %{{.*}} {segment = "root", train.backward, train.recompute} : tensor<4x4xf32>
// SELECTIVE: train.tanh {{.*}}train.recompute
// SELECTIVE: %[[SEED:.*]] = train.barrier %arg1 {segment = "root", train.backward, train.recompute} : tensor<i64>
// SELECTIVE: train.rng_uniform %[[SEED]] {{.*}}train.recompute
func.func @step(%w: tensor<4x4xf32> {train.role = "param", train.name = "w"}, %seed: tensor<i64> {train.role = "hyper", train.name = "seed"},
                %x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %a = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %h = train.tanh %a : tensor<4x4xf32>
  %r = train.rng_uniform %seed {stream = 7 : i64} : (tensor<i64>) -> tensor<4x4xf32>
  %d = train.mul %h, %r : tensor<4x4xf32>
  %loss = train.reduce sum, %d {dimensions = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
