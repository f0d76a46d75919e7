// What a placement has in parts and an op needs whole is said; what is computed in parts is not.
// RUN: tessera-opt %s --propagate-sharding --insert-reshards -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: gathers 'tensor<4x8xf32>' over 'tp': it is in parts where this op needs it whole
// CHECK-NEXT: train.sort_indices
// CHECK-NOT: remark
module attributes {dist.mesh = #dist.mesh<tp : model = 2, shard = 2>} {
func.func @whole(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<[{}, {"tp"}]>}, %y: tensor<4x8xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}) -> (tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>) {
  %a = train.sort_indices %x {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xi32>
  %b = train.sort_indices %x {dim = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xi32>
  %c = train.sort_indices %y {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xi32>
  return %a, %b, %c : tensor<4x8xi32>, tensor<4x8xi32>, tensor<4x8xi32>
}
}
