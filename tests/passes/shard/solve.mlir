// The layouts that an op needs and gives: axes go to factors of its rule, sums and maxima over split dimensions are owed, and what
// operands owe passes where the op is linear or keeps order.
// RUN: rm -rf %t && split-file %s %t
// RUN: tessera-opt %t/factors.mlir --propagate-sharding | FileCheck %t/factors.mlir
// RUN: tessera-opt %t/owed.mlir --propagate-sharding --insert-reshards --verify-sharding -o %t/global.mlir
// RUN: FileCheck %t/owed.mlir --input-file=%t/global.mlir
// RUN: tessera-opt %t/global.mlir --localize --verify-sharding | FileCheck %t/owed.mlir --check-prefix=LOCAL
// Each op computes on parts what it computes on the whole.
// RUN: tessera-opt %t/factors.mlir --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t/local.mlir
// RUN: tessera-interp %t/local.mlir --compare=%t/factors.mlir --quiet
// RUN: tessera-opt %t/global.mlir --localize -o %t/local.mlir
// RUN: tessera-interp %t/local.mlir --compare=%t/owed.mlir --quiet
// Not applied, with a remark where it costs: an op needs whole what ranks have in parts.
// RUN: tessera-opt %t/gathered.mlir --propagate-sharding --insert-reshards --verify-sharding -verify-diagnostics | FileCheck %t/gathered.mlir

//--- factors.mlir
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// A batch flows forward; a sum over it is unreduced, and stays so through linear ops.
// CHECK-LABEL: func @forward
// CHECK-SAME: -> (tensor<f32> {dist.sharding = #dist.sharding<[]>})
func.func @forward(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %w: tensor<4x2xf32>) -> tensor<f32> {
  // CHECK: train.dot_general {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}]>]
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  // CHECK: train.reduce sum{{.*}}dist.shardings = [#dist.sharding<[], unreduced = {"shard"}>]
  %s = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<8x2xf32>) -> tensor<f32>
  // CHECK: train.neg {{.*}}dist.shardings = [#dist.sharding<[], unreduced = {"shard"}>]
  %n = train.neg %s : tensor<f32>
  // CHECK: train.exp {{.*}}dist.shardings = [#dist.sharding<[]>]
  %e = train.exp %n : tensor<f32>
  return %e : tensor<f32>
}

// The major factor of merged dimensions carries the axis both ways.
// CHECK-LABEL: func @reshape
func.func @reshape(%x: tensor<8x6x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {}]>}) -> tensor<2x2x48xf32> {
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}]>]
  %a = train.reshape %x : (tensor<8x6x4xf32>) -> tensor<48x4xf32>
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}, {}]>]
  %b = train.reshape %a : (tensor<48x4xf32>) -> tensor<8x3x8xf32>
  // Two and two of "shard" cannot be told apart: an axis is not split.
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{}, {}, {}]>]
  %c = train.reshape %b : (tensor<8x3x8xf32>) -> tensor<2x2x48xf32>
  return %c : tensor<2x2x48xf32>
}

// A minor factor carries the axis inside of blocks: of 5, then of 2 where the dimension is cut there. A result has one range per rank, or is whole.
// CHECK-LABEL: func @blocks
// CHECK-SAME: -> (tensor<40xf32> {dist.sharding = #dist.sharding<[{}]>}, tensor<5x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>})
func.func @blocks(%x: tensor<5x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}, %z: tensor<10x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}) -> (tensor<40xf32>, tensor<5x8xf32>) {
  // CHECK: train.reshape %arg0 {dist.shardings = [#dist.sharding<[{5, "shard"}]>]}
  %a = train.reshape %x : (tensor<5x8xf32>) -> tensor<40xf32>
  // CHECK: train.iota {{.*}}dist.shardings = [#dist.sharding<[{5, "shard"}]>]
  %i = train.iota {dim = 0 : i64} : tensor<40xf32>
  // CHECK: train.add {{.*}}dist.shardings = [#dist.sharding<[{5, "shard"}]>]
  %b = train.add %a, %i : tensor<40xf32>
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{}, {"shard"}]>]
  %c = train.reshape %b : (tensor<40xf32>) -> tensor<5x8xf32>
  // CHECK: train.reshape %arg1 {dist.shardings = [#dist.sharding<[{10, "shard"}]>]}
  %d = train.reshape %z : (tensor<10x8xf32>) -> tensor<80xf32>
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{}, {2, "shard"}]>]
  %e = train.reshape %d : (tensor<80xf32>) -> tensor<5x16xf32>
  // What is no part of a factor cannot be split: 4 rows of 10 are no rows of 8.
  // CHECK: train.reshape {{.*}}dist.shardings = [#dist.sharding<[{}, {}]>]
  %f = train.reshape %b : (tensor<40xf32>) -> tensor<4x10xf32>
  return %b, %c : tensor<40xf32>, tensor<5x8xf32>
}

// Sums of partial sums are partial sums; zeros are their own.
// CHECK-LABEL: func @gradient
func.func @gradient(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %b: tensor<4xf32>, %i: tensor<8xi32> {dist.sharding = #dist.sharding<[{"shard"}]>})
    -> (tensor<8xf32>, tensor<4xf32>, tensor<10x4xf32> {dist.sharding = #dist.sharding<[{}, {}]>}) {
  %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8x4xf32>) -> tensor<4xf32>
  %zero = train.constant dense<0.0> : tensor<4xf32>
  // CHECK: train.concat {{.*}}dist.shardings = [#dist.sharding<[{}], unreduced = {"shard"}>]
  %g = train.concat %s, %zero {dim = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  // CHECK: train.add {{.*}}dist.shardings = [#dist.sharding<[{}]>]
  %a = train.add %s, %b : tensor<4xf32>
  %init = train.constant dense<0.0> : tensor<10x4xf32>
  // CHECK: train.scatter_add_rows {{.*}}dist.shardings = [#dist.sharding<[{}, {}], unreduced = {"shard"}>]
  %e = train.scatter_add_rows %init, %i, %x : (tensor<10x4xf32>, tensor<8xi32>, tensor<8x4xf32>) -> tensor<10x4xf32>
  return %g, %a, %e : tensor<8xf32>, tensor<4xf32>, tensor<10x4xf32>
}

// Operands decide in their order; one that says more of a factor than the first wins, and an axis splits one factor alone.
// CHECK-LABEL: func @order
func.func @order(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %y: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"replicate"}, {}]>},
                 %z: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"replicate", "shard"}, {}]>}, %t: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK: train.mul %arg0, %arg1 {{.*}}[#dist.sharding<[{"shard"}, {}]>]
  %0 = train.mul %x, %y : tensor<8x8xf32>
  // CHECK: train.mul %arg1, %arg0 {{.*}}[#dist.sharding<[{"replicate"}, {}]>]
  %1 = train.mul %y, %x : tensor<8x8xf32>
  // CHECK: train.mul %arg1, %arg2 {{.*}}[#dist.sharding<[{"replicate", "shard"}, {}]>]
  %2 = train.mul %y, %z : tensor<8x8xf32>
  // CHECK: train.mul %arg0, %arg3 {{.*}}[#dist.sharding<[{"shard"}, {}]>]
  %3 = train.mul %x, %t : tensor<8x8xf32>
  return %0, %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// Not split: what an op needs whole, and what the ranks do not divide.
// CHECK-LABEL: func @whole
func.func @whole(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"replicate"}, {"shard"}]>}, %y: tensor<4x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>})
    -> (tensor<8x8xi32>, tensor<8x4xf32>, tensor<2x4x8xf32>, tensor<3x8xf32>) {
  // CHECK: train.sort_indices {{.*}}[#dist.sharding<[{"replicate"}, {}]>]
  %0 = train.sort_indices %x {dim = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xi32>
  // CHECK: train.slice {{.*}}[#dist.sharding<[{"replicate"}, {}]>]
  %s = train.slice %x {starts = array<i64: 0, 1>, limits = array<i64: 8, 5>, strides = array<i64: 1, 1>} : (tensor<8x8xf32>) -> tensor<8x4xf32>
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: train.reshape {{.*}}[#dist.sharding<[{}, {}, {"replicate"}]>]
  %1 = train.reshape %t : (tensor<8x8xf32>) -> tensor<2x4x8xf32>
  // CHECK: train.reshape {{.*}}[#dist.sharding<[{}, {}]>]
  %2 = train.reshape %y : (tensor<4x6xf32>) -> tensor<3x8xf32>
  return %0, %s, %1, %2 : tensor<8x8xi32>, tensor<8x4xf32>, tensor<2x4x8xf32>, tensor<3x8xf32>
}

// A splat constant can be had in any layout, but only zeros are their own partial sum: anything else would be added up once for
// each rank, as a whole term would.
// CHECK-LABEL: func @splats
func.func @splats(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %half = train.constant dense<0.5> : tensor<8x4xf32>
  // CHECK: train.add %{{.*}}, %arg0 {{.*}}[#dist.sharding<[{"shard"}, {}]>]
  %0 = train.add %half, %x : tensor<8x4xf32>
  %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8x4xf32>) -> tensor<4xf32>
  %zero = train.constant dense<0.0> : tensor<4xf32>
  %one = train.constant dense<1.0> : tensor<4xf32>
  // CHECK: train.add {{.*}}[#dist.sharding<[{}], unreduced = {"shard"}>]
  %1 = train.add %s, %zero : tensor<4xf32>
  // CHECK: train.add {{.*}}[#dist.sharding<[{}]>]
  %2 = train.add %s, %one : tensor<4xf32>
  // Products of two partial sums are none of the product.
  // CHECK: train.mul {{.*}}[#dist.sharding<[{}]>]
  %3 = train.mul %s, %s : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
}

//--- owed.mlir
module attributes {dist.mesh = #dist.mesh<shard = 4, seq = 2>} {
// Beside a partial maximum a whole value is one itself: nothing is masked.
// CHECK-LABEL: func @join
// CHECK: train.max {{.*}}unreduced = {"shard": max}
// CHECK: train.concat {{.*}}unreduced = {"shard": max}
// LOCAL-LABEL: func @join
// LOCAL-NOT: dist.axis_index
// LOCAL: train.max
// LOCAL: train.concat
// LOCAL: dist.all_reduce {{.*}}kind = #dist<reduction max>
func.func @join(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %y: tensor<6xf32>) -> tensor<12xf32> {
  %m = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<8x6xf32>) -> tensor<6xf32>
  %b = train.max %m, %y : tensor<6xf32>
  %c = train.concat %b, %y {dim = 0 : i64} : (tensor<6xf32>, tensor<6xf32>) -> tensor<12xf32>
  return %c : tensor<12xf32>
}

// A maximum of minima is no minimum of maxima, and a sum of maxima no maximum of sums: one is reduced before the other.
// CHECK-LABEL: func @mixed
// CHECK: %[[A:.*]] = train.reduce max{{.*}}unreduced = {"shard": max}
// CHECK: %[[RA:.*]] = dist.reshard %[[A]]
// CHECK: train.reduce sum, %[[RA]]{{.*}}[#dist.sharding<[], unreduced = {"seq"}>]
// CHECK: train.reduce min, %[[RA]]{{.*}}[#dist.sharding<[], unreduced = {"seq": min}>]
// CHECK: train.max
func.func @mixed(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {"seq"}]>}) -> (tensor<f32>, tensor<f32>, tensor<6xf32>) {
  %m = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<8x6xf32>) -> tensor<6xf32>
  %s = train.reduce sum, %m {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  %l = train.reduce min, %m {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  %o = train.reduce min, %x {dimensions = array<i64: 0>} : (tensor<8x6xf32>) -> tensor<6xf32>
  %b = train.max %m, %o : tensor<6xf32>
  return %s, %l, %b : tensor<f32>, tensor<f32>, tensor<6xf32>
}

// Of one kind alone, also over one axis: a sum beside a maximum is added up, and so is a minimum over another axis taken.
// CHECK-LABEL: func @kinds
// CHECK: %[[S:.*]] = train.reduce sum, %arg0 {{.*}}[#dist.sharding<[{}], unreduced = {"shard"}>]
// CHECK: %[[M:.*]] = train.reduce max, %arg0 {{.*}}[#dist.sharding<[{}], unreduced = {"shard": max}>]
// CHECK: %[[RS:.*]] = dist.reshard %[[S]] <[{}], unreduced = {"shard"}> to <[{}]>
// CHECK: %[[RM:.*]] = dist.reshard %[[M]] <[{}], unreduced = {"shard": max}> to <[{}]>
// CHECK: train.max %[[RS]], %[[RM]] {dist.shardings = [#dist.sharding<[{}]>]}
// CHECK: train.max %[[RM]], %[[RS]] {dist.shardings = [#dist.sharding<[{}]>]}
// CHECK: %[[L:.*]] = train.reduce min, %arg1 {{.*}}[#dist.sharding<[{}], unreduced = {"seq": min}>]
// CHECK: %[[RL:.*]] = dist.reshard %[[L]] <[{}], unreduced = {"seq": min}> to <[{}]>
// CHECK: train.concat %[[M]], %[[RL]] {{.*}}[#dist.sharding<[{}], unreduced = {"shard": max}>]
func.func @kinds(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %y: tensor<2x6xf32> {dist.sharding = #dist.sharding<[{"seq"}, {}]>}) -> (tensor<6xf32>, tensor<6xf32>, tensor<12xf32>) {
  %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8x6xf32>) -> tensor<6xf32>
  %m = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<8x6xf32>) -> tensor<6xf32>
  %0 = train.max %s, %m : tensor<6xf32>
  %1 = train.max %m, %s : tensor<6xf32>
  %l = train.reduce min, %y {dimensions = array<i64: 0>} : (tensor<2x6xf32>) -> tensor<6xf32>
  %2 = train.concat %m, %l {dim = 0 : i64} : (tensor<6xf32>, tensor<6xf32>) -> tensor<12xf32>
  return %0, %1, %2 : tensor<6xf32>, tensor<6xf32>, tensor<12xf32>
}
}

//--- gathered.mlir
module attributes {dist.mesh = #dist.mesh<tp = 2>} {
// CHECK-LABEL: func @sorted
// CHECK: %[[WHOLE:.*]] = dist.reshard %arg0 <[{}, {"tp"}]> to <[{}, {}]>
// CHECK: train.sort_indices %[[WHOLE]]
func.func @sorted(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<[{}, {"tp"}]>}) -> tensor<4x8xi32> {
  // expected-remark@+1 {{gathers 'tensor<4x8xf32>' over 'tp': it is in parts where this op needs it whole}}
  %0 = train.sort_indices %x {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xi32>
  return %0 : tensor<4x8xi32>
}
}
