// What is owed over an axis may be a maximum or a minimum, and passes where it may.
// RUN: tessera-opt %s --propagate-sharding --insert-reshards --verify-sharding -split-input-file | FileCheck %s
// RUN: tessera-opt %s --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -split-input-file | FileCheck %s --check-prefix=LOCAL

module attributes {dist.mesh = #dist.mesh<shard = 4, seq = 2>} {
// One all-reduce of the reduced shape, after everything that keeps order.
// CHECK-LABEL: func @maximum
// CHECK: train.abs {{.*}}<[{"shard"}, {}]>
// CHECK: train.reduce max{{.*}}[#dist.sharding<[{}], unreduced = {"shard": max}>]
// CHECK: train.reshape {{.*}}[#dist.sharding<[{}, {}], unreduced = {"shard": max}>]
// CHECK: train.transpose {{.*}}unreduced = {"shard": max}
// CHECK: train.convert {{.*}}unreduced = {"shard": max}
// CHECK: train.reduce max{{.*}}[#dist.sharding<[], unreduced = {"shard": max}>]
// CHECK: dist.reshard %{{.*}} <[], unreduced = {"shard": max}> to <[]>
// LOCAL-LABEL: func @maximum
// LOCAL-NOT: dist.all_gather
// LOCAL: dist.all_reduce %{{.*}} {axes = ["shard"], kind = #dist<reduction max>} : (tensor<f64>) -> tensor<f64>
// LOCAL-NOT: dist.all
// LOCAL: return
func.func @maximum(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> tensor<f64> {
  %a = train.abs %x : tensor<8x6xf32>
  %m = train.reduce max, %a {dimensions = array<i64: 0>} : (tensor<8x6xf32>) -> tensor<6xf32>
  %r = train.reshape %m : (tensor<6xf32>) -> tensor<2x3xf32>
  %t = train.transpose %r {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %c = train.convert %t : (tensor<3x2xf32>) -> tensor<3x2xf64>
  %all = train.reduce max, %c {dimensions = array<i64: 0, 1>} : (tensor<3x2xf64>) -> tensor<f64>
  return %all : tensor<f64>
}

// A minimum of narrow floats is taken in f32, which is exact.
// LOCAL-LABEL: func @minimum
// LOCAL: %[[W:.*]] = train.convert %{{.*}} : (tensor<6xbf16>) -> tensor<6xf32>
// LOCAL: %[[M:.*]] = dist.all_reduce %[[W]] {axes = ["shard"], kind = #dist<reduction min>}
// LOCAL: train.convert %[[M]] : (tensor<6xf32>) -> tensor<6xbf16>
func.func @minimum(%x: tensor<8x6xbf16> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> tensor<6xbf16> {
  %m = train.reduce min, %x {dimensions = array<i64: 0>} : (tensor<8x6xbf16>) -> tensor<6xbf16>
  return %m : tensor<6xbf16>
}

// What does not keep order, or rounds, reduces first.
// CHECK-LABEL: func @not_monotone
// CHECK: %[[M:.*]] = train.reduce max
// CHECK: %[[R:.*]] = dist.reshard %[[M]] <[{}], unreduced = {"shard": max}> to <[{}]>
// CHECK: train.neg %[[R]]
// CHECK: train.convert %[[R]]
// CHECK: train.mul %[[R]], %[[R]]
func.func @not_monotone(%x: tensor<8x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<6xf32>, tensor<6xbf16>, tensor<6xf32>) {
  %m = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<8x6xf32>) -> tensor<6xf32>
  %n = train.neg %m : tensor<6xf32>
  %c = train.convert %m : (tensor<6xf32>) -> tensor<6xbf16>
  %s = train.mul %m, %m : tensor<6xf32>
  return %n, %c, %s : tensor<6xf32>, tensor<6xbf16>, tensor<6xf32>
}

// The maximum that is wanted in parts is reduced whole and then sliced.
// LOCAL-LABEL: func @parts
// LOCAL: dist.all_reduce {{.*}}kind = #dist<reduction max>
// LOCAL-NOT: dist.reduce_scatter
// LOCAL: dist.slice_local
func.func @parts(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) {
  %m = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<8x8xf32>) -> tensor<8xf32>
  return %m : tensor<8xf32>
}

// Gradients of keys and values whose query heads are split inside of a group are partial sums, that of queries is not.
// CHECK-LABEL: func @heads_of_a_group
// CHECK: train.attention_grad {{.*}}dist.shardings = [#dist.sharding<[{}, {"shard"}, {}, {}]>, #dist.sharding<[{}, {}, {}, {}], unreduced = {"shard"}>, #dist.sharding<[{}, {}, {}, {}], unreduced = {"shard"}>]
func.func @heads_of_a_group(%q: tensor<2x4x3x2xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}, {}, {}]>}, %k: tensor<2x1x3x2xf32>, %v: tensor<2x1x3x2xf32>) -> (tensor<2x4x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>) {
  %o, %lse = train.attention %q, %k, %v {scale = 0.7} : (tensor<2x4x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>) -> (tensor<2x4x3x2xf32>, tensor<2x4x3xf32>)
  %dq, %dk, %dv = train.attention_grad %q, %k, %v, %o, %lse, %o {scale = 0.7} : (tensor<2x4x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x4x3x2xf32>, tensor<2x4x3xf32>, tensor<2x4x3x2xf32>) -> (tensor<2x4x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>)
  return %dq, %dk, %dv : tensor<2x4x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>
}
}
