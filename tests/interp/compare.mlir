// The same step on flat, sharded parameters and split data gives the same loss and parameters, found by their names.
// RUN: tessera-interp %s --compare=%S/Inputs/global.mlir
// RUN: tessera-interp %s --compare=%S/Inputs/global.mlir --seed=2
// RUN: sed s/train.neg/train.abs/ %s > %t.mlir
// RUN: not tessera-interp %t.mlir --compare=%S/Inputs/global.mlir 2>&1 | FileCheck %s
// RUN: tessera-interp %s --digest | FileCheck %s --check-prefix=DIGEST

// CHECK: error: result 'b' differs: worst at [{{[01]}}], got

// DIGEST: @step
// DIGEST: loss: tensor<f32> sum
// DIGEST: b: tensor<2xf32> sum
// DIGEST: w: tensor<4x2xf32> sum

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
func.func @step(%u: tensor<6xf32> {train.role = "param", train.name = "unit", dist.sharding = #dist.sharding<[{"shard"}]>, dist.global = tensor<12xf32>,
                    train.segments = [#train.segment<"b", offset = 0, shape = [2]>, #train.segment<"w", offset = 2, shape = [4, 2]>]},
                %x: tensor<4x4xf32> {train.role = "input", train.name = "x", dist.sharding = #dist.sharding<[{"shard"}, {}]>, dist.global = tensor<8x4xf32>})
    -> (tensor<f32> {train.role = "loss"}, tensor<6xf32> {train.alias = 0 : i64}) {
  %whole = dist.all_gather %u {axes = ["shard"], dim = 0 : i64} : (tensor<6xf32>) -> tensor<12xf32>
  %part = train.slice %whole {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<12xf32>) -> tensor<2xf32>
  %flat = train.slice %whole {starts = array<i64: 2>, limits = array<i64: 10>, strides = array<i64: 1>} : (tensor<12xf32>) -> tensor<8xf32>
  %w = train.reshape %flat : (tensor<8xf32>) -> tensor<4x2xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %mine = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<4x2xf32>) -> tensor<f32>
  %loss = dist.all_reduce %mine {axes = ["shard"]} : (tensor<f32>) -> tensor<f32>
  %b2 = train.neg %part : tensor<2xf32>
  %w2 = train.add %flat, %flat : tensor<8xf32>
  %pad = train.constant dense<0.0> : tensor<2xf32>
  %next = train.concat %b2, %w2, %pad {dim = 0 : i64} : (tensor<2xf32>, tensor<8xf32>, tensor<2xf32>) -> tensor<12xf32>
  %local = dist.slice_local %next {axes = ["shard"], dim = 0 : i64} : (tensor<12xf32>) -> tensor<6xf32>
  return %loss, %local : tensor<f32>, tensor<6xf32>
}
}
