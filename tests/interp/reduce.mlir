// RUN: tessera-interp %s

func.func @reduce() {
  %x = train.constant dense<[[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]> : tensor<2x3xf32>
  %sum = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  %sum_e = train.constant dense<[2.0, 3.0]> : tensor<2xf32>
  check.expect_eq %sum, %sum_e : tensor<2xf32>
  %max = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
  %max_e = train.constant dense<[4.0, 5.0, 3.0]> : tensor<3xf32>
  check.expect_eq %max, %max_e : tensor<3xf32>
  %min = train.reduce min, %x {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  %min_e = train.constant dense<-6.0> : tensor<f32>
  check.expect_eq %min, %min_e : tensor<f32>
  %mul = train.reduce mul, %x {dimensions = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
  %mul_e = train.constant dense<[4.0, -10.0, -18.0]> : tensor<3xf32>
  check.expect_eq %mul, %mul_e : tensor<3xf32>
  %i = train.constant dense<[3, 1, 2]> : tensor<3xi64>
  %imin = train.reduce min, %i {dimensions = array<i64: 0>} : (tensor<3xi64>) -> tensor<i64>
  %imin_e = train.constant dense<1> : tensor<i64>
  check.expect_eq %imin, %imin_e : tensor<i64>
  return
}

// Stable in both directions; NaN is greater than every number.
func.func @sort_indices() {
  %x = train.constant dense<[[2.0, 0x7FC00000, 1.0, 2.0, 0x7F800000], [0.0, -1.0, 0.0, -1.0, 0.0]]> : tensor<2x5xf32>
  %a = train.sort_indices %x {dim = 1 : i64} : (tensor<2x5xf32>) -> tensor<2x5xi64>
  %a_e = train.constant dense<[[2, 0, 3, 4, 1], [1, 3, 0, 2, 4]]> : tensor<2x5xi64>
  check.expect_eq %a, %a_e : tensor<2x5xi64>
  %d = train.sort_indices %x {descending, dim = 1 : i64} : (tensor<2x5xf32>) -> tensor<2x5xi32>
  %d_e = train.constant dense<[[1, 4, 0, 3, 2], [0, 2, 4, 1, 3]]> : tensor<2x5xi32>
  check.expect_eq %d, %d_e : tensor<2x5xi32>
  %i = train.constant dense<[[3, 9], [4, 8], [3, 10]]> : tensor<3x2xi32>
  %c = train.sort_indices %i {dim = 0 : i64} : (tensor<3x2xi32>) -> tensor<3x2xi64>
  %c_e = train.constant dense<[[0, 1], [2, 0], [1, 2]]> : tensor<3x2xi64>
  check.expect_eq %c, %c_e : tensor<3x2xi64>
  return
}

// The first of two equal maxima.
func.func @argmax() {
  %x = train.constant dense<[[1.0, 7.0, 7.0], [4.0, -5.0, -6.0]]> : tensor<2x3xf32>
  %a = train.argmax %x {dim = 1 : i64} : (tensor<2x3xf32>) -> tensor<2xi64>
  %a_e = train.constant dense<[1, 0]> : tensor<2xi64>
  check.expect_eq %a, %a_e : tensor<2xi64>
  return
}
