// Which dimension axes split meanwhile.
// RUN: tessera-opt %s --propagate-sharding | FileCheck %s
// RUN: tessera-opt %s --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.mlir 2>/dev/null
// RUN: FileCheck %s --check-prefix=LOCAL --input-file=%t.mlir
// RUN: tessera-interp %t.mlir --compare=%s

module attributes {dist.mesh = #dist.mesh<shard = 2, ring : sequence = 2, seq = 2>} {
// There and back: an exchange each.
// CHECK-LABEL: func @there_and_back
// CHECK: dist.move_axes %arg0 {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {"seq"}, {"ring"}]>]
// CHECK: train.exp {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {"seq"}, {"ring"}]>]
// CHECK: dist.move_axes %{{.*}} {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}, {"ring", "seq"}]>]
// LOCAL-LABEL: func @there_and_back
// LOCAL-COUNT-2: dist.all_to_all
// LOCAL-NOT: dist.all
// LOCAL: return
func.func @there_and_back(%x: tensor<4x4x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "seq"}]>}) -> (tensor<4x4x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "seq"}]>}) {
  %h = dist.move_axes %x {axes = ["seq"], from = 2 : i64, to = 1 : i64} : tensor<4x4x16xf32>
  %e = train.exp %h : tensor<4x4x16xf32>
  %p = dist.move_axes %e {axes = ["seq"], from = 1 : i64, to = 2 : i64} : tensor<4x4x16xf32>
  return %p : tensor<4x4x16xf32>
}

// Two axes, dealt in a zigzag when they come back; in the order in which they were.
// CHECK-LABEL: func @two
// CHECK: dist.move_axes %arg0 {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {"seq", "ring"}, {}]>]
// CHECK: dist.move_axes %{{.*}} {{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}, {"ring": zigzag, "seq": zigzag}]>]
func.func @two(%x: tensor<4x4x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring": zigzag, "seq": zigzag}]>}) -> (tensor<4x4x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring": zigzag, "seq": zigzag}]>}) {
  %h = dist.move_axes %x {axes = ["ring", "seq"], from = 2 : i64, to = 1 : i64} : tensor<4x4x16xf32>
  %e = train.exp %h : tensor<4x4x16xf32>
  %p = dist.move_axes %e {axes = ["ring", "seq"], from = 1 : i64, to = 2 : i64, zigzag} : tensor<4x4x16xf32>
  return %p : tensor<4x4x16xf32>
}

// Not applied: the axis is not the minor one, or splits another dimension, or none.
// CHECK-LABEL: func @others
// CHECK: dist.move_axes %arg0 {axes = ["ring"]{{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}, {"ring", "seq"}]>]
// CHECK: dist.move_axes %{{.*}} {axes = ["shard"]{{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}, {"ring", "seq"}]>]
// CHECK: dist.move_axes %{{.*}} {axes = []{{.*}}dist.shardings = [#dist.sharding<[{"shard"}, {}, {"ring", "seq"}]>]
// CHECK: dist.move_axes %arg1 {axes = ["seq"]{{.*}}dist.shardings = [#dist.sharding<[{}, {}, {}]>]
func.func @others(%x: tensor<4x4x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"ring", "seq"}]>}, %y: tensor<4x4x16xf32>) -> (tensor<4x4x16xf32>, tensor<4x4x16xf32>) {
  %0 = dist.move_axes %x {axes = ["ring"], from = 2 : i64, to = 1 : i64} : tensor<4x4x16xf32>
  %1 = dist.move_axes %0 {axes = ["shard"], from = 2 : i64, to = 1 : i64} : tensor<4x4x16xf32>
  %2 = dist.move_axes %1 {axes = [], from = 2 : i64, to = 1 : i64} : tensor<4x4x16xf32>
  %3 = dist.move_axes %y {axes = ["seq"], from = 2 : i64, to = 1 : i64} : tensor<4x4x16xf32>
  return %2, %3 : tensor<4x4x16xf32>, tensor<4x4x16xf32>
}
}
