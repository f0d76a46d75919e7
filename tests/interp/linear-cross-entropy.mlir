// RUN: tessera-interp %s
// The loss of a linear layer and its gradient are those of the product, its cross-entropy and the products with the gradient of the logits,
// with the weight either way round.

func.func @by_class(%x: tensor<6x4xf64>, %w: tensor<5x4xf64>, %g: tensor<6xf64>) {
  %t = train.constant dense<[0, 4, 2, 2, 1, 3]> : tensor<6xi32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf64>, tensor<5x4xf64>) -> tensor<6x5xf64>
  %e, %e_lse = train.cross_entropy %y, %t : (tensor<6x5xf64>, tensor<6xi32>) -> (tensor<6xf64>, tensor<6xf64>)
  %l, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<6x4xf64>, tensor<5x4xf64>, tensor<6xi32>) -> (tensor<6xf64>, tensor<6xf64>)
  check.expect_close %l, %e {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  check.expect_close %lse, %e_lse {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  %m, %mse, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64} : (tensor<6x4xf64>, tensor<5x4xf64>, tensor<6xi32>, tensor<6xf64>) -> (tensor<6xf64>, tensor<6xf64>, tensor<6x4xf64>, tensor<5x4xf64>)
  check.expect_eq %m, %l : tensor<6xf64>
  check.expect_eq %mse, %lse : tensor<6xf64>
  // (softmax - targets) times the gradient of each row.
  %p = train.softmax %y {dim = 1 : i64} : tensor<6x5xf64>
  %q = train.constant dense<[[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]]> : tensor<6x5xf64>
  %d = train.sub %p, %q : tensor<6x5xf64>
  %gr = train.broadcast %g {broadcast_dimensions = array<i64: 0>} : (tensor<6xf64>) -> tensor<6x5xf64>
  %dy = train.mul %d, %gr : tensor<6x5xf64>
  %ex = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x5xf64>, tensor<5x4xf64>) -> tensor<6x4xf64>
  %ew = train.dot_general %dy, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x5xf64>, tensor<6x4xf64>) -> tensor<5x4xf64>
  check.expect_close %dx, %ex {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6x4xf64>
  check.expect_close %dw, %ew {rtol = 1.0e-12, atol = 1.0e-12} : tensor<5x4xf64>
  return
}

func.func @by_feature(%x: tensor<6x4xf64>, %w: tensor<4x5xf64>, %g: tensor<6xf64>) {
  %t = train.constant dense<[0, 4, 2, 2, 1, 3]> : tensor<6xi32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x4xf64>, tensor<4x5xf64>) -> tensor<6x5xf64>
  %e, %e_lse = train.cross_entropy %y, %t : (tensor<6x5xf64>, tensor<6xi32>) -> (tensor<6xf64>, tensor<6xf64>)
  %l, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 0 : i64} : (tensor<6x4xf64>, tensor<4x5xf64>, tensor<6xi32>) -> (tensor<6xf64>, tensor<6xf64>)
  check.expect_close %l, %e {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  check.expect_close %lse, %e_lse {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  %m, %mse, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 0 : i64} : (tensor<6x4xf64>, tensor<4x5xf64>, tensor<6xi32>, tensor<6xf64>) -> (tensor<6xf64>, tensor<6xf64>, tensor<6x4xf64>, tensor<4x5xf64>)
  check.expect_eq %m, %l : tensor<6xf64>
  check.expect_eq %mse, %lse : tensor<6xf64>
  // (softmax - targets) times the gradient of each row.
  %p = train.softmax %y {dim = 1 : i64} : tensor<6x5xf64>
  %q = train.constant dense<[[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]]> : tensor<6x5xf64>
  %d = train.sub %p, %q : tensor<6x5xf64>
  %gr = train.broadcast %g {broadcast_dimensions = array<i64: 0>} : (tensor<6xf64>) -> tensor<6x5xf64>
  %dy = train.mul %d, %gr : tensor<6x5xf64>
  %ex = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x5xf64>, tensor<4x5xf64>) -> tensor<6x4xf64>
  %ew = train.dot_general %x, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x4xf64>, tensor<6x5xf64>) -> tensor<4x5xf64>
  check.expect_close %dx, %ex {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6x4xf64>
  check.expect_close %dw, %ew {rtol = 1.0e-12, atol = 1.0e-12} : tensor<4x5xf64>
  return
}

// Rows that are ignored have a loss of 0, and no gradient; their log-sum-exp is known.
func.func @ignored(%x: tensor<6x4xf64>, %w: tensor<5x4xf64>, %g: tensor<6xf64>) {
  %t = train.constant dense<[0, -100, 2, 2, -100, 3]> : tensor<6xi32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf64>, tensor<5x4xf64>) -> tensor<6x5xf64>
  %e, %e_lse = train.cross_entropy %y, %t {ignore_index = -100 : i64} : (tensor<6x5xf64>, tensor<6xi32>) -> (tensor<6xf64>, tensor<6xf64>)
  %l, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64, ignore_index = -100 : i64} : (tensor<6x4xf64>, tensor<5x4xf64>, tensor<6xi32>) -> (tensor<6xf64>, tensor<6xf64>)
  check.expect_close %l, %e {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  check.expect_close %lse, %e_lse {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  %m, %mse, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64, ignore_index = -100 : i64} : (tensor<6x4xf64>, tensor<5x4xf64>, tensor<6xi32>, tensor<6xf64>) -> (tensor<6xf64>, tensor<6xf64>, tensor<6x4xf64>, tensor<5x4xf64>)
  check.expect_eq %m, %l : tensor<6xf64>
  check.expect_eq %mse, %lse : tensor<6xf64>
  // (softmax - targets) times the gradient of each row.
  %p = train.softmax %y {dim = 1 : i64} : tensor<6x5xf64>
  %q = train.constant dense<[[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]]> : tensor<6x5xf64>
  %d = train.sub %p, %q : tensor<6x5xf64>
  %counts = train.constant dense<[1.0, 0.0, 1.0, 1.0, 0.0, 1.0]> : tensor<6xf64>
  %gc = train.mul %g, %counts : tensor<6xf64>
  %gr = train.broadcast %gc {broadcast_dimensions = array<i64: 0>} : (tensor<6xf64>) -> tensor<6x5xf64>
  %dy = train.mul %d, %gr : tensor<6x5xf64>
  %ex = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x5xf64>, tensor<5x4xf64>) -> tensor<6x4xf64>
  %ew = train.dot_general %dy, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x5xf64>, tensor<6x4xf64>) -> tensor<5x4xf64>
  check.expect_close %dx, %ex {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6x4xf64>
  check.expect_close %dw, %ew {rtol = 1.0e-12, atol = 1.0e-12} : tensor<5x4xf64>
  return
}

// A class may be the one that is ignored.
func.func @ignored_class(%x: tensor<6x4xf64>, %w: tensor<4x5xf64>, %g: tensor<6xf64>) {
  %t = train.constant dense<[0, 4, 2, 2, 1, 3]> : tensor<6xi64>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x4xf64>, tensor<4x5xf64>) -> tensor<6x5xf64>
  %e, %e_lse = train.cross_entropy %y, %t {ignore_index = 2 : i64} : (tensor<6x5xf64>, tensor<6xi64>) -> (tensor<6xf64>, tensor<6xf64>)
  %l, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 0 : i64, ignore_index = 2 : i64} : (tensor<6x4xf64>, tensor<4x5xf64>, tensor<6xi64>) -> (tensor<6xf64>, tensor<6xf64>)
  check.expect_close %l, %e {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  check.expect_close %lse, %e_lse {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  %m, %mse, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 0 : i64, ignore_index = 2 : i64} : (tensor<6x4xf64>, tensor<4x5xf64>, tensor<6xi64>, tensor<6xf64>) -> (tensor<6xf64>, tensor<6xf64>, tensor<6x4xf64>, tensor<4x5xf64>)
  check.expect_eq %m, %l : tensor<6xf64>
  check.expect_eq %mse, %lse : tensor<6xf64>
  // (softmax - targets) times the gradient of each row.
  %p = train.softmax %y {dim = 1 : i64} : tensor<6x5xf64>
  %q = train.constant dense<[[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]]> : tensor<6x5xf64>
  %d = train.sub %p, %q : tensor<6x5xf64>
  %counts = train.constant dense<[1.0, 1.0, 0.0, 0.0, 1.0, 1.0]> : tensor<6xf64>
  %gc = train.mul %g, %counts : tensor<6xf64>
  %gr = train.broadcast %gc {broadcast_dimensions = array<i64: 0>} : (tensor<6xf64>) -> tensor<6x5xf64>
  %dy = train.mul %d, %gr : tensor<6x5xf64>
  %ex = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x5xf64>, tensor<4x5xf64>) -> tensor<6x4xf64>
  %ew = train.dot_general %x, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x4xf64>, tensor<6x5xf64>) -> tensor<4x5xf64>
  check.expect_close %dx, %ex {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6x4xf64>
  check.expect_close %dw, %ew {rtol = 1.0e-12, atol = 1.0e-12} : tensor<4x5xf64>
  return
}

func.func @smoothed(%x: tensor<6x4xf64>, %w: tensor<5x4xf64>, %g: tensor<6xf64>) {
  %t = train.constant dense<[0, 4, 2, 2, 1, 3]> : tensor<6xui8>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf64>, tensor<5x4xf64>) -> tensor<6x5xf64>
  %e, %e_lse = train.cross_entropy %y, %t {label_smoothing = 2.5e-01} : (tensor<6x5xf64>, tensor<6xui8>) -> (tensor<6xf64>, tensor<6xf64>)
  %l, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64, label_smoothing = 2.5e-01} : (tensor<6x4xf64>, tensor<5x4xf64>, tensor<6xui8>) -> (tensor<6xf64>, tensor<6xf64>)
  check.expect_close %l, %e {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  check.expect_close %lse, %e_lse {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  %m, %mse, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64, label_smoothing = 2.5e-01} : (tensor<6x4xf64>, tensor<5x4xf64>, tensor<6xui8>, tensor<6xf64>) -> (tensor<6xf64>, tensor<6xf64>, tensor<6x4xf64>, tensor<5x4xf64>)
  check.expect_eq %m, %l : tensor<6xf64>
  check.expect_eq %mse, %lse : tensor<6xf64>
  // (softmax - targets) times the gradient of each row.
  %p = train.softmax %y {dim = 1 : i64} : tensor<6x5xf64>
  %q = train.constant dense<[[0.8, 0.05, 0.05, 0.05, 0.05], [0.05, 0.05, 0.05, 0.05, 0.8], [0.05, 0.05, 0.8, 0.05, 0.05], [0.05, 0.05, 0.8, 0.05, 0.05], [0.05, 0.8, 0.05, 0.05, 0.05], [0.05, 0.05, 0.05, 0.8, 0.05]]> : tensor<6x5xf64>
  %d = train.sub %p, %q : tensor<6x5xf64>
  %gr = train.broadcast %g {broadcast_dimensions = array<i64: 0>} : (tensor<6xf64>) -> tensor<6x5xf64>
  %dy = train.mul %d, %gr : tensor<6x5xf64>
  %ex = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x5xf64>, tensor<5x4xf64>) -> tensor<6x4xf64>
  %ew = train.dot_general %dy, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x5xf64>, tensor<6x4xf64>) -> tensor<5x4xf64>
  check.expect_close %dx, %ex {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6x4xf64>
  check.expect_close %dw, %ew {rtol = 1.0e-12, atol = 1.0e-12} : tensor<5x4xf64>
  return
}

func.func @ignored_and_smoothed(%x: tensor<6x4xf64>, %w: tensor<4x5xf64>, %g: tensor<6xf64>) {
  %t = train.constant dense<[-1, 4, 2, 2, 1, -1]> : tensor<6xi32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x4xf64>, tensor<4x5xf64>) -> tensor<6x5xf64>
  %e, %e_lse = train.cross_entropy %y, %t {ignore_index = -1 : i64, label_smoothing = 2.5e-01} : (tensor<6x5xf64>, tensor<6xi32>) -> (tensor<6xf64>, tensor<6xf64>)
  %l, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 0 : i64, ignore_index = -1 : i64, label_smoothing = 2.5e-01} : (tensor<6x4xf64>, tensor<4x5xf64>, tensor<6xi32>) -> (tensor<6xf64>, tensor<6xf64>)
  check.expect_close %l, %e {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  check.expect_close %lse, %e_lse {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6xf64>
  %m, %mse, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 0 : i64, ignore_index = -1 : i64, label_smoothing = 2.5e-01} : (tensor<6x4xf64>, tensor<4x5xf64>, tensor<6xi32>, tensor<6xf64>) -> (tensor<6xf64>, tensor<6xf64>, tensor<6x4xf64>, tensor<4x5xf64>)
  check.expect_eq %m, %l : tensor<6xf64>
  check.expect_eq %mse, %lse : tensor<6xf64>
  // (softmax - targets) times the gradient of each row.
  %p = train.softmax %y {dim = 1 : i64} : tensor<6x5xf64>
  %q = train.constant dense<[[0.05, 0.05, 0.05, 0.05, 0.05], [0.05, 0.05, 0.05, 0.05, 0.8], [0.05, 0.05, 0.8, 0.05, 0.05], [0.05, 0.05, 0.8, 0.05, 0.05], [0.05, 0.8, 0.05, 0.05, 0.05], [0.05, 0.05, 0.05, 0.05, 0.05]]> : tensor<6x5xf64>
  %d = train.sub %p, %q : tensor<6x5xf64>
  %counts = train.constant dense<[0.0, 1.0, 1.0, 1.0, 1.0, 0.0]> : tensor<6xf64>
  %gc = train.mul %g, %counts : tensor<6xf64>
  %gr = train.broadcast %gc {broadcast_dimensions = array<i64: 0>} : (tensor<6xf64>) -> tensor<6x5xf64>
  %dy = train.mul %d, %gr : tensor<6x5xf64>
  %ex = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x5xf64>, tensor<4x5xf64>) -> tensor<6x4xf64>
  %ew = train.dot_general %x, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x4xf64>, tensor<6x5xf64>) -> tensor<4x5xf64>
  check.expect_close %dx, %ex {rtol = 1.0e-12, atol = 1.0e-12} : tensor<6x4xf64>
  check.expect_close %dw, %ew {rtol = 1.0e-12, atol = 1.0e-12} : tensor<4x5xf64>
  return
}

// The gradient of the logits is rounded to the type of the hidden values, sums are rounded once, or not at all.
func.func @narrow(%x: tensor<6x4xbf16>, %w: tensor<5x4xbf16>, %g: tensor<6xf32>) {
  %t = train.constant dense<[0, 4, 2, 2, 1, 3]> : tensor<6xi32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xbf16>, tensor<5x4xbf16>) -> tensor<6x5xf32>
  %e, %e_lse = train.cross_entropy %y, %t : (tensor<6x5xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %l, %lse, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64} : (tensor<6x4xbf16>, tensor<5x4xbf16>, tensor<6xi32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6x4xbf16>, tensor<5x4xbf16>)
  check.expect_close %l, %e {rtol = 1.0e-6, atol = 1.0e-6} : tensor<6xf32>
  check.expect_close %lse, %e_lse {rtol = 1.0e-6} : tensor<6xf32>
  %m, %mse, %wx, %ww = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64} : (tensor<6x4xbf16>, tensor<5x4xbf16>, tensor<6xi32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>, tensor<5x4xf32>)
  %nx = train.convert %wx : (tensor<6x4xf32>) -> tensor<6x4xbf16>
  check.expect_eq %nx, %dx : tensor<6x4xbf16>
  %nw = train.convert %ww : (tensor<5x4xf32>) -> tensor<5x4xbf16>
  check.expect_eq %nw, %dw : tensor<5x4xbf16>
  %p = train.softmax %y {dim = 1 : i64} : tensor<6x5xf32>
  %classes = train.iota {dim = 1 : i64} : tensor<6x5xi32>
  %wanted = train.broadcast %t {broadcast_dimensions = array<i64: 0>} : (tensor<6xi32>) -> tensor<6x5xi32>
  %is = train.compare eq, %classes, %wanted : (tensor<6x5xi32>, tensor<6x5xi32>) -> tensor<6x5xi1>
  %one = train.convert %is : (tensor<6x5xi1>) -> tensor<6x5xf32>
  %d = train.sub %p, %one : tensor<6x5xf32>
  %gr = train.broadcast %g {broadcast_dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<6x5xf32>
  %dyf = train.mul %d, %gr : tensor<6x5xf32>
  %dy = train.convert %dyf : (tensor<6x5xf32>) -> tensor<6x5xbf16>
  %ex = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x5xbf16>, tensor<5x4xbf16>) -> tensor<6x4xf32>
  check.expect_close %wx, %ex {rtol = 1.0e-6, atol = 1.0e-6} : tensor<6x4xf32>
  %ew = train.dot_general %dy, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x5xbf16>, tensor<6x4xbf16>) -> tensor<5x4xf32>
  check.expect_close %ww, %ew {rtol = 1.0e-6, atol = 1.0e-6} : tensor<5x4xf32>
  return
}
