// RUN: tessera-opt %s --verify-sharding -split-input-file -verify-diagnostics

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
func.func @dropped(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> (tensor<f32> {dist.sharding = #dist.sharding<[]>}) {
  %s = train.reduce sum, %x {dimensions = array<i64: 0>, dist.shardings = [#dist.sharding<[], unreduced = {"shard"}>]} : (tensor<8xf32>) -> tensor<f32>
  // expected-error @below {{operand 0 is a partial sum over axis "shard" that is never reduced}}
  %e = train.exp %s {dist.shardings = [#dist.sharding<[]>]} : tensor<f32>
  return %e : tensor<f32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
func.func @returned(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> (tensor<f32> {dist.sharding = #dist.sharding<[]>}) {
  %s = train.reduce sum, %x {dimensions = array<i64: 0>, dist.shardings = [#dist.sharding<[], unreduced = {"shard"}>]} : (tensor<8xf32>) -> tensor<f32>
  // expected-error @below {{operand 0 is a partial sum over axis "shard" that is never reduced}}
  return %s : tensor<f32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
func.func @unequal(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}, %y: tensor<8xf32>) -> (tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) {
  // expected-error @below {{operand 1 has sharding #dist.sharding<[{}]>, expected #dist.sharding<[{"shard"}]>}}
  %s = train.add %x, %y {dist.shardings = [#dist.sharding<[{"shard"}]>]} : tensor<8xf32>
  return %s : tensor<8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
func.func @dimension(%x: tensor<3x2xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>, dist.global = tensor<3x8xf32>}) -> (tensor<3x8xf32> {dist.sharding = #dist.sharding<[{}, {}]>, dist.global = tensor<3x8xf32>}) {
  // expected-error @below {{works on dimension 1, expected 0}}
  %s = dist.all_gather %x {axes = ["shard"], dim = 1 : i64} : (tensor<3x2xf32>) -> tensor<3x8xf32>
  return %s : tensor<3x8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
// expected-error @below {{argument 1 lacks 'dist.sharding' or 'dist.global'}}
func.func @boundary(%x: tensor<2xf32> {dist.sharding = #dist.sharding<[{"shard"}]>, dist.global = tensor<8xf32>}, %y: tensor<2xf32>) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 4>} {
func.func @exchange(%x: tensor<2x8xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>, dist.global = tensor<8x8xf32>}) {
  // expected-error @below {{works on dimension 1, expected 0}}
  %s = dist.all_to_all %x {axes = ["shard"], split_dim = 1 : i64, concat_dim = 0 : i64} : (tensor<2x8xf32>) -> tensor<8x2xf32>
  return
}
}
