// RUN: tessera-opt %s --insert-reshards --verify-diagnostics

// Without propagate-sharding there is nothing to go by.
module attributes {dist.mesh = #dist.mesh<shard = 4>} {
func.func @unannotated(%a: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> tensor<8xf32> {
  // expected-error @below {{expected one sharding per result in 'dist.shardings'; run propagate-sharding first}}
  %0 = train.exp %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}
