// RUN: tessera-interp %s
// Which keys a query sees by a window and by ranges: as a boolean mask says it. Parts of an attention, block by block.

// Five keys, three queries: the last query sees the last key, and with a window of 2 the one before it.
func.func @window(%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x5x2xf64>, %v: tensor<2x2x5x3xf64>, %d: tensor<2x4x3x3xf64>) {
  %m = train.constant dense<[[[[0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]]]]> : tensor<1x1x3x5xi1>
  %o, %o_lse = train.attention %q, %k, %v {scale = 0.5, causal, window = 2 : i64} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %e, %e_lse = train.attention %q, %k, %v mask(%m) {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x1x3x5xi1>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  check.expect_eq %o, %e : tensor<2x4x3x3xf64>
  check.expect_eq %o_lse, %e_lse : tensor<2x4x3xf64>
  %g_q, %g_k, %g_v = train.attention_grad %q, %k, %v, %o, %o_lse, %d {scale = 0.5, causal, window = 2 : i64} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  %h_q, %h_k, %h_v = train.attention_grad %q, %k, %v mask(%m), %o, %o_lse, %d {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x1x3x5xi1>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  check.expect_eq %g_q, %h_q : tensor<2x4x3x2xf64>
  check.expect_eq %g_k, %h_k : tensor<2x2x5x2xf64>
  check.expect_eq %g_v, %h_v : tensor<2x2x5x3xf64>
  // One key more than there are hides none.
  %c, %c_lse = train.attention %q, %k, %v {scale = 0.5, causal} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %w, %w_lse = train.attention %q, %k, %v {scale = 0.5, causal, window = 6 : i64} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  check.expect_eq %c, %w : tensor<2x4x3x3xf64>
  check.expect_eq %c_lse, %w_lse : tensor<2x4x3xf64>
  return
}

// Ranges of keys that all samples share, or of each sample; a bound outside of the keys is none.
func.func @ranges(%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x5x2xf64>, %v: tensor<2x2x5x3xf64>, %d: tensor<2x4x3x3xf64>) {
  %b = train.constant dense<[[0, 1, -7]]> : tensor<1x3xi64>
  %e = train.constant dense<[[2, 4, 9]]> : tensor<1x3xi64>
  %m = train.constant dense<[[[[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [1, 1, 1, 1, 1]]]]> : tensor<1x1x3x5xi1>
  %o, %o_lse = train.attention %q, %k, %v keys(%b to %e) {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x3xi64>, tensor<1x3xi64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %x, %x_lse = train.attention %q, %k, %v mask(%m) {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x1x3x5xi1>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  check.expect_eq %o, %x : tensor<2x4x3x3xf64>
  check.expect_eq %o_lse, %x_lse : tensor<2x4x3xf64>
  %g_q, %g_k, %g_v = train.attention_grad %q, %k, %v keys(%b to %e), %o, %o_lse, %d {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x3xi64>, tensor<1x3xi64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  %h_q, %h_k, %h_v = train.attention_grad %q, %k, %v mask(%m), %o, %o_lse, %d {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x1x3x5xi1>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  check.expect_eq %g_q, %h_q : tensor<2x4x3x2xf64>
  check.expect_eq %g_k, %h_k : tensor<2x2x5x2xf64>
  check.expect_eq %g_v, %h_v : tensor<2x2x5x3xf64>
  // The end of each sample's own.
  %e2 = train.constant dense<[[2, 4, 9], [1, 5, 3]]> : tensor<2x3xi64>
  %m2 = train.constant dense<[[[[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [1, 1, 1, 1, 1]]], [[[1, 0, 0, 0, 0], [0, 1, 1, 1, 1], [1, 1, 1, 0, 0]]]]> : tensor<2x1x3x5xi1>
  %p, %p_lse = train.attention %q, %k, %v keys(%b to %e2) {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x3xi64>, tensor<2x3xi64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %y, %y_lse = train.attention %q, %k, %v mask(%m2) {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<2x1x3x5xi1>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  check.expect_eq %p, %y : tensor<2x4x3x3xf64>
  check.expect_eq %p_lse, %y_lse : tensor<2x4x3xf64>
  %i_q, %i_k, %i_v = train.attention_grad %q, %k, %v keys(%b to %e2), %p, %p_lse, %d {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x3xi64>, tensor<2x3xi64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  %j_q, %j_k, %j_v = train.attention_grad %q, %k, %v mask(%m2), %p, %p_lse, %d {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<2x1x3x5xi1>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  check.expect_eq %i_q, %j_q : tensor<2x4x3x2xf64>
  check.expect_eq %i_k, %j_k : tensor<2x2x5x2xf64>
  check.expect_eq %i_v, %j_v : tensor<2x2x5x3xf64>
  return
}

// A query sees what passes all: causal, a window, ranges and a mask; what a step sends, and its density, change nothing.
func.func @all(%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x5x2xf64>, %v: tensor<2x2x5x3xf64>, %d: tensor<2x4x3x3xf64>) {
  %b = train.constant dense<[[0, 3, 0]]> : tensor<1x3xi64>
  %e = train.constant dense<[[5, 5, 4]]> : tensor<1x3xi64>
  %n = train.constant dense<[[[[1, 0, 1, 1, 1]]]]> : tensor<1x1x1x5xi1>
  %m = train.constant dense<[[[[1, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 1, 0]]]]> : tensor<1x1x3x5xi1>
  %o, %o_lse = train.attention %q, %k, %v mask(%n) keys(%b to %e) {scale = 0.5, causal, window = 3 : i64, density = 0.25, split = #train<attention_split ring>} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x1x1x5xi1>, tensor<1x3xi64>, tensor<1x3xi64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %x, %x_lse = train.attention %q, %k, %v mask(%m) {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x1x3x5xi1>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  check.expect_eq %o, %x : tensor<2x4x3x3xf64>
  check.expect_eq %o_lse, %x_lse : tensor<2x4x3xf64>
  %g_q, %g_k, %g_v = train.attention_grad %q, %k, %v mask(%n) keys(%b to %e), %o, %o_lse, %d {scale = 0.5, causal, window = 3 : i64, density = 0.25, split = #train<attention_split ring>} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x1x1x5xi1>, tensor<1x3xi64>, tensor<1x3xi64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  %h_q, %h_k, %h_v = train.attention_grad %q, %k, %v mask(%m), %o, %o_lse, %d {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x1x3x5xi1>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  check.expect_eq %g_q, %h_q : tensor<2x4x3x2xf64>
  check.expect_eq %g_k, %h_k : tensor<2x2x5x2xf64>
  check.expect_eq %g_v, %h_v : tensor<2x2x5x3xf64>
  return
}

// Queries of no keys: an empty range, one that ends before it begins, one behind all keys.
func.func @nothing(%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x5x2xf64>, %v: tensor<2x2x5x3xf64>, %d: tensor<2x4x3x3xf64>) {
  %b = train.constant dense<[[2, 3, 5]]> : tensor<1x3xi64>
  %e = train.constant dense<[[2, 1, 8]]> : tensor<1x3xi64>
  %o, %o_lse = train.attention %q, %k, %v keys(%b to %e) {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x3xi64>, tensor<1x3xi64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %zero = train.constant dense<0.0> : tensor<2x4x3x3xf64>
  %minus = train.constant dense<0xFFF0000000000000> : tensor<2x4x3xf64>
  check.expect_eq %o, %zero : tensor<2x4x3x3xf64>
  check.expect_eq %o_lse, %minus : tensor<2x4x3xf64>
  %g_q, %g_k, %g_v = train.attention_grad %q, %k, %v keys(%b to %e), %o, %o_lse, %d {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x3xi64>, tensor<1x3xi64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  %h_q, %h_k, %h_v = train.attention_grad %q, %k, %v keys(%b to %e), %o, %o_lse, %d {scale = 0.5, partial} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<1x3xi64>, tensor<1x3xi64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  %zq = train.constant dense<0.0> : tensor<2x4x3x2xf64>
  %zk = train.constant dense<0.0> : tensor<2x2x5x2xf64>
  %zv = train.constant dense<0.0> : tensor<2x2x5x3xf64>
  check.expect_eq %g_q, %zq : tensor<2x4x3x2xf64>
  check.expect_eq %g_k, %zk : tensor<2x2x5x2xf64>
  check.expect_eq %g_v, %zv : tensor<2x2x5x3xf64>
  check.expect_eq %h_q, %zq : tensor<2x4x3x2xf64>
  check.expect_eq %h_k, %zk : tensor<2x2x5x2xf64>
  check.expect_eq %h_v, %zv : tensor<2x2x5x3xf64>
  return
}

// The first three keys and the last two: results weighted by their share of all exponentials, and gradients, add up.
func.func @blocks(%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x5x2xf64>, %v: tensor<2x2x5x3xf64>, %d: tensor<2x4x3x3xf64>) {
  %o, %o_lse = train.attention %q, %k, %v {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %g_q, %g_k, %g_v = train.attention_grad %q, %k, %v, %o, %o_lse, %d {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  %k0 = train.slice %k {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 2, 3, 2>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x5x2xf64>) -> tensor<2x2x3x2xf64>
  %v0 = train.slice %v {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 2, 3, 3>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x5x3xf64>) -> tensor<2x2x3x3xf64>
  %o0, %l0 = train.attention %q, %k0, %v0 {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x3xf64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %q0, %dk0, %dv0 = train.attention_grad %q, %k0, %v0, %o, %o_lse, %d {scale = 0.5, partial} : (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x3xf64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x3xf64>)
  %d0 = train.sub %l0, %o_lse : tensor<2x4x3xf64>
  %w0 = train.exp %d0 : tensor<2x4x3xf64>
  %ww0 = train.broadcast %w0 {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x3xf64>) -> tensor<2x4x3x3xf64>
  %p0 = train.mul %ww0, %o0 : tensor<2x4x3x3xf64>
  %k1 = train.slice %k {starts = array<i64: 0, 0, 3, 0>, limits = array<i64: 2, 2, 5, 2>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x5x2xf64>) -> tensor<2x2x2x2xf64>
  %v1 = train.slice %v {starts = array<i64: 0, 0, 3, 0>, limits = array<i64: 2, 2, 5, 3>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x5x3xf64>) -> tensor<2x2x2x3xf64>
  %o1, %l1 = train.attention %q, %k1, %v1 {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x2x2xf64>, tensor<2x2x2x3xf64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %q1, %dk1, %dv1 = train.attention_grad %q, %k1, %v1, %o, %o_lse, %d {scale = 0.5, partial} : (tensor<2x4x3x2xf64>, tensor<2x2x2x2xf64>, tensor<2x2x2x3xf64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x2x2xf64>, tensor<2x2x2x3xf64>)
  %d1 = train.sub %l1, %o_lse : tensor<2x4x3xf64>
  %w1 = train.exp %d1 : tensor<2x4x3xf64>
  %ww1 = train.broadcast %w1 {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x3xf64>) -> tensor<2x4x3x3xf64>
  %p1 = train.mul %ww1, %o1 : tensor<2x4x3x3xf64>
  %sum = train.add %p0, %p1 : tensor<2x4x3x3xf64>
  check.expect_close %sum, %o {rtol = 1.0e-12, atol = 1.0e-12} : tensor<2x4x3x3xf64>
  %sq = train.add %q0, %q1 : tensor<2x4x3x2xf64>
  check.expect_close %sq, %g_q {rtol = 1.0e-12, atol = 1.0e-12} : tensor<2x4x3x2xf64>
  %sk = train.concat %dk0, %dk1 {dim = 2 : i64} : (tensor<2x2x3x2xf64>, tensor<2x2x2x2xf64>) -> tensor<2x2x5x2xf64>
  check.expect_close %sk, %g_k {rtol = 1.0e-12, atol = 1.0e-12} : tensor<2x2x5x2xf64>
  %sv = train.concat %dv0, %dv1 {dim = 2 : i64} : (tensor<2x2x3x3xf64>, tensor<2x2x2x3xf64>) -> tensor<2x2x5x3xf64>
  check.expect_close %sv, %g_v {rtol = 1.0e-12, atol = 1.0e-12} : tensor<2x2x5x3xf64>
  return
}

// What is causal of all keys is a range of a block; the first query sees nothing of the second one.
func.func @causal_blocks(%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x5x2xf64>, %v: tensor<2x2x5x3xf64>, %d: tensor<2x4x3x3xf64>) {
  %b0 = train.constant dense<[[0, 1, 2]]> : tensor<1x3xi64>
  %e0 = train.constant dense<[[3, 3, 3]]> : tensor<1x3xi64>
  %b1 = train.constant dense<[[0, 0, 0]]> : tensor<1x3xi64>
  %e1 = train.constant dense<[[0, 1, 2]]> : tensor<1x3xi64>
  %o, %o_lse = train.attention %q, %k, %v {scale = 0.5, causal, window = 3 : i64} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %g_q, %g_k, %g_v = train.attention_grad %q, %k, %v, %o, %o_lse, %d {scale = 0.5, causal, window = 3 : i64} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x3xf64>)
  %k0 = train.slice %k {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 2, 3, 2>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x5x2xf64>) -> tensor<2x2x3x2xf64>
  %v0 = train.slice %v {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 2, 3, 3>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x5x3xf64>) -> tensor<2x2x3x3xf64>
  %o0, %l0 = train.attention %q, %k0, %v0 keys(%b0 to %e0) {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x3xf64>, tensor<1x3xi64>, tensor<1x3xi64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %q0, %dk0, %dv0 = train.attention_grad %q, %k0, %v0 keys(%b0 to %e0), %o, %o_lse, %d {scale = 0.5, partial} : (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x3xf64>, tensor<1x3xi64>, tensor<1x3xi64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x3xf64>)
  %d0 = train.sub %l0, %o_lse : tensor<2x4x3xf64>
  %w0 = train.exp %d0 : tensor<2x4x3xf64>
  %ww0 = train.broadcast %w0 {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x3xf64>) -> tensor<2x4x3x3xf64>
  %p0 = train.mul %ww0, %o0 : tensor<2x4x3x3xf64>
  %k1 = train.slice %k {starts = array<i64: 0, 0, 3, 0>, limits = array<i64: 2, 2, 5, 2>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x5x2xf64>) -> tensor<2x2x2x2xf64>
  %v1 = train.slice %v {starts = array<i64: 0, 0, 3, 0>, limits = array<i64: 2, 2, 5, 3>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x5x3xf64>) -> tensor<2x2x2x3xf64>
  %o1, %l1 = train.attention %q, %k1, %v1 keys(%b1 to %e1) {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x2x2xf64>, tensor<2x2x2x3xf64>, tensor<1x3xi64>, tensor<1x3xi64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  %q1, %dk1, %dv1 = train.attention_grad %q, %k1, %v1 keys(%b1 to %e1), %o, %o_lse, %d {scale = 0.5, partial} : (tensor<2x4x3x2xf64>, tensor<2x2x2x2xf64>, tensor<2x2x2x3xf64>, tensor<1x3xi64>, tensor<1x3xi64>, tensor<2x4x3x3xf64>, tensor<2x4x3xf64>, tensor<2x4x3x3xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x2x2xf64>, tensor<2x2x2x3xf64>)
  %d1 = train.sub %l1, %o_lse : tensor<2x4x3xf64>
  %w1 = train.exp %d1 : tensor<2x4x3xf64>
  %ww1 = train.broadcast %w1 {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x3xf64>) -> tensor<2x4x3x3xf64>
  %p1 = train.mul %ww1, %o1 : tensor<2x4x3x3xf64>
  %sum = train.add %p0, %p1 : tensor<2x4x3x3xf64>
  check.expect_close %sum, %o {rtol = 1.0e-12, atol = 1.0e-12} : tensor<2x4x3x3xf64>
  %sq = train.add %q0, %q1 : tensor<2x4x3x2xf64>
  check.expect_close %sq, %g_q {rtol = 1.0e-12, atol = 1.0e-12} : tensor<2x4x3x2xf64>
  %sk = train.concat %dk0, %dk1 {dim = 2 : i64} : (tensor<2x2x3x2xf64>, tensor<2x2x2x2xf64>) -> tensor<2x2x5x2xf64>
  check.expect_close %sk, %g_k {rtol = 1.0e-12, atol = 1.0e-12} : tensor<2x2x5x2xf64>
  %sv = train.concat %dv0, %dv1 {dim = 2 : i64} : (tensor<2x2x3x3xf64>, tensor<2x2x2x3xf64>) -> tensor<2x2x5x3xf64>
  check.expect_close %sv, %g_v {rtol = 1.0e-12, atol = 1.0e-12} : tensor<2x2x5x3xf64>
  return
}

// Results of the type in which they are added up are those of the narrow type, not yet rounded.
func.func @sums(%q: tensor<1x2x3x2xbf16>, %k: tensor<1x2x3x2xbf16>, %d: tensor<1x2x3x2xbf16>) {
  %o, %lse = train.attention %q, %k, %k {scale = 0.5, causal} : (tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>) -> (tensor<1x2x3x2xbf16>, tensor<1x2x3xf32>)
  %w, %wlse = train.attention %q, %k, %k {scale = 0.5, causal} : (tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3xf32>)
  %n = train.convert %w : (tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xbf16>
  check.expect_eq %n, %o : tensor<1x2x3x2xbf16>
  %dq, %dk, %dv = train.attention_grad %q, %k, %k, %o, %lse, %d {scale = 0.5, causal} : (tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>, tensor<1x2x3xf32>, tensor<1x2x3x2xbf16>) -> (tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>)
  %wq, %wk, %wv = train.attention_grad %q, %k, %k, %o, %lse, %d {scale = 0.5, causal} : (tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>, tensor<1x2x3x2xbf16>, tensor<1x2x3xf32>, tensor<1x2x3x2xbf16>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>)
  %nq = train.convert %wq : (tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xbf16>
  check.expect_eq %nq, %dq : tensor<1x2x3x2xbf16>
  %nk = train.convert %wk : (tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xbf16>
  check.expect_eq %nk, %dk : tensor<1x2x3x2xbf16>
  %nv = train.convert %wv : (tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xbf16>
  check.expect_eq %nv, %dv : tensor<1x2x3x2xbf16>
  return
}
