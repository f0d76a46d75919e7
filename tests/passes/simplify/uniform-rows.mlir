// Where a query sees no key, recognised attention has the gradients of what was written: the query and the key get none.
// Query 1 of batch 1 sees nothing.
// RUN: tessera-opt %s --differentiate > %t.written.mlir
// RUN: tessera-opt %s --recognize-attention --canonicalize --differentiate > %t.recognised.mlir
// RUN: FileCheck %s < %t.recognised.mlir
// RUN: tessera-interp %t.written.mlir --compare=%t.recognised.mlir --rtol=1e-5 --atol=1e-6 --quiet

// CHECK: train.attention_grad
func.func @step(
    %q: tensor<2x2x3x4xf32> {train.role = "param", train.name = "q"},
    %k: tensor<2x2x3x4xf32> {train.role = "param", train.name = "k"},
    %v: tensor<2x2x3x4xf32> {train.role = "param", train.name = "v"},
    %c: tensor<2x2x3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %attend = train.constant dense<[[[[true, false, true], [true, true, true], [false, true, false]]], [[[true, true, true], [false, false, false], [true, false, false]]]]> : tensor<2x1x3x3xi1>
  %ab = train.broadcast %attend {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x1x3x3xi1>) -> tensor<2x2x3x3xi1>
  %low = train.constant dense<-3.40282347E+38> : tensor<2x2x3x3xf32>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x3xf32>
  %m = train.select %ab, %s, %low : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x3x3xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  %weighted = train.mul %y, %c : tensor<2x2x3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x2x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
