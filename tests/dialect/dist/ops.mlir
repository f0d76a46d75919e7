// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK: module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4, seq = 2, tp = 2>}
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4, seq = 2, tp = 2>} {
  // CHECK-LABEL: func @roundtrip
  func.func @roundtrip(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}], unreduced = {"replicate"}>}) -> tensor<32xf32> {
    // CHECK: dist.all_gather_start
    %f = dist.all_gather_start %x {axes = ["shard"], dim = 0 : i64} : (tensor<8xf32>) -> !dist.future<tensor<32xf32>>
    %y = dist.done %f : (!dist.future<tensor<32xf32>>) -> tensor<32xf32>
    return %y : tensor<32xf32>
  }

  // What a value is moved for is kept by what is made of it.
  // CHECK-LABEL: func @origins
  func.func @origins(%x: tensor<8xf32>) -> tensor<32xf32> {
    // CHECK: dist.constrain %{{.*}} <[{}]> {origin = #dist.origin<gradient, ["h.0", "h.1"]>, reduce_type = bf16}
    %c = dist.constrain %x <[{}]> {origin = #dist.origin<gradient, ["h.0", "h.1"]>, reduce_type = bf16} : tensor<8xf32>
    // CHECK: dist.reshard %{{.*}} <[{}]> to <[{}]> {origin = #dist.origin<result, ["loss"]>, reduce_type = f32}
    %r = dist.reshard %c <[{}]> to <[{}]> {origin = #dist.origin<result, ["loss"]>, reduce_type = f32} : tensor<8xf32>
    // CHECK: dist.copy_start %{{.*}} to "host" {origin = #dist.origin<update, ["h.0"]>}
    %h = dist.copy_start %r to "host" {origin = #dist.origin<update, ["h.0"]>} : (tensor<8xf32>) -> !dist.future<tensor<8xf32>>
    %d = dist.done %h : (!dist.future<tensor<8xf32>>) -> tensor<8xf32>
    // CHECK: dist.all_gather %{{.*}} {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<step, ["a.b/c:d"]>}
    %g = dist.all_gather %d {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<step, ["a.b/c:d"]>} : (tensor<8xf32>) -> tensor<32xf32>
    return %g : tensor<32xf32>
  }

  // A sum is not printed, other kinds are; unreduced axes as well.
  // CHECK-LABEL: func @kinds
  // CHECK-SAME: #dist.sharding<[{}], unreduced = {"replicate": max, "shard": max}>
  // CHECK: dist.all_reduce %{{.*}} {axes = ["shard"]} :
  // CHECK: dist.all_reduce %{{.*}} {axes = ["shard"], kind = #dist<reduction max>} :
  // CHECK: dist.reduce_scatter %{{.*}} {axes = ["shard"], dim = 0 : i64, kind = #dist<reduction min>} :
  func.func @kinds(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{}], unreduced = {"replicate": max, "shard": max}>}) -> tensor<2xf32> {
    %s = dist.all_reduce %x {axes = ["shard"], kind = #dist<reduction sum>} : (tensor<8xf32>) -> tensor<8xf32>
    %m = dist.all_reduce %s {axes = ["shard"], kind = #dist<reduction max>} : (tensor<8xf32>) -> tensor<8xf32>
    %l = dist.reduce_scatter %m {axes = ["shard"], dim = 0 : i64, kind = #dist<reduction min>} : (tensor<8xf32>) -> tensor<2xf32>
    return %l : tensor<2xf32>
  }

  // Numbers of blocks stand in front of an axis that splits inside of them, and an order behind one.
  // CHECK-LABEL: func @levels
  // CHECK-SAME: #dist.sharding<[{"replicate", 4, "shard"}, {"seq": zigzag}]>
  // CHECK-SAME: #dist.sharding<[{2, "seq": zigzag, 3, "replicate": zigzag, "shard"}], unreduced = {"tp"}>
  func.func @levels(%x: tensor<64x8xf32> {dist.sharding = #dist.sharding<[{"replicate", 4, "shard"}, {"seq": zigzag}]>},
                    %y: tensor<96xf32> {dist.sharding = #dist.sharding<[{2, seq: zigzag, 3, "replicate": zigzag, shard}], unreduced = {tp}>}) {
    return
  }

  // CHECK-LABEL: func @deal
  // CHECK-SAME: #dist.sharding<[{}, {"seq": dealt 16, "tp": dealt 16}, {"shard"}]>
  // CHECK: dist.deal %{{.*}} : tensor<2x16xi64>
  func.func @deal(%x: tensor<1x64x8xf32> {dist.sharding = #dist.sharding<[{}, {seq: dealt 16, "tp": dealt 16}, {"shard"}]>}, %order: tensor<2x16xi64>) {
    dist.deal %order : tensor<2x16xi64>
    return
  }

  // CHECK-LABEL: func @move_axes
  // CHECK: dist.move_axes %{{.*}} {axes = ["seq"], from = 2 : i64, to = 1 : i64} : tensor<2x8x16x4xf32>
  // CHECK: dist.move_axes %{{.*}} {axes = ["shard", "seq"], from = 1 : i64, to = 2 : i64, zigzag} : tensor<2x8x16x4xf32>
  func.func @move_axes(%x: tensor<2x8x16x4xf32>) -> tensor<2x8x16x4xf32> {
    %h = dist.move_axes %x {axes = ["seq"], from = 2 : i64, to = 1 : i64} : tensor<2x8x16x4xf32>
    %p = dist.move_axes %h {axes = ["shard", "seq"], from = 1 : i64, to = 2 : i64, zigzag} : tensor<2x8x16x4xf32>
    return %p : tensor<2x8x16x4xf32>
  }
}
