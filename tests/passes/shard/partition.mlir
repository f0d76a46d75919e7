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

// Not applied: more is looked up than there is.
// CHECK-LABEL: func @small_table
// CHECK: dist.all_gather %arg0 {{.*}} -> tensor<8x8xf32>
func.func @small_table(%table: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"model"}, {}]>}, %i: tensor<64xi32>) -> tensor<64x8xf32> {
  // expected-remark@+2 {{gathered: each rank sends 192 bytes, rows stay split it would send 3072}}
  // expected-remark@+1 {{gathers 'tensor<8x8xf32>' over 'model': it is in parts where this op needs it whole}}
  %y = train.gather_rows %table, %i : (tensor<8x8xf32>, tensor<64xi32>) -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}

// Each rank keeps the gradients of its rows: nothing is sent.
// CHECK-LABEL: func @update
// CHECK-NOT: dist.all
// CHECK: train.scatter_add_rows {{.*}} -> tensor<16x8xf32>
// CHECK-NOT: dist.all
// CHECK: return
func.func @update(%table: tensor<64x8xf32> {dist.sharding = #dist.sharding<[{"model"}, {}]>}, %i: tensor<4xi32>, %dy: tensor<4x8xf32>) -> tensor<64x8xf32> {
  %zero = train.constant dense<0.0> : tensor<64x8xf32>
  // expected-remark@+1 {{rows stay split: each rank sends 0 bytes, gathered it would send 0}}
  %d = train.scatter_add_rows %zero, %i, %dy : (tensor<64x8xf32>, tensor<4xi32>, tensor<4x8xf32>) -> tensor<64x8xf32>
  %new = train.sub %table, %d : tensor<64x8xf32>
  return %new : tensor<64x8xf32>
}

// No choice where nothing is split, or where an axis does not divide the classes.
// CHECK-LABEL: func @whole
// CHECK: train.cross_entropy
// CHECK: train.softmax
func.func @whole(%x: tensor<6x30xf32> {dist.sharding = #dist.sharding<[{"data"}, {}]>}, %t: tensor<6xi32>) -> (tensor<6xf32>, tensor<6x30xf32>) {
  %loss, %lse = train.cross_entropy %x, %t : (tensor<6x30xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %p = train.softmax %x {dim = 1 : i64} : tensor<6x30xf32>
  return %loss, %p : tensor<6xf32>, tensor<6x30xf32>
}
}
