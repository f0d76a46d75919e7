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

// -----

// A zigzag deals twice as many ranges as there are ranks.
module attributes {dist.mesh = #dist.mesh<seq = 2>} {
// expected-error @below {{dimension 0 has size 6, which 1 block of 4 parts do not divide}}
func.func @zigzag(%x: tensor<6xf32> {dist.sharding = #dist.sharding<[{"seq": zigzag}]>}) -> tensor<6xf32> {
  // expected-remark @below {{gathers 'tensor<6xf32>' over 'seq'}}
  return %x : tensor<6xf32>
}
}

// -----

// Of each of two blocks `shard` leaves one element.
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{dimension 0 has size 2, which 2 blocks of 2 parts do not divide}}
  %y = dist.constrain %x <[{2, "shard", "seq"}]> : tensor<4xf32>
  // expected-remark @below {{gathers 'tensor<4xf32>' over 'seq'}}
  %z = train.exp %y : tensor<4xf32>
  return %z : tensor<4xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
// expected-error @below {{argument 0 is split inside of blocks, expected one range per rank}}
func.func @argument(%x: tensor<32xf32> {dist.sharding = #dist.sharding<[{"shard", 2, "seq": zigzag}]>}) -> tensor<32xf32> {
  return %x : tensor<32xf32>
}
}

// -----

// Places are known, but the numbers are not drawn in runs.
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
func.func @numbers(%x: tensor<16xf32> {dist.sharding = #dist.sharding<[{"shard": zigzag, "seq"}]>}, %seed: tensor<i64>) -> tensor<16xf32> {
  %i = train.iota {dim = 0 : i64} : tensor<16xf32>
  // expected-error @below {{random numbers along dimension 0 are split inside of what is dealt}}
  %u = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<16xf32>
  %1 = train.add %u, %i : tensor<16xf32>
  %2 = train.mul %x, %1 : tensor<16xf32>
  // expected-remark @below {{gathers 'tensor<16xf32>' over 'seq'}}
  return %2 : tensor<16xf32>
}
}
