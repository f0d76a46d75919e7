// RUN: tessera-interp %s

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2>} {

func.func @gather() {
  %r = dist.axis_index {axes = ["replicate"]} : tensor<i64>
  %s = dist.axis_index {axes = ["shard"]} : tensor<i64>
  %rank = dist.axis_index {axes = ["replicate", "shard"]} : tensor<i64>
  %two = train.constant dense<2> : tensor<i64>
  %r2 = train.mul %r, %two : tensor<i64>
  %rank_e = train.add %r2, %s : tensor<i64>
  check.expect_eq %rank, %rank_e : tensor<i64>
  %x = train.reshape %rank : (tensor<i64>) -> tensor<1xi64>
  %all = dist.all_gather %x {axes = ["replicate", "shard"], dim = 0 : i64} : (tensor<1xi64>) -> tensor<4xi64>
  %all_e = train.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  check.expect_eq %all, %all_e : tensor<4xi64>
  %row = dist.all_gather %x {axes = ["shard"], dim = 0 : i64} : (tensor<1xi64>) -> tensor<2xi64>
  %row_0 = train.reshape %r2 : (tensor<i64>) -> tensor<1xi64>
  %one = train.constant dense<1> : tensor<1xi64>
  %row_1 = train.add %row_0, %one : tensor<1xi64>
  %row_e = train.concat %row_0, %row_1 {dim = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  check.expect_eq %row, %row_e : tensor<2xi64>
  %back = dist.slice_local %all {axes = ["replicate", "shard"], dim = 0 : i64} : (tensor<4xi64>) -> tensor<1xi64>
  check.expect_eq %back, %x : tensor<1xi64>
  return
}

func.func @reduce() {
  %rank = dist.axis_index {axes = ["replicate", "shard"]} : tensor<i64>
  %sum = dist.all_reduce %rank {axes = ["replicate", "shard"]} : (tensor<i64>) -> tensor<i64>
  %six = train.constant dense<6> : tensor<i64>
  check.expect_eq %sum, %six : tensor<i64>
  %base = train.constant dense<[0, 100, 200, 300]> : tensor<4xi64>
  %rank4 = train.broadcast %rank {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<4xi64>
  %x = train.add %base, %rank4 : tensor<4xi64>
  %scattered = dist.reduce_scatter %x {axes = ["replicate", "shard"], dim = 0 : i64} : (tensor<4xi64>) -> tensor<1xi64>
  %scale = train.constant dense<400> : tensor<i64>
  %scaled = train.mul %rank, %scale : tensor<i64>
  %e = train.add %scaled, %six : tensor<i64>
  %e1 = train.reshape %e : (tensor<i64>) -> tensor<1xi64>
  check.expect_eq %scattered, %e1 : tensor<1xi64>
  return
}

// A NaN of one rank is everyone's, whichever rank has it; 0 is above -0.
func.func @extremes() {
  %rank = dist.axis_index {axes = ["replicate", "shard"]} : tensor<i64>
  %most = dist.all_reduce %rank {axes = ["replicate", "shard"], kind = #dist<reduction max>} : (tensor<i64>) -> tensor<i64>
  %three = train.constant dense<3> : tensor<i64>
  check.expect_eq %most, %three : tensor<i64>
  %f = train.convert %rank : (tensor<i64>) -> tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  %below = train.sub %f, %one : tensor<f32>
  %root = train.sqrt %below : tensor<f32>
  %nan = dist.all_reduce %root {axes = ["replicate", "shard"], kind = #dist<reduction max>} : (tensor<f32>) -> tensor<f32>
  %isnan = train.compare ne, %nan, %nan : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %true = train.constant dense<true> : tensor<i1>
  check.expect_eq %isnan, %true : tensor<i1>
  %minus = train.constant dense<-0.0> : tensor<f32>
  %zero = train.mul %f, %minus : tensor<f32>
  %isfirst = train.compare eq, %f, %minus : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %plus = train.constant dense<0.0> : tensor<f32>
  %signs = train.select %isfirst, %plus, %zero : tensor<i1>, tensor<f32>
  %top = dist.all_reduce %signs {axes = ["replicate", "shard"], kind = #dist<reduction max>} : (tensor<f32>) -> tensor<f32>
  %bottom = dist.all_reduce %signs {axes = ["replicate", "shard"], kind = #dist<reduction min>} : (tensor<f32>) -> tensor<f32>
  %itop = train.div %one, %top : tensor<f32>
  %ibottom = train.div %one, %bottom : tensor<f32>
  %inf = train.constant dense<0x7F800000> : tensor<f32>
  %minf = train.constant dense<0xFF800000> : tensor<f32>
  check.expect_eq %itop, %inf : tensor<f32>
  check.expect_eq %ibottom, %minf : tensor<f32>
  %row = train.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  %fs = train.broadcast %f {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %x = train.add %row, %fs : tensor<4xf32>
  %least = dist.reduce_scatter %x {axes = ["replicate", "shard"], dim = 0 : i64, kind = #dist<reduction min>} : (tensor<4xf32>) -> tensor<1xf32>
  %f1 = train.reshape %f : (tensor<f32>) -> tensor<1xf32>
  check.expect_eq %least, %f1 : tensor<1xf32>
  return
}

func.func @exchange() {
  %s = dist.axis_index {axes = ["shard"]} : tensor<i64>
  %one = train.constant dense<1> : tensor<i64>
  %other = train.sub %one, %s : tensor<i64>
  %p = dist.permute %s {axes = ["shard"], shift = 1 : i64} : (tensor<i64>) -> tensor<i64>
  check.expect_eq %p, %other : tensor<i64>
  // Member m holds [[m, m + 10]]; splitting along 1 and joining along 0 gives [[0 + 10m], [1 + 10m]].
  %ten = train.constant dense<[[0, 10]]> : tensor<1x2xi64>
  %s2 = train.broadcast %s {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<1x2xi64>
  %x = train.add %ten, %s2 : tensor<1x2xi64>
  %t = dist.all_to_all %x {axes = ["shard"], split_dim = 1 : i64, concat_dim = 0 : i64} : (tensor<1x2xi64>) -> tensor<2x1xi64>
  %count = train.constant dense<[[0], [1]]> : tensor<2x1xi64>
  %tens = train.constant dense<10> : tensor<i64>
  %offset = train.mul %s, %tens : tensor<i64>
  %offset2 = train.broadcast %offset {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<2x1xi64>
  %e = train.add %count, %offset2 : tensor<2x1xi64>
  check.expect_eq %t, %e : tensor<2x1xi64>
  return
}

// A start and its done are the collective.
func.func @asynchronous() {
  %s = dist.axis_index {axes = ["shard"]} : tensor<i64>
  %base = train.constant dense<[[1, 20], [300, 4000]]> : tensor<2x2xi64>
  %s2 = train.broadcast %s {broadcast_dimensions = array<i64>} : (tensor<i64>) -> tensor<2x2xi64>
  %x = train.mul %base, %s2 : tensor<2x2xi64>
  %f0 = dist.all_reduce_start %x {axes = ["shard"]} : (tensor<2x2xi64>) -> !dist.future<tensor<2x2xi64>>
  %f1 = dist.all_gather_start %x {axes = ["shard"], dim = 0 : i64} : (tensor<2x2xi64>) -> !dist.future<tensor<4x2xi64>>
  %f2 = dist.reduce_scatter_start %x {axes = ["shard"], dim = 1 : i64} : (tensor<2x2xi64>) -> !dist.future<tensor<2x1xi64>>
  %f3 = dist.all_to_all_start %x {axes = ["shard"], split_dim = 0 : i64, concat_dim = 1 : i64} : (tensor<2x2xi64>) -> !dist.future<tensor<1x4xi64>>
  %f4 = dist.permute_start %x {axes = ["shard"], shift = -1 : i64} : (tensor<2x2xi64>) -> !dist.future<tensor<2x2xi64>>
  %a0 = dist.done %f0 : (!dist.future<tensor<2x2xi64>>) -> tensor<2x2xi64>
  %a1 = dist.done %f1 : (!dist.future<tensor<4x2xi64>>) -> tensor<4x2xi64>
  %a2 = dist.done %f2 : (!dist.future<tensor<2x1xi64>>) -> tensor<2x1xi64>
  %a3 = dist.done %f3 : (!dist.future<tensor<1x4xi64>>) -> tensor<1x4xi64>
  %a4 = dist.done %f4 : (!dist.future<tensor<2x2xi64>>) -> tensor<2x2xi64>
  %b1 = dist.all_gather %x {axes = ["shard"], dim = 0 : i64} : (tensor<2x2xi64>) -> tensor<4x2xi64>
  %b2 = dist.reduce_scatter %x {axes = ["shard"], dim = 1 : i64} : (tensor<2x2xi64>) -> tensor<2x1xi64>
  %b3 = dist.all_to_all %x {axes = ["shard"], split_dim = 0 : i64, concat_dim = 1 : i64} : (tensor<2x2xi64>) -> tensor<1x4xi64>
  %b4 = dist.permute %x {axes = ["shard"], shift = -1 : i64} : (tensor<2x2xi64>) -> tensor<2x2xi64>
  check.expect_eq %a0, %base : tensor<2x2xi64>
  check.expect_eq %a1, %b1 : tensor<4x2xi64>
  check.expect_eq %a2, %b2 : tensor<2x1xi64>
  check.expect_eq %a3, %b3 : tensor<1x4xi64>
  check.expect_eq %a4, %b4 : tensor<2x2xi64>
  return
}

}
