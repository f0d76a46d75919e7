// A layout that is dealt, and nothing that says how.
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(propagate-sharding,insert-reshards,localize))' 2>&1 | FileCheck %s
// CHECK: error: dimension 0 is dealt in 8 blocks, but no dist.deal in front says in which order

module attributes {dist.mesh = #dist.mesh<seq = 2>} {
func.func @not_dealt(%x: tensor<16xf32>) -> (tensor<16xf32> {dist.sharding = #dist.sharding<[{}]>}) {
  %y = dist.constrain %x <[{"seq": dealt 8}]> : tensor<16xf32>
  %z = train.neg %y : tensor<16xf32>
  return %z : tensor<16xf32>
}
}
