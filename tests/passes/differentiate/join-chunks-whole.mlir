// A gradient that reads a part of a product whose factor is read whole as well is computed from the whole.
// RUN: tessera-opt %s --join-chunks | FileCheck %s
// RUN: tessera-opt %s --join-chunks | tessera-interp - --compare=%s

// CHECK-LABEL: func @square
// CHECK: train.dot_general %arg0, %arg1
// CHECK: return
func.func @square(%a: tensor<1x6x8xf32>, %w: tensor<8x8xf32>, %u: tensor<8x8xf32>, %k: tensor<1x1x6x8xf32>, %o: tensor<1x1x6x8xf32>, %l: tensor<1x1x6xf32>) -> (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) {
  %p = train.dot_general %a, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>, train.backward} : (tensor<1x6x8xf32>, tensor<8x8xf32>) -> tensor<1x6x8xf32>
  %pp = train.dot_general %p, %p {lhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0, 1>, train.backward} : (tensor<1x6x8xf32>, tensor<1x6x8xf32>) -> tensor<8x8xf32>
  %g = train.reshape %pp {train.backward} : (tensor<8x8xf32>) -> tensor<1x1x8x8xf32>
  %g0 = train.slice %g {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 1, 1, 6, 8>, strides = array<i64: 1, 1, 1, 1>, train.backward} : (tensor<1x1x8x8xf32>) -> tensor<1x1x6x8xf32>
  %q1, %k1, %v1 = train.attention_grad %k, %k, %k, %o, %l, %g0 {scale = 1.0 : f64, train.backward} : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6xf32>, tensor<1x1x6x8xf32>) -> (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>)
  return %q1, %k1 : tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>
}
