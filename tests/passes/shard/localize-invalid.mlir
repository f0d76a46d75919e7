// RUN: tessera-opt %s --propagate-sharding --insert-reshards --localize -split-input-file -verify-diagnostics

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
// expected-error @below {{dimension 0 has size 6, which the mesh axes ["shard"] of size 4 do not divide}}
func.func @divide(%x: tensor<6xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> tensor<6xf32> {
  %y = train.exp %x : tensor<6xf32>
  return %y : tensor<6xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
func.func @unknown(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> tensor<4xf32> {
  // expected-error @below {{has no sharding rule}}
  %y = dist.slice_local %x {axes = ["shard"], dim = 0 : i64} : (tensor<8xf32>) -> tensor<2xf32>
  %z = train.concat %y, %y {dim = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
}
