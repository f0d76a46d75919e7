// RUN: tessera-interp %s

func.func @matmul() {
  %a = train.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = train.constant dense<[[5.0, 6.0, 7.0], [8.0, 9.0, 10.0]]> : tensor<2x3xf32>
  %c = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %c_e = train.constant dense<[[21.0, 24.0, 27.0], [47.0, 54.0, 61.0]]> : tensor<2x3xf32>
  check.expect_eq %c, %c_e : tensor<2x3xf32>
  return
}

// Batch on dimension 1 of lhs and 0 of rhs, two contracted dimensions in another order.
func.func @batched() {
  %a = train.constant dense<[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]> : tensor<2x2x2xi32>
  %b = train.constant dense<[[[1, 10], [100, 1000]], [[1, 1], [1, 1]]]> : tensor<2x2x2xi32>
  %c = train.dot_general %a, %b {lhs_batch = array<i64: 1>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 0, 2>, rhs_contract = array<i64: 2, 1>} : (tensor<2x2x2xi32>, tensor<2x2x2xi32>) -> tensor<2xi32>
  // batch 0: a[.,0,.] = [[1, 2], [5, 6]], transposed product with [[1, 10], [100, 1000]]: 1 + 2*100 + 5*10 + 6*1000
  %c_e = train.constant dense<[6251, 22]> : tensor<2xi32>
  check.expect_eq %c, %c_e : tensor<2xi32>
  return
}

func.func @conv2d() {
  %x = train.constant dense<[[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]]> : tensor<1x1x3x3xf32>
  %w = train.constant dense<[[[[1.0, 0.0], [0.0, -1.0]]]]> : tensor<1x1x2x2xf32>
  %y = train.conv2d %x, %w {strides = array<i64: 2, 1>, padding = array<i64: 1, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %y_e = train.constant dense<[[[[-2.0, -3.0], [-4.0, -4.0]]]]> : tensor<1x1x2x2xf32>
  check.expect_eq %y, %y_e : tensor<1x1x2x2xf32>
  return
}

// Two groups: each output channel sees its own input channel.
func.func @groups() {
  %x = train.constant dense<[[[[1.0, 2.0]], [[3.0, 4.0]]]]> : tensor<1x2x1x2xf32>
  %w = train.constant dense<[[[[10.0]]], [[[100.0]]]]> : tensor<2x1x1x1xf32>
  %y = train.conv2d %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<1x2x1x2xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x1x2xf32>
  %y_e = train.constant dense<[[[[10.0, 20.0]], [[300.0, 400.0]]]]> : tensor<1x2x1x2xf32>
  check.expect_eq %y, %y_e : tensor<1x2x1x2xf32>
  return
}
