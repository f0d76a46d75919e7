// A layout that is dealt, and nothing that says how.
module attributes {dist.mesh = #dist.mesh<seq = 2>} {
func.func @not_dealt(%x: tensor<16xf32>) -> (tensor<16xf32> {dist.sharding = #dist.sharding<[{}]>}) {
  %y = dist.constrain %x <[{"seq": dealt 8}]> : tensor<16xf32>
  %z = train.neg %y : tensor<16xf32>
  return %z : tensor<16xf32>
}
}
