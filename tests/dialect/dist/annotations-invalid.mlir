// RUN: tessera-opt %s -verify-diagnostics -split-input-file

// dist.annotation_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{argument 0: dist.sharding expected a #dist.sharding of the rank of 'tensor<8xf32>', got 1}}
func.func @annotation_c1(%x: tensor<8xf32> {dist.sharding = 1 : i64}) {
  return
}
}

// -----

// dist.annotation_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{argument 0: dist.sharding expected a #dist.sharding of the rank of 'tensor<8xf32>'}}
func.func @annotation_c1(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{}, {}]>}) {
  return
}
}

// -----

// dist.annotation_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{argument 0: dist.sharding names axis 'seq', which is not in the mesh}}
func.func @annotation_c2(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"seq"}]>}) {
  return
}
}

// -----

// dist.annotation_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{argument 0: dist.sharding names axis 'seq', which is not in the mesh}}
func.func @annotation_c2(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{}], unreduced = {"seq"}>}) {
  return
}
}

// -----

// dist.global_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{argument 0: dist.global expected a tensor type of static shape beside a dist.sharding of its rank, got i32}}
func.func @global_c1(%x: tensor<8xf32> {dist.global = i32}) {
  return
}
}

// -----

// dist.global_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{argument 0: dist.global expected a tensor type of static shape beside a dist.sharding}}
func.func @global_c1(%x: tensor<8xf32> {dist.global = tensor<8xf32>}) {
  return
}
}

// -----

// dist.global_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{argument 0: dist.global is 'tensor<16xf32>', whose parts by}}
func.func @global_c2(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>, dist.global = tensor<16xf32>}) {
  return
}
}

// -----

// dist.global_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{argument 0: dist.global is 'tensor<33xf32>', whose parts by}}
func.func @global_c2(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}]>, dist.global = tensor<33xf32>}) {
  return
}
}

// -----

// dist.annotation_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{result 0: dist.sharding names axis 'seq', which is not in the mesh}}
func.func @annotation_c2(%x: tensor<8xf32>) -> (tensor<8xf32> {dist.sharding = #dist.sharding<[{"seq"}]>}) {
  return %x : tensor<8xf32>
}
}

// -----

// dist.annotation_c3
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @annotation_c3(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{dist.sharding is only for arguments and results of the step}}
  %0 = train.add %x, %y {dist.sharding = #dist.sharding<[{}]>} : tensor<8xf32>
  return
}
}

// -----

// dist.shardings_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @shardings_c1(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{dist.shardings expected one sharding for each of 1 results, got []}}
  %0 = train.add %x, %y {dist.shardings = []} : tensor<8xf32>
  return
}
}

// -----

// dist.shardings_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @shardings_c1(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{dist.shardings expected one sharding for each of 1 results, got 3}}
  %0 = train.add %x, %y {dist.shardings = 3 : i64} : tensor<8xf32>
  return
}
}

// -----

// dist.annotation_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @annotation_c1(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{dist.shardings expected a #dist.sharding of the rank of 'tensor<8xf32>', got 3}}
  %0 = train.add %x, %y {dist.shardings = [3 : i64]} : tensor<8xf32>
  return
}
}

// -----

// dist.annotation_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @annotation_c2(%x: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{dist.shardings names axis 'seq', which is not in the mesh}}
  %0 = train.add %x, %y {dist.shardings = [#dist.sharding<[{"seq"}]>]} : tensor<8xf32>
  return
}
}

// -----

// dist.mesh_c1
// expected-error@+1 {{dist.mesh expected a #dist.mesh on a module, got 3}}
module attributes {dist.mesh = 3 : i64} {}

// -----

// dist.mesh_c1
// expected-error@+1 {{dist.mesh expected a #dist.mesh on a module, got #dist.mesh<shard = 2>}}
func.func private @mesh_c1() attributes {dist.mesh = #dist.mesh<shard = 2>}

// -----

// dist.mesh_c2
// expected-error@+1 {{mesh axis 'shard' occurs twice}}
module attributes {dist.mesh = #dist.mesh<shard = 2, shard = 2>} {}

// -----

// dist.mesh_c3
// expected-error@+1 {{mesh axis 'shard' has size 0, expected at least 1}}
module attributes {dist.mesh = #dist.mesh<shard = 0>} {}

// -----

// dist.mesh_c4
// expected-error@+1 {{mesh has more ranks than a 32-bit number counts}}
module attributes {dist.mesh = #dist.mesh<replicate = 4294967296, shard = 4294967296>} {}

// -----

// dist.mesh_c5
// expected-error@+1 {{mesh axis 'nodes' has the unknown role 'tensor', expected replica, data, sequence, model, expert or stage}}
module attributes {dist.mesh = #dist.mesh<nodes : tensor = 2>} {}

// -----

// dist.mesh_c6
// expected-error@+1 {{mesh axis 'nodes' needs a role: replica, data, sequence, model, expert or stage}}
module attributes {dist.mesh = #dist.mesh<nodes = 2>} {}

// -----

// dist.sharding_attr_c1
// expected-error@+1 {{axis 'shard' occurs twice in a sharding}}
func.func private @sharding_attr_c1(tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"}], unreduced = {"shard"}>})

// -----

// dist.sharding_attr_c3
// expected-error@+1 {{a value owes a max and a sum, expected reductions of one kind}}
func.func private @sharding_attr_c3(tensor<8xf32> {dist.sharding = #dist.sharding<[{}], unreduced = {"shard": max, "seq"}>})

// -----

// expected-error@+1 {{expected sum, max or min, got 'mean'}}
func.func private @sharding_attr_kind(tensor<8xf32> {dist.sharding = #dist.sharding<[{}], unreduced = {"shard": mean}>})

// -----

// dist.sharding_attr_c2
// expected-error@+1 {{a dimension has 1 blocks, expected at least 2, and an axis}}
func.func private @sharding_attr_c2(tensor<8xf32> {dist.sharding = #dist.sharding<[{1, "shard"}]>})

// -----

// dist.sharding_attr_c2
// expected-error@+1 {{a dimension has 2 blocks, and no axis splits them, expected at least 2, and an axis}}
func.func private @sharding_attr_c2_no_axis(tensor<8xf32> {dist.sharding = #dist.sharding<[{2}]>})

// -----

// dist.sharding_attr_c2
// expected-error@+1 {{a dimension has 4 blocks, and no axis splits them, expected at least 2, and an axis}}
func.func private @sharding_attr_c2_behind(tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard", 4}]>})

// -----

// dist.sharding_attr_c2
// expected-error@+1 {{a dimension has 0 blocks, expected at least 2, and an axis}}
func.func private @sharding_attr_c2_inner(tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard", 0, "seq"}]>})

// -----

// dist.sharding_attr_c2
// expected-error@+1 {{a dimension has 2 blocks, and no axis splits them, expected at least 2, and an axis}}
func.func private @sharding_attr_c2_twice(tensor<8xf32> {dist.sharding = #dist.sharding<[{2, 3, "seq"}]>})

// -----

// expected-error@+1 {{expected 'zigzag'}}
func.func private @sharding_attr_order(tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard": zig}]>})

// -----

// Blocks are not dealt.
// expected-error@+1 {{expected '}'}}
func.func private @sharding_attr_dealt(tensor<8xf32> {dist.sharding = #dist.sharding<[{4: zigzag, "shard"}]>})

// -----

// dist.collective_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @collective_c2(%x: tensor<4611686018427387904xi8>) {
  // expected-error@+1 {{operand dimension 0 times 4 ranks is too large}}
  %0 = dist.all_gather %x {axes = ["shard"], dim = 0 : i64} : (tensor<4611686018427387904xi8>) -> tensor<8xi8>
  return
}
}

// -----

// dist.memory_c1
// expected-error@+1 {{argument 0: dist.memory expected "host", got "device"; without it a value lies in the device's memory}}
func.func private @memory_c1(tensor<8xf32> {dist.memory = "device"})

// -----

// dist.memory_c1
// expected-error@+1 {{argument 0: dist.memory expected "host", got 7 : i64}}
func.func private @memory_c1(tensor<8xf32> {dist.memory = 7 : i64})

// -----

// dist.sharding_attr_c5
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{a dimension is dealt in 1 blocks, expected at least 2 and less than 2^31}}
func.func @sharding_attr_c5(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard": dealt 1}]>}) {
  return
}
}

// -----

// Four ranks do not share six blocks.
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{argument 0: dist.global is 'tensor<48xf32>', whose parts by}}
func.func @dealt(%x: tensor<12xf32> {dist.sharding = #dist.sharding<[{"shard": dealt 6}]>, dist.global = tensor<48xf32>}) {
  return
}
}

// -----

// dist.gather_c1
func.func @gather_c1(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{dist.gather_bytes is only for attention and its gradient}}
  %y = train.exp %x {dist.gather_bytes = 8 : i64} : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// dist.gather_c2
func.func @gather_c2(%q: tensor<1x1x4x2xf32>) {
  // expected-error@+1 {{dist.gather_bytes expected a positive i64, got 0 : i64}}
  %o, %lse = train.attention %q, %q, %q {scale = 0.5, dist.gather_bytes = 0 : i64} : (tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>) -> (tensor<1x1x4x2xf32>, tensor<1x1x4xf32>)
  return
}

// -----

// dist.gather_c3
func.func @gather_c3(%q: tensor<1x1x4x2xf32>) {
  // expected-error@+1 {{dist.gather_type expected a float type, got i32}}
  %o, %lse = train.attention %q, %q, %q {scale = 0.5, dist.gather_type = i32} : (tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>) -> (tensor<1x1x4x2xf32>, tensor<1x1x4xf32>)
  return
}

// -----

// dist.sharding_attr_c5
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
// expected-error@+1 {{a dimension is dealt in 2147483652 blocks, expected at least 2 and less than 2^31}}
func.func @sharding_attr_c5_many(%x: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard": dealt 2147483652}]>}) {
  return
}
}
