// Ops that ranks compute together, each alone.
module attributes {dist.mesh = #dist.mesh<shard = 1>} {
func.func @softmax(%x: tensor<4x12x3xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}, {}]>}) -> tensor<4x12x3xf32> {
  %p = train.softmax %x {dim = 1 : i64} : tensor<4x12x3xf32>
  return %p : tensor<4x12x3xf32>
}

// A row without a class above -inf, and one with a class at infinity.
func.func @infinities(%x: tensor<4x12xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}, %t: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %shift = train.constant dense<[[0.0], [0xFF800000], [0x7F800000], [1.0e30]]> : tensor<4x1xf32>
  %s = train.broadcast %shift {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> tensor<4x12xf32>
  %y = train.add %x, %s : tensor<4x12xf32>
  %loss, %lse = train.cross_entropy %y, %t : (tensor<4x12xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %lse : tensor<4xf32>, tensor<4xf32>
}

func.func @narrow(%x: tensor<4x12xbf16> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}, %t: tensor<4xi8>) -> (tensor<4xf32>, tensor<4xf32>) {
  %loss, %lse = train.cross_entropy %x, %t {ignore_index = 3 : i64} : (tensor<4x12xbf16>, tensor<4xi8>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %lse : tensor<4xf32>, tensor<4xf32>
}

// The gradient of a split table stays split.
func.func @update(%table: tensor<24x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %i: tensor<3x2xi32>, %dy: tensor<3x2x4xf32>) -> (tensor<24x4xf32>, tensor<3x2x4xf32>) {
  %zero = train.constant dense<0.0> : tensor<24x4xf32>
  %d = train.scatter_add_rows %zero, %i, %dy : (tensor<24x4xf32>, tensor<3x2xi32>, tensor<3x2x4xf32>) -> tensor<24x4xf32>
  %new = train.sub %table, %d : tensor<24x4xf32>
  %y = train.gather_rows %table, %i : (tensor<24x4xf32>, tensor<3x2xi32>) -> tensor<3x2x4xf32>
  return %new, %y : tensor<24x4xf32>, tensor<3x2x4xf32>
}

// More lookups than rows: the table is gathered.
func.func @small_table(%table: tensor<12x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %i: tensor<9x4xi32>) -> tensor<9x4x4xf32> {
  %y = train.gather_rows %table, %i : (tensor<12x4xf32>, tensor<9x4xi32>) -> tensor<9x4x4xf32>
  return %y : tensor<9x4x4xf32>
}

// Extremes over the split dimension, of data with a NaN.
func.func @extremes(%x: tensor<12x5xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<5xf32>) {
  %max = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<12x5xf32>) -> tensor<5xf32>
  %min = train.reduce min, %x {dimensions = array<i64: 0>} : (tensor<12x5xf32>) -> tensor<5xf32>
  %all = train.reduce max, %x {dimensions = array<i64: 0, 1>} : (tensor<12x5xf32>) -> tensor<f32>
  %root = train.sqrt %x : tensor<12x5xf32>
  %nan = train.reduce max, %root {dimensions = array<i64: 0>} : (tensor<12x5xf32>) -> tensor<5xf32>
  return %max, %min, %all, %nan : tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<5xf32>
}
}
