// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK: module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>}
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
  // CHECK-LABEL: func @roundtrip
  func.func @roundtrip(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}], unreduced = {"replicate"}>}) -> tensor<32xf32> {
    // CHECK: dist.all_gather_start
    %f = dist.all_gather_start %x {axes = ["shard"], dim = 0 : i64} : (tensor<8xf32>) -> !dist.future<tensor<32xf32>>
    %y = dist.done %f : (!dist.future<tensor<32xf32>>) -> tensor<32xf32>
    return %y : tensor<32xf32>
  }
}
