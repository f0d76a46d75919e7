// RUN: tessera-interp %s

func.func @iota() {
  %rows = train.iota {dim = 0 : i64} : tensor<2x3xi32>
  %rows_e = train.constant dense<[[0, 0, 0], [1, 1, 1]]> : tensor<2x3xi32>
  check.expect_eq %rows, %rows_e : tensor<2x3xi32>
  %five = train.constant dense<5> : tensor<i64>
  %columns = train.iota offset(%five : tensor<i64>) {dim = 1 : i64} : tensor<2x3xf32>
  %columns_e = train.constant dense<[[5.0, 6.0, 7.0], [5.0, 6.0, 7.0]]> : tensor<2x3xf32>
  check.expect_eq %columns, %columns_e : tensor<2x3xf32>
  return
}

// Philox 4x32-10 of key 0 and counter 0 starts with 0x6627e8d5 (Random123's known answers): 0x6627e8 / 2^24.
func.func @rng_known_answer() {
  %seed = train.constant dense<0> : tensor<i64>
  %u = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<1xf32>
  %e = train.constant dense<0.399046421> : tensor<1xf32>
  check.expect_eq %u, %e : tensor<1xf32>
  return
}

// A part of a global tensor gets the numbers of the whole.
func.func @rng_offsets() {
  %seed = train.constant dense<7> : tensor<i64>
  %whole = train.rng_uniform %seed {stream = 3 : i64} : (tensor<i64>) -> tensor<4x6xf32>
  %expected = train.slice %whole {starts = array<i64: 2, 3>, limits = array<i64: 4, 6>, strides = array<i64: 1, 1>} : (tensor<4x6xf32>) -> tensor<2x3xf32>
  %two = train.constant dense<2> : tensor<i64>
  %three = train.constant dense<3> : tensor<i64>
  %part = train.rng_uniform %seed offsets(%two, %three) {stream = 3 : i64, global_shape = array<i64: 4, 6>} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
  check.expect_eq %part, %expected : tensor<2x3xf32>
  return
}
