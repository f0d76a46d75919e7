// RUN: tessera-opt %s -verify-diagnostics -split-input-file

// dist.axes_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @axes_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{names axis 'seq', which is not in the mesh}}
  %0 = dist.all_reduce %x {axes = ["seq"]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.axes_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @axes_c2(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{names axis 'shard' twice}}
  %0 = dist.all_reduce %x {axes = ["shard", "shard"]} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.sharding_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @sharding_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{has rank 1, expected 2}}
  %0 = dist.constrain %x <[{"shard"}]> : tensor<8x4xf32>
  return
}
}

// -----

// dist.sharding_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @sharding_c2(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{names axis 'seq', which is not in the mesh}}
  %0 = dist.reshard %x <[{}, {}]> to <[{"seq"}, {}]> : tensor<8x4xf32>
  return
}
}

// -----

// dist.collective_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @collective_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{names no axes}}
  %0 = dist.all_reduce %x {axes = []} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.all_gather_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @all_gather_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{dim is 2, expected at least 0 and less than 2}}
  %0 = dist.all_gather %x {axes = ["shard"], dim = 2 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.all_gather_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @all_gather_c2(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{result has type 'tensor<16x4xf32>', expected 'tensor<32x4xf32>'}}
  %0 = dist.all_gather %x {axes = ["shard"], dim = 0 : i64} : (tensor<8x4xf32>) -> tensor<16x4xf32>
  return
}
}

// -----

// dist.all_gather_c2_start
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @all_gather_c2_start(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{result has type 'tensor<16x4xf32>', expected 'tensor<32x4xf32>'}}
  %0 = dist.all_gather_start %x {axes = ["shard"], dim = 0 : i64} : (tensor<8x4xf32>) -> !dist.future<tensor<16x4xf32>>
  return
}
}

// -----

// dist.move_axes_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @move_axes_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{from is 2, expected at least 0 and less than 2}}
  %0 = dist.move_axes %x {axes = ["shard"], from = 2 : i64, to = 0 : i64} : tensor<8x4xf32>
  return
}
}

// -----

// dist.move_axes_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @move_axes_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{to is -1, expected at least 0 and less than 2}}
  %0 = dist.move_axes %x {axes = ["shard"], from = 0 : i64, to = -1 : i64} : tensor<8x4xf32>
  return
}
}

// -----

// dist.move_axes_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @move_axes_c2(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{moves axes from dimension 1 to itself}}
  %0 = dist.move_axes %x {axes = ["shard"], from = 1 : i64, to = 1 : i64} : tensor<8x4xf32>
  return
}
}

// -----

// dist.axes_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @move_axes_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{names axis 'seq', which is not in the mesh}}
  %0 = dist.move_axes %x {axes = ["seq"], from = 0 : i64, to = 1 : i64} : tensor<8x4xf32>
  return
}
}

// -----

// dist.axes_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @move_axes_c2(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{names axis 'shard' twice}}
  %0 = dist.move_axes %x {axes = ["shard", "shard"], from = 0 : i64, to = 1 : i64} : tensor<8x4xf32>
  return
}
}

// -----

// dist.reduce_scatter_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @reduce_scatter_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{dim is -1, expected at least 0 and less than 2}}
  %0 = dist.reduce_scatter %x {axes = ["shard"], dim = -1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.reduce_scatter_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @reduce_scatter_c2(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{operand dimension 1 has size 4, expected a multiple of 8}}
  %0 = dist.reduce_scatter %x {axes = ["replicate", "shard"], dim = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.reduce_scatter_c3
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @reduce_scatter_c3(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{result has type 'tensor<4x4xf32>', expected 'tensor<2x4xf32>'}}
  %0 = dist.reduce_scatter %x {axes = ["shard"], dim = 0 : i64} : (tensor<8x4xf32>) -> tensor<4x4xf32>
  return
}
}

// -----

// dist.all_reduce_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @all_reduce_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{result has type 'tensor<2x4xf32>', expected 'tensor<8x4xf32>'}}
  %0 = dist.all_reduce %x {axes = ["shard"]} : (tensor<8x4xf32>) -> tensor<2x4xf32>
  return
}
}

// -----

// dist.permute_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @permute_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{result has type 'tensor<2x4xf32>', expected 'tensor<8x4xf32>'}}
  %0 = dist.permute %x {axes = ["shard"], shift = 1 : i64} : (tensor<8x4xf32>) -> tensor<2x4xf32>
  return
}
}

// -----

// dist.all_to_all_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @all_to_all_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{concat_dim is 2, expected at least 0 and less than 2}}
  %0 = dist.all_to_all %x {axes = ["shard"], split_dim = 0 : i64, concat_dim = 2 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.all_to_all_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @all_to_all_c2(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{operand dimension 1 has size 4, expected a multiple of 8}}
  %0 = dist.all_to_all %x {axes = ["replicate", "shard"], split_dim = 1 : i64, concat_dim = 0 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.all_to_all_c3
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @all_to_all_c3(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{result has type 'tensor<8x4xf32>', expected 'tensor<2x16xf32>'}}
  %0 = dist.all_to_all %x {axes = ["shard"], split_dim = 0 : i64, concat_dim = 1 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.slice_local_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @slice_local_c1(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{dim is 2, expected at least 0 and less than 2}}
  %0 = dist.slice_local %x {axes = ["shard"], dim = 2 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.slice_local_c2
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @slice_local_c2(%x: tensor<6xf32>) {
  // expected-error@+1 {{operand dimension 0 has size 6, expected a multiple of 4}}
  %0 = dist.slice_local %x {axes = ["shard"], dim = 0 : i64} : (tensor<6xf32>) -> tensor<2xf32>
  return
}
}

// -----

// dist.slice_local_c3
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @slice_local_c3(%x: tensor<8x4xf32>) {
  // expected-error@+1 {{result has type 'tensor<8x4xf32>', expected 'tensor<2x4xf32>'}}
  %0 = dist.slice_local %x {axes = ["shard"], dim = 0 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
}

// -----

// dist.done_c1
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 4>} {
func.func @done_c1(%f: !dist.future<tensor<4xf32>>) {
  // expected-error@+1 {{result has type 'tensor<8xf32>', expected 'tensor<4xf32>'}}
  %0 = dist.done %f : (!dist.future<tensor<4xf32>>) -> tensor<8xf32>
  return
}
}

// -----

// dist.copy_start_c1
func.func @copy_start_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{copies to 'disk', expected 'host' or 'device'}}
  %0 = dist.copy_start %x to "disk" : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  return
}

// -----

// dist.copy_start_c2
func.func @copy_start_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{result has type 'tensor<8xf32>', expected 'tensor<4xf32>'}}
  %0 = dist.copy_start %x to "host" : (tensor<4xf32>) -> !dist.future<tensor<8xf32>>
  return
}

// -----

// A phase that there is not.
func.func @origin_phase(%x: tensor<8xf32>) {
  // expected-error@+2 {{expected ::tessera::dist::OriginPhase to be one of: forward, backward, step, gradient, update, result}}
  // expected-error@+1 {{failed to parse Dist_OriginAttr parameter 'phase'}}
  %0 = dist.constrain %x <[{}]> {origin = #dist.origin<sideways, ["u"]>} : tensor<8xf32>
  return
}

// -----

// A label is no origin.
func.func @origin_type(%x: tensor<8xf32>) {
  // expected-error@+1 {{attribute 'origin' failed to satisfy constraint: What a value is moved for}}
  %0 = dist.constrain %x <[{}]> {origin = "forward:u"} : tensor<8xf32>
  return
}

// -----

// Integers are not added up in another type.
func.func @reduce_type(%x: tensor<8xf32>) {
  // expected-error@+1 {{attribute 'reduce_type' failed to satisfy constraint: type attribute of floating point}}
  %0 = dist.constrain %x <[{}]> {reduce_type = i32} : tensor<8xf32>
  return
}

// -----

// dist.deal_c1
func.func @deal_c1(%order: tensor<8xi64>) {
  // expected-error@+1 {{expects an order of type tensor<samples x blocks x i64>, of at least 2 blocks, got 'tensor<8xi64>'}}
  dist.deal %order : tensor<8xi64>
  return
}

// -----

// dist.deal_c1
func.func @deal_c1_narrow(%order: tensor<2x8xi32>) {
  // expected-error@+1 {{expects an order of type tensor<samples x blocks x i64>, of at least 2 blocks, got 'tensor<2x8xi32>'}}
  dist.deal %order : tensor<2x8xi32>
  return
}

// -----

// dist.deal_c1
func.func @deal_c1_few(%order: tensor<2x1xi64>) {
  // expected-error@+1 {{expects an order of type tensor<samples x blocks x i64>, of at least 2 blocks, got 'tensor<2x1xi64>'}}
  dist.deal %order : tensor<2x1xi64>
  return
}
