// RUN: tessera-opt %s --propagate-sharding --verify-diagnostics

// An op without a rule is refused: nobody knows what its parts are.
module attributes {dist.mesh = #dist.mesh<shard = 4>} {
func.func @no_rule(%a: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> tensor<8xf32> {
  // expected-error @below {{'math.absf' op has no sharding rule}}
  %0 = math.absf %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
}
