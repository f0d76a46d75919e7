// Ops that run on parts which their rules would gather; what is sent decides.
// RUN: tessera-opt %s --propagate-sharding --insert-reshards --verify-sharding --verify-diagnostics -o /dev/null
// RUN: tessera-opt %s --propagate-sharding --insert-reshards --localize --verify-sharding 2> %t | FileCheck %s

module attributes {dist.mesh = #dist.mesh<data = 2, model = 4>} {
// Three statistics of each row instead of all logits.
// CHECK-LABEL: func @loss
// CHECK-NOT: dist.all_gather
// CHECK: %[[L:.*]] = train.reduce max, %arg0 {dimensions = array<i64: 1>} : (tensor<3x8xf32>) -> tensor<3xf32>
// CHECK: dist.all_reduce %[[L]] {axes = ["model"], kind = #dist<reduction max>} : (tensor<3xf32>)
// CHECK: dist.all_reduce %{{.*}} {axes = ["model"]} : (tensor<3xf32>)
// CHECK: dist.axis_index {axes = ["model"]}
// CHECK: dist.all_reduce %{{.*}} {axes = ["model"]} : (tensor<3xf32>)
// CHECK-NOT: dist.all
// CHECK: return
func.func @loss(%x: tensor<6x32xf32> {dist.sharding = #dist.sharding<[{"data"}, {"model"}]>}, %t: tensor<6xi32> {dist.sharding = #dist.sharding<[{"data"}]>}) -> tensor<6xf32> {
  // expected-remark@+1 {{classes stay split: each rank sends 54 bytes, gathered it would send 288}}
  %loss, %lse = train.cross_entropy %x, %t : (tensor<6x32xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  return %loss : tensor<6xf32>
}

// Each rank looks up its own rows.
// CHECK-LABEL: func @lookup
// CHECK: train.gather_rows %arg0, %{{.*}} : (tensor<16x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
// CHECK: dist.all_reduce %{{.*}} {axes = ["model"]} : (tensor<4x8xf32>)
func.func @lookup(%table: tensor<64x8xf32> {dist.sharding = #dist.sharding<[{"model"}, {}]>}, %i: tensor<4xi32>) -> tensor<4x8xf32> {
  // expected-remark@+1 {{rows stay split: each rank sends 192 bytes, gathered it would send 1536}}
  %y = train.gather_rows %table, %i : (tensor<64x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  %e = train.exp %y : tensor<4x8xf32>
  return %e : tensor<4x8xf32>
}
}
