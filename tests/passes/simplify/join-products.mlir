// RUN: tessera-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(join-products{no-decay=slow}))' | FileCheck %s

// Query, key and value with their biases, and a product of another value.
// CHECK-LABEL: func @biased
// CHECK: %[[W:.*]] = train.concat %arg1, %arg2, %arg3 {dim = 0 : i64}
// CHECK: %[[P:.*]] = train.dot_general %arg0, %[[W]] {{.*}} -> tensor<8x28xf32>
// CHECK: %[[B:.*]] = train.concat %arg4, %arg5, %arg6 {dim = 0 : i64}
// CHECK: %[[R:.*]] = train.broadcast %[[B]] {broadcast_dimensions = array<i64: 1>}
// CHECK: %[[S:.*]] = train.add %[[P]], %[[R]]
// CHECK: %[[Q:.*]] = train.slice %[[S]] {limits = array<i64: 8, 16>, starts = array<i64: 0, 0>
// CHECK: %[[K:.*]] = train.slice %[[S]] {limits = array<i64: 8, 20>, starts = array<i64: 0, 16>
// CHECK: %[[V:.*]] = train.slice %[[S]] {limits = array<i64: 8, 28>, starts = array<i64: 0, 20>
// CHECK: train.dot_general %[[Q]], %arg7
// CHECK: return %{{.*}}, %[[K]], %[[V]]
func.func @biased(%x: tensor<8x16xf32> {train.role = "input", train.name = "x"},
                  %wq: tensor<16x16xf32> {train.role = "param", train.name = "h.0.q.weight"},
                  %wk: tensor<4x16xf32> {train.role = "param", train.name = "h.0.k.weight"},
                  %wv: tensor<8x16xf32> {train.role = "param", train.name = "h.0.v.weight"},
                  %bq: tensor<16xf32> {train.role = "param", train.name = "h.0.q.bias"},
                  %bk: tensor<4xf32> {train.role = "param", train.name = "h.0.k.bias"},
                  %bv: tensor<8xf32> {train.role = "param", train.name = "h.0.v.bias"},
                  %wo: tensor<16x16xf32> {train.role = "param", train.name = "h.0.o.weight"})
    -> (tensor<8x16xf32>, tensor<8x4xf32>, tensor<8x8xf32>) {
  %q = train.dot_general %x, %wq {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %rq = train.broadcast %bq {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<8x16xf32>
  %sq = train.add %q, %rq : tensor<8x16xf32>
  %o = train.dot_general %sq, %wo {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %k = train.dot_general %x, %wk {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %rk = train.broadcast %bk {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4xf32>
  %sk = train.add %rk, %k : tensor<8x4xf32>
  %v = train.dot_general %x, %wv {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
  %rv = train.broadcast %bv {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<8x8xf32>
  %sv = train.add %v, %rv : tensor<8x8xf32>
  return %o, %sk, %sv : tensor<8x16xf32>, tensor<8x4xf32>, tensor<8x8xf32>
}

// -----

// A product with a bias and one without: the bias is added to its part.
// CHECK-LABEL: func @one_bias
// CHECK: %[[W:.*]] = train.concat %arg1, %arg2 {dim = 0 : i64}
// CHECK: %[[P:.*]] = train.dot_general %arg0, %[[W]]
// CHECK: %[[A:.*]] = train.slice %[[P]]
// CHECK: %[[B:.*]] = train.slice %[[P]]
// CHECK: train.add %[[A]],
func.func @one_bias(%x: tensor<2x8x16xf32> {train.role = "input", train.name = "x"},
                    %w1: tensor<4x16xf32> {train.role = "param", train.name = "a.weight"},
                    %w2: tensor<4x16xf32> {train.role = "param", train.name = "b.weight"},
                    %b1: tensor<4xf32> {train.role = "param", train.name = "a.bias"}) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
  %1 = train.dot_general %x, %w1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x8x16xf32>, tensor<4x16xf32>) -> tensor<2x8x4xf32>
  %r = train.broadcast %b1 {broadcast_dimensions = array<i64: 2>} : (tensor<4xf32>) -> tensor<2x8x4xf32>
  %s = train.add %1, %r : tensor<2x8x4xf32>
  %2 = train.dot_general %x, %w2 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x8x16xf32>, tensor<4x16xf32>) -> tensor<2x8x4xf32>
  return %s, %2 : tensor<2x8x4xf32>, tensor<2x8x4xf32>
}

// -----

// Two weights of each of two blocks, a frozen one, one without decay: only the blocks' own are joined.
// CHECK-LABEL: func @apart
// CHECK-DAG: train.concat %arg1, %arg2 {dim = 0 : i64}
// CHECK-DAG: train.concat %arg3, %arg4 {dim = 0 : i64}
// CHECK-DAG: train.dot_general %arg0, %arg5
// CHECK-DAG: train.dot_general %arg0, %arg6
// CHECK-NOT: train.concat
func.func @apart(%x: tensor<8x16xf32> {train.role = "input", train.name = "x"},
                 %k0: tensor<4x16xf32> {train.role = "param", train.name = "h.0.k.weight"},
                 %v0: tensor<4x16xf32> {train.role = "param", train.name = "h.0.v.weight"},
                 %k1: tensor<4x16xf32> {train.role = "param", train.name = "h.1.k.weight"},
                 %v1: tensor<4x16xf32> {train.role = "param", train.name = "h.1.v.weight"},
                 %f: tensor<4x16xf32> {train.role = "frozen", train.name = "h.0.f.weight"},
                 %s: tensor<4x16xf32> {train.role = "param", train.name = "h.0.slow.weight"})
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %1 = train.dot_general %x, %k0 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %2 = train.dot_general %x, %k1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %3 = train.dot_general %x, %v0 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %4 = train.dot_general %x, %v1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %5 = train.dot_general %x, %f {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %6 = train.dot_general %x, %s {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  return %1, %2, %3, %4, %5, %6 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// CHECK-LABEL: func @not_applied
// CHECK-NOT: train.concat
func.func @not_applied(%x: tensor<8x16xf32> {train.role = "input", train.name = "x"},
                       %a: tensor<16x4xf32> {train.role = "param", train.name = "a"},
                       %b: tensor<4x16xf32> {train.role = "param", train.name = "b"},
                       %c: tensor<4x16xf32> {train.role = "param", train.name = "c"})
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x16xf32>) {
  // expected-remark@+1 {{product not joined with others of the same value: the columns of 'a' do not lie one behind the other}}
  %1 = train.dot_general %x, %a {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  // expected-remark@+1 {{product not joined with others of the same value: 'b' has other readers}}
  %2 = train.dot_general %x, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %3 = train.dot_general %x, %c {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
  %4 = train.neg %b : tensor<4x16xf32>
  return %1, %2, %3, %4 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x16xf32>
}
