// RUN: tessera-opt %s --propagate-sharding | FileCheck %s
// Values in 8 bits are split as what they are made of; scales where blocks are split, and whole where elements of a block are.

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2>} {
// One scale, one for each row, one for each column.
// CHECK-LABEL: func @scales
func.func @scales(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {"replicate"}]>}, %one: tensor<f32>, %all: tensor<1x1xf32>, %rows: tensor<8x1xf32>, %columns: tensor<1x16xf32>)
    -> (tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<8x16xf32>, tensor<8x16xf32>) {
  // CHECK: train.quantize %arg0, %arg1 {dist.shardings = [#dist.sharding<[{"shard"}, {"replicate"}]>]}
  %0 = train.quantize %x, %one : (tensor<8x16xf32>, tensor<f32>) -> tensor<8x16xf8E4M3FN>
  // CHECK: train.quantize %arg0, %arg2 {dist.shardings = [#dist.sharding<[{"shard"}, {"replicate"}]>]}
  %1 = train.quantize %x, %all : (tensor<8x16xf32>, tensor<1x1xf32>) -> tensor<8x16xf8E4M3FN>
  // CHECK: train.quantize_scale {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}]>]
  %sr = train.quantize_scale down, %rows {format = f8E4M3FN} : tensor<8x1xf32>
  // CHECK: train.quantize %arg0, {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {"replicate"}]>]
  %2 = train.quantize %x, %sr : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf8E4M3FN>
  // CHECK: train.dequantize {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {"replicate"}]>]
  %d = train.dequantize %2, %sr : (tensor<8x16xf8E4M3FN>, tensor<8x1xf32>) -> tensor<8x16xf32>
  // CHECK: train.quantize_scale {{.*}}dist.shardings = [#dist.sharding<[{}, {"replicate"}]>]
  %sc = train.quantize_scale none, %columns {format = f8E4M3FN} : tensor<1x16xf32>
  %e = train.dequantize %0, %sc : (tensor<8x16xf8E4M3FN>, tensor<1x16xf32>) -> tensor<8x16xf32>
  return %0, %1, %d, %e : tensor<8x16xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<8x16xf32>, tensor<8x16xf32>
}

// Blocks of 4 rows and 4 columns: each rank has whole blocks.
// CHECK-LABEL: func @blocks
func.func @blocks(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {"replicate"}]>}, %amax: tensor<2x4xf32>) -> (tensor<8x16xf8E5M2>, tensor<2x4xf32>) {
  // CHECK: train.quantize_scale {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {"replicate"}]>]
  %s = train.quantize_scale none, %amax {format = f8E5M2} : tensor<2x4xf32>
  // CHECK: train.quantize {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {"replicate"}]>]
  %q = train.quantize %x, %s : (tensor<8x16xf32>, tensor<2x4xf32>) -> tensor<8x16xf8E5M2>
  return %q, %s : tensor<8x16xf8E5M2>, tensor<2x4xf32>
}

// Time first: ranks have a part of every block, and all scales.
// CHECK-LABEL: func @inside
func.func @inside(%x: tensor<2x4x16xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}, {}]>}, %amax: tensor<2x16xf32>) -> (tensor<2x4x16xf8E4M3FN>, tensor<2x16xf32>) {
  %rows = train.reshape %x : (tensor<2x4x16xf32>) -> tensor<8x16xf32>
  // CHECK: train.quantize_scale {{.*}}dist.shardings = [#dist.sharding<[{}, {}]>]
  %s = train.quantize_scale down, %amax {format = f8E4M3FN} : tensor<2x16xf32>
  // CHECK: train.quantize {{.*}}dist.shardings = [#dist.sharding<[{2, "shard"}, {}]>]
  %q = train.quantize %rows, %s : (tensor<8x16xf32>, tensor<2x16xf32>) -> tensor<8x16xf8E4M3FN>
  %y = train.reshape %q : (tensor<8x16xf8E4M3FN>) -> tensor<2x4x16xf8E4M3FN>
  return %y, %s : tensor<2x4x16xf8E4M3FN>, tensor<2x16xf32>
}

// Tokens of the left side, outputs of the right one.
// CHECK-LABEL: func @output
func.func @output(%x: tensor<8x32xf8E4M3FN> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %w: tensor<16x32xf8E4M3FN> {dist.sharding = #dist.sharding<[{"replicate"}, {}]>},
                  %sx: tensor<8x1xf32>, %sw: tensor<16x1xf32>) -> tensor<8x16xf32> {
  // CHECK: train.div %arg2, {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}]>]
  %x1 = train.div %sx, %sx : tensor<8x1xf32>
  // CHECK: train.div %arg3, {{.*}}dist.shardings = [#dist.sharding<[{"replicate"}, {}]>]
  %w1 = train.div %sw, %sw : tensor<16x1xf32>
  // CHECK: train.scaled_dot {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {"replicate"}]>]
  %y = train.scaled_dot %x, %w scaled %x1, %w1 {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two} : (tensor<8x32xf8E4M3FN>, tensor<16x32xf8E4M3FN>, tensor<8x1xf32>, tensor<16x1xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// What ranks contract is a partial sum, with one scale for all, or one for each of the blocks that ranks have.
// CHECK-LABEL: func @sums
func.func @sums(%g: tensor<8x4xf8E5M2> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %x: tensor<8x16xf8E4M3FN> {dist.sharding = #dist.sharding<[{"shard"}, {}]>},
                %one: tensor<1x1xf32>, %sg: tensor<2x4xf32>, %sx: tensor<2x16xf32>, %few: tensor<1x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
  // CHECK: train.scaled_dot {{.*}}dist.shardings = [#dist.sharding<[{}, {}], unreduced = {"shard"}>]
  %0 = train.scaled_dot %g, %x scaled %one, %one {lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<8x4xf8E5M2>, tensor<8x16xf8E4M3FN>, tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<4x16xf32>
  // CHECK: train.div %arg3, {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}]>]
  %ig = train.div %sg, %sg : tensor<2x4xf32>
  // CHECK: train.div %arg4, {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}]>]
  %ix = train.div %sx, %sx : tensor<2x16xf32>
  // CHECK: train.scaled_dot {{.*}}dist.shardings = [#dist.sharding<[{}, {}], unreduced = {"shard"}>]
  %1 = train.scaled_dot %g, %x scaled %ig, %ix {lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, power_of_two} : (tensor<8x4xf8E5M2>, tensor<8x16xf8E4M3FN>, tensor<2x4xf32>, tensor<2x16xf32>) -> tensor<4x16xf32>
  // CHECK: train.scaled_dot {{.*}}dist.shardings = [#dist.sharding<[{}, {}], unreduced = {"shard"}>]
  %2 = train.scaled_dot %g, %x scaled %ig, %few {lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, power_of_two} : (tensor<8x4xf8E5M2>, tensor<8x16xf8E4M3FN>, tensor<2x4xf32>, tensor<1x16xf32>) -> tensor<4x16xf32>
  return %0, %1, %2 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}
}
