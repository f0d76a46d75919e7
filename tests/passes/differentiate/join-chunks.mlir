// RUN: tessera-opt %s --join-chunks --cse -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: tessera-opt %t.mlir --join-chunks --cse | diff %t.mlir -
// RUN: tessera-interp %t.mlir --compare=%s --function=sum --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=others --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=output --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=read --rtol=1e-5 --atol=1e-6 --quiet

// No diagnostic: sums of products by slices are rare, and what is not joined is computed as it is.

// Products by slices of one weight are one product; another weight's stays, and so does what is added besides.
// CHECK-LABEL: func @sum
// CHECK-DAG: %[[L:.*]] = train.concat %arg0, %arg1 {dim = 1 : i64, train.backward}
// CHECK-DAG: %[[R:.*]] = train.concat %{{.*}}, %{{.*}} {dim = 0 : i64, train.backward} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
// CHECK: %[[D:.*]] = train.dot_general %[[L]], %[[R]] {{.*}}train.backward} : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
// CHECK: %[[S:.*]] = train.add %[[D]], %{{.*}} {train.backward}
// CHECK: return %[[S]]
func.func @sum(%a: tensor<3x2xf32>, %b: tensor<3x2xf32>, %w: tensor<4x4xf32>, %v: tensor<2x4xf32>) -> tensor<3x4xf32> {
  %w0 = train.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 2, 4>, strides = array<i64: 1, 1>, train.backward} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %w1 = train.slice %w {starts = array<i64: 2, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>, train.backward} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %0 = train.dot_general %a, %w0 {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>, train.backward} : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %1 = train.dot_general %b, %v {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>, train.backward} : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %2 = train.dot_general %b, %w1 {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>, train.backward} : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %3 = train.add %0, %1 {train.backward} : tensor<3x4xf32>
  %4 = train.add %3, %2 {train.backward} : tensor<3x4xf32>
  return %4 : tensor<3x4xf32>
}

// Not those with other readers, or of the forward pass.
// CHECK-LABEL: func @others
// CHECK-NOT: train.concat
func.func @others(%a: tensor<3x2xf32>, %b: tensor<3x2xf32>, %w: tensor<4x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %w0 = train.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %w1 = train.slice %w {starts = array<i64: 2, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %0 = train.dot_general %a, %w0 {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>, train.backward} : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %1 = train.dot_general %b, %w1 {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>, train.backward} : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %2 = train.add %0, %1 {train.backward} : tensor<3x4xf32>
  %3 = train.dot_general %a, %w1 {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %4 = train.dot_general %b, %w0 {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  %5 = train.add %3, %4 : tensor<3x4xf32>
  return %0, %2, %5 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}

// What the output projection gives back to each chunk is computed right before the chunk's gradient, by its part of the weight.
// CHECK-LABEL: func @output
// CHECK-NOT: tensor<1x3x8xf32>
// CHECK: train.slice %{{.*}} : (tensor<5x2x2x2xf32>) -> tensor<5x2x1x2xf32>
// CHECK: train.dot_general {{.*}} -> tensor<1x3x4xf32>
// CHECK: train.attention_grad
// CHECK: train.dot_general {{.*}} -> tensor<1x3x4xf32>
// CHECK: train.attention_grad
func.func @output(%d: tensor<1x3x5xf32>, %w: tensor<5x8xf32>, %q: tensor<1x2x3x2xf32>, %k: tensor<1x2x3x2xf32>, %lse: tensor<1x2x3xf32>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>) {
  %0 = train.dot_general %d, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>, train.backward} : (tensor<1x3x5xf32>, tensor<5x8xf32>) -> tensor<1x3x8xf32>
  %1 = train.reshape %0 {train.backward} : (tensor<1x3x8xf32>) -> tensor<1x3x4x2xf32>
  %2 = train.transpose %1 {permutation = array<i64: 0, 2, 1, 3>, train.backward} : (tensor<1x3x4x2xf32>) -> tensor<1x4x3x2xf32>
  %3 = train.reshape %2 {train.backward} : (tensor<1x4x3x2xf32>) -> tensor<1x2x2x3x2xf32>
  %4 = train.slice %3 {starts = array<i64: 0, 0, 0, 0, 0>, limits = array<i64: 1, 2, 1, 3, 2>, strides = array<i64: 1, 1, 1, 1, 1>, train.backward} : (tensor<1x2x2x3x2xf32>) -> tensor<1x2x1x3x2xf32>
  %5 = train.slice %3 {starts = array<i64: 0, 0, 1, 0, 0>, limits = array<i64: 1, 2, 2, 3, 2>, strides = array<i64: 1, 1, 1, 1, 1>, train.backward} : (tensor<1x2x2x3x2xf32>) -> tensor<1x2x1x3x2xf32>
  %6 = train.reshape %4 {train.backward} : (tensor<1x2x1x3x2xf32>) -> tensor<1x2x3x2xf32>
  %7 = train.reshape %5 {train.backward} : (tensor<1x2x1x3x2xf32>) -> tensor<1x2x3x2xf32>
  %dq1, %dk1, %dv1 = train.attention_grad %q, %k, %k, %q, %lse, %7 {scale = 0.5, train.backward} : (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3xf32>, tensor<1x2x3x2xf32>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>)
  %dq0, %dk0, %dv0 = train.attention_grad %q, %k, %k, %q, %lse, %6 {scale = 0.5, train.backward} : (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3xf32>, tensor<1x2x3x2xf32>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>)
  return %dq0, %dq1 : tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>
}

// A product that something else reads is one.
// CHECK-LABEL: func @read
// CHECK: train.dot_general {{.*}} -> tensor<1x3x8xf32>
// CHECK-NOT: train.dot_general
func.func @read(%d: tensor<1x3x5xf32>, %w: tensor<5x8xf32>, %q: tensor<1x2x3x2xf32>, %k: tensor<1x2x3x2xf32>, %lse: tensor<1x2x3xf32>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x3x8xf32>) {
  %0 = train.dot_general %d, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>, train.backward} : (tensor<1x3x5xf32>, tensor<5x8xf32>) -> tensor<1x3x8xf32>
  %1 = train.reshape %0 {train.backward} : (tensor<1x3x8xf32>) -> tensor<1x3x4x2xf32>
  %2 = train.transpose %1 {permutation = array<i64: 0, 2, 1, 3>, train.backward} : (tensor<1x3x4x2xf32>) -> tensor<1x4x3x2xf32>
  %4 = train.slice %2 {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 1, 2, 3, 2>, strides = array<i64: 1, 1, 1, 1>, train.backward} : (tensor<1x4x3x2xf32>) -> tensor<1x2x3x2xf32>
  %5 = train.slice %2 {starts = array<i64: 0, 2, 0, 0>, limits = array<i64: 1, 4, 3, 2>, strides = array<i64: 1, 1, 1, 1>, train.backward} : (tensor<1x4x3x2xf32>) -> tensor<1x2x3x2xf32>
  %dq1, %dk1, %dv1 = train.attention_grad %q, %k, %k, %q, %lse, %5 {scale = 0.5, train.backward} : (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3xf32>, tensor<1x2x3x2xf32>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>)
  %dq0, %dk0, %dv0 = train.attention_grad %q, %k, %k, %q, %lse, %4 {scale = 0.5, train.backward} : (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3xf32>, tensor<1x2x3x2xf32>) -> (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>)
  return %dq0, %dq1, %0 : tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>, tensor<1x3x8xf32>
}
