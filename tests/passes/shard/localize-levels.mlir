// Places in dimensions that are split on several levels, inside of blocks and in zigzags: what an op knows of places is that of the whole.
// RUN: tessera-opt %s --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding -o %t.mlir 2>/dev/null
// RUN: tessera-interp %t.mlir --compare=%s

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2, seq = 2>} {
// What was [3, 8] before: both axes split inside of blocks.
func.func @blocks(%x: tensor<3x8xf32> {dist.sharding = #dist.sharding<[{}, {"replicate", "shard"}]>}) -> tensor<24xf32> {
  %0 = train.reshape %x : (tensor<3x8xf32>) -> tensor<24xf32>
  %i = train.iota {dim = 0 : i64} : tensor<24xf32>
  %1 = train.add %0, %i : tensor<24xf32>
  return %1 : tensor<24xf32>
}

func.func @zigzag(%x: tensor<16x3xf32> {dist.sharding = #dist.sharding<[{"seq": zigzag}, {}]>}) -> tensor<16x3xf32> {
  %i = train.iota {dim = 0 : i64} : tensor<16x3xi32>
  %f = train.convert %i : (tensor<16x3xi32>) -> tensor<16x3xf32>
  %1 = train.add %x, %f : tensor<16x3xf32>
  return %1 : tensor<16x3xf32>
}

// Samples of each rank's positions: [2, 3, 16] as one dimension.
func.func @samples_and_positions(%x: tensor<4x3x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {"seq": zigzag}]>}, %seed: tensor<i64>) -> (tensor<192xf32>, tensor<192xf32>) {
  %0 = train.reshape %x : (tensor<4x3x16xf32>) -> tensor<192xf32>
  %i = train.iota {dim = 0 : i64} : tensor<192xf32>
  %1 = train.add %0, %i : tensor<192xf32>
  %u = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<192xf32>
  %2 = train.mul %0, %u : tensor<192xf32>
  return %1, %2 : tensor<192xf32>, tensor<192xf32>
}

// A zigzag over two axes inside of blocks, and numbers of chance along it.
func.func @zigzag_in_blocks(%x: tensor<3x16xf32> {dist.sharding = #dist.sharding<[{}, {"shard": zigzag, "seq": zigzag}]>}, %seed: tensor<i64>) -> (tensor<48xf32>, tensor<48xf32>) {
  %0 = train.reshape %x : (tensor<3x16xf32>) -> tensor<48xf32>
  %i = train.iota {dim = 0 : i64} : tensor<48xf32>
  %1 = train.add %0, %i : tensor<48xf32>
  %u = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<48xf32>
  %2 = train.mul %0, %u : tensor<48xf32>
  return %1, %2 : tensor<48xf32>, tensor<48xf32>
}

func.func @levels(%x: tensor<2x3x4x2xf32> {dist.sharding = #dist.sharding<[{"replicate"}, {}, {"shard"}, {"seq"}]>}, %seed: tensor<i64>) -> (tensor<48xf32>, tensor<48xf32>) {
  %0 = train.reshape %x : (tensor<2x3x4x2xf32>) -> tensor<48xf32>
  %i = train.iota {dim = 0 : i64} : tensor<48xf32>
  %1 = train.add %0, %i : tensor<48xf32>
  %u = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<48xf32>
  %2 = train.mul %0, %u : tensor<48xf32>
  return %1, %2 : tensor<48xf32>, tensor<48xf32>
}

// A ring over positions that are split inside of blocks, causal and not.
func.func @ring(%x: tensor<1x2x2x8x4xf32> {dist.sharding = #dist.sharding<[{}, {}, {}, {"seq"}, {}]>}) -> (tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>) {
  %q = train.reshape %x : (tensor<1x2x2x8x4xf32>) -> tensor<1x2x16x4xf32>
  %o, %lse = train.attention %q, %q, %q {scale = 0.5, split = #train<attention_split ring>} : (tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>) -> (tensor<1x2x16x4xf32>, tensor<1x2x16xf32>)
  %c, %clse = train.attention %q, %q, %q {causal, scale = 0.5, split = #train<attention_split ring>} : (tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>) -> (tensor<1x2x16x4xf32>, tensor<1x2x16xf32>)
  return %o, %c : tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>
}

// Of one axis in a zigzag, of another in ranges.
func.func @ring_of_two_orders(%q: tensor<1x2x16x4xf32> {dist.sharding = #dist.sharding<[{}, {}, {"shard": zigzag, "seq"}, {}]>}) -> tensor<1x2x16x4xf32> {
  %o, %lse = train.attention %q, %q, %q {causal, scale = 0.5, split = #train<attention_split ring>} : (tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>) -> (tensor<1x2x16x4xf32>, tensor<1x2x16xf32>)
  return %o : tensor<1x2x16x4xf32>
}
}
