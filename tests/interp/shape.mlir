// RUN: tessera-interp %s

func.func @layout() {
  %x = train.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %r = train.reshape %x : (tensor<2x3xi32>) -> tensor<3x2xi32>
  %r_e = train.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  check.expect_eq %r, %r_e : tensor<3x2xi32>
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xi32>) -> tensor<3x2xi32>
  %t_e = train.constant dense<[[1, 4], [2, 5], [3, 6]]> : tensor<3x2xi32>
  check.expect_eq %t, %t_e : tensor<3x2xi32>
  %row = train.constant dense<[[7], [8]]> : tensor<2x1xi32>
  %b = train.broadcast %row {broadcast_dimensions = array<i64: 1, 2>} : (tensor<2x1xi32>) -> tensor<2x2x3xi32>
  %b_e = train.constant dense<[[[7, 7, 7], [8, 8, 8]], [[7, 7, 7], [8, 8, 8]]]> : tensor<2x2x3xi32>
  check.expect_eq %b, %b_e : tensor<2x2x3xi32>
  %s = train.slice %x {starts = array<i64: 1, 0>, limits = array<i64: 2, 3>, strides = array<i64: 1, 2>} : (tensor<2x3xi32>) -> tensor<1x2xi32>
  %s_e = train.constant dense<[[4, 6]]> : tensor<1x2xi32>
  check.expect_eq %s, %s_e : tensor<1x2xi32>
  %last = train.constant dense<[[4, -1, 6]]> : tensor<1x3xi32>
  %c = train.concat %x, %last {dim = 0 : i64} : (tensor<2x3xi32>, tensor<1x3xi32>) -> tensor<3x3xi32>
  %c_e = train.constant dense<[[1, 2, 3], [4, 5, 6], [4, -1, 6]]> : tensor<3x3xi32>
  check.expect_eq %c, %c_e : tensor<3x3xi32>
  return
}

func.func @pad() {
  %x = train.constant dense<[[4, 6]]> : tensor<1x2xi32>
  %p = train.pad %x {low = array<i64: 1, 0>, high = array<i64: 0, 1>, interior = array<i64: 0, 1>, value = -1.0} : (tensor<1x2xi32>) -> tensor<2x4xi32>
  %p_e = train.constant dense<[[-1, -1, -1, -1], [4, -1, 6, -1]]> : tensor<2x4xi32>
  check.expect_eq %p, %p_e : tensor<2x4xi32>
  return
}

// Starts are clamped so that the box lies inside the operand.
func.func @dynamic() {
  %x = train.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %minus = train.constant dense<-3> : tensor<i64>
  %two = train.constant dense<2> : tensor<i64>
  %s = train.dynamic_slice %x[%minus, %two] {sizes = array<i64: 1, 2>} : (tensor<2x3xi32>, tensor<i64>, tensor<i64>) -> tensor<1x2xi32>
  %s_e = train.constant dense<[[2, 3]]> : tensor<1x2xi32>
  check.expect_eq %s, %s_e : tensor<1x2xi32>
  %update = train.constant dense<[[9], [8]]> : tensor<2x1xi32>
  %u = train.dynamic_update_slice %x, %update[%minus, %two] : (tensor<2x3xi32>, tensor<2x1xi32>, tensor<i64>, tensor<i64>) -> tensor<2x3xi32>
  %u_e = train.constant dense<[[1, 2, 9], [4, 5, 8]]> : tensor<2x3xi32>
  check.expect_eq %u, %u_e : tensor<2x3xi32>
  return
}

func.func @rows() {
  %table = train.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %indices = train.constant dense<[[2, 0], [2, 1]]> : tensor<2x2xi32>
  %g = train.gather_rows %table, %indices : (tensor<3x2xf32>, tensor<2x2xi32>) -> tensor<2x2x2xf32>
  %g_e = train.constant dense<[[[5.0, 6.0], [1.0, 2.0]], [[5.0, 6.0], [3.0, 4.0]]]> : tensor<2x2x2xf32>
  check.expect_eq %g, %g_e : tensor<2x2x2xf32>
  %s = train.scatter_add_rows %table, %indices, %g : (tensor<3x2xf32>, tensor<2x2xi32>, tensor<2x2x2xf32>) -> tensor<3x2xf32>
  %s_e = train.constant dense<[[2.0, 4.0], [6.0, 8.0], [15.0, 18.0]]> : tensor<3x2xf32>
  check.expect_eq %s, %s_e : tensor<3x2xf32>
  return
}
