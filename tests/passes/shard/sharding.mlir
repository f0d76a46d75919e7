// The layouts of a step's values: what is read of arguments and ops and what is refused, what a loop over micro-batches takes, and
// which dimension axes split meanwhile.
// RUN: rm -rf %t && split-file %s %t
// RUN: tessera-opt %t/layouts.mlir --propagate-sharding | FileCheck %t/layouts.mlir
// RUN: tessera-opt %t/layouts.mlir --propagate-sharding --insert-reshards 2>/dev/null | FileCheck %t/layouts.mlir --check-prefix=RESHARD
// RUN: tessera-opt %t/layouts.mlir --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t/local.mlir 2>/dev/null
// RUN: FileCheck %t/layouts.mlir --check-prefix=LOCAL --input-file=%t/local.mlir
// RUN: tessera-interp %t/local.mlir --compare=%t/layouts.mlir
// RUN: tessera-opt %t/dealt.mlir --propagate-sharding | FileCheck %t/dealt.mlir
// RUN: tessera-opt %t/dealt.mlir --propagate-sharding --insert-reshards 2>&1 | FileCheck %t/dealt.mlir --check-prefix=SAID
// RUN: tessera-opt %t/invalid.mlir --verify-sharding -split-input-file -verify-diagnostics

//--- layouts.mlir
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

// A loop takes its batch with the dimension that counts micro-batches whole, and a micro-batch lacks it. Without a sharding an
// argument is whole.
// CHECK-LABEL: func @accumulate
// CHECK-SAME: %arg1: tensor<8xf32> {dist.sharding = #dist.sharding<[{}]>}
// CHECK: train.accumulate {{.*}}dist.shardings = [#dist.sharding<[{"shard"}]>]
// CHECK: train.mul {{.*}}dist.shardings = [#dist.sharding<[{"shard"}]>]
// RESHARD-LABEL: func @accumulate
// RESHARD: %[[WHOLE:.*]] = dist.reshard %arg0 <[{"ring"}, {"shard"}]> to <[{}, {"shard"}]>
// RESHARD: train.accumulate %[[WHOLE]]
func.func @accumulate(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<[{"ring"}, {"shard"}]>}, %w: tensor<8xf32>) -> tensor<8xf32> {
  %s = train.accumulate %x {count = 4 : i64} : (tensor<4x8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<8xf32>):
    %e = train.mul %m, %w : tensor<8xf32>
    train.yield %e : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// There is nothing to shard in a declaration.
// CHECK: func.func private @declared(tensor<8xf32>)
func.func private @declared(tensor<8xf32>)
}

//--- dealt.mlir
module attributes {dist.mesh = #dist.mesh<ring : sequence = 2, seq = 2>} {
// What is dealt goes on being dealt: each rank has some of its group's blocks. Not applied where there is one block for two ranks.
// SAID: remark: nothing is exchanged: dimension 1 is not split by ["seq"]
// CHECK-LABEL: func @dealt
// CHECK: dist.move_axes {{.*}}dist.shardings = [#dist.sharding<[{}, {}, {"ring": dealt 4, "seq": dealt 4}]>]
// CHECK: dist.move_axes {{.*}}dist.shardings = [#dist.sharding<[{}, {"seq"}, {"ring": dealt 2}]>]
func.func @dealt(%x: tensor<4x4x16xf32>) -> (tensor<4x4x16xf32>, tensor<4x4x16xf32>) {
  %a = dist.constrain %x <[{}, {"seq"}, {"ring": dealt 4}]> : tensor<4x4x16xf32>
  %0 = dist.move_axes %a {axes = ["seq"], from = 1 : i64, to = 2 : i64} : tensor<4x4x16xf32>
  %b = dist.constrain %x <[{}, {"seq"}, {"ring": dealt 2}]> : tensor<4x4x16xf32>
  %1 = dist.move_axes %b {axes = ["seq"], from = 1 : i64, to = 2 : i64} : tensor<4x4x16xf32>
  return %0, %1 : tensor<4x4x16xf32>, tensor<4x4x16xf32>
}
}

//--- invalid.mlir
// expected-error @below {{expected a mesh in the module attribute 'dist.mesh'}}
func.func @no_mesh() {
  return
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
// expected-error @below {{argument 0 needs a tensor of static shape, got 'f32'}}
func.func @number(%x: f32) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
// expected-error @below {{argument 0 has unreduced axes}}
func.func @partial(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{}], unreduced = {"shard"}>}) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
// expected-error @below {{argument 0 is split inside of blocks, expected one range per rank}}
func.func @blocks(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{2, "shard"}]>}) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
func.func @unannotated(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{expected one sharding per result in 'dist.shardings'; run propagate-sharding first}}
  %s = train.exp %x : tensor<8xf32>
  return %s : tensor<8xf32>
}
}

// -----

// An order of blocks for each group of samples is where those samples are, one for all of them on all ranks.
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
func.func @for_all(%order: tensor<1x8xi64> {dist.sharding = #dist.sharding<[{}, {}]>}) {
  dist.deal %order {dist.shardings = []} : tensor<1x8xi64>
  return
}
func.func @for_each(%order: tensor<2x8xi64> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) {
  dist.deal %order {dist.shardings = []} : tensor<2x8xi64>
  return
}
func.func @whole(%order: tensor<2x8xi64> {dist.sharding = #dist.sharding<[{}, {}]>}) {
  // expected-error @below {{operand 0 has sharding #dist.sharding<[{}, {}]>, expected #dist.sharding<[{"shard"}, {}]>}}
  dist.deal %order {dist.shardings = []} : tensor<2x8xi64>
  return
}
}
