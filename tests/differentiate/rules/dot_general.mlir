// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// Neither layout of a weight needs a transpose.
// CHECK-LABEL: func @matmul
// CHECK-NOT: train.transpose
// CHECK: return
func.func @matmul(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<4x5xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x5xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %weighted = train.mul %y, %c : tensor<3x5xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @matmul_nt
// CHECK-NOT: train.transpose
// CHECK: return
func.func @matmul_nt(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<5x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x5xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
  %weighted = train.mul %y, %c : tensor<3x5xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @matmul_tn
// CHECK-NOT: train.transpose
// CHECK: return
func.func @matmul_tn(
    %a: tensor<4x3xf32> {train.role = "param", train.name = "a"},
    %b: tensor<4x5xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x5xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %weighted = train.mul %y, %c : tensor<3x5xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Batch and sequence are contracted together for the weight.
// CHECK-LABEL: func @tokens
// CHECK-NOT: train.transpose
// CHECK: return
func.func @tokens(
    %a: tensor<2x3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<4x5xf32> {train.role = "param", train.name = "b"},
    %c: tensor<2x3x5xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  %weighted = train.mul %y, %c : tensor<2x3x5xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @batched
// CHECK-NOT: train.transpose
// CHECK: return
func.func @batched(
    %a: tensor<2x3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<2x4x5xf32> {train.role = "param", train.name = "b"},
    %c: tensor<2x3x5xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  %weighted = train.mul %y, %c : tensor<2x3x5xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Batch dimensions that do not come first need a transpose.
// CHECK-LABEL: func @heads
// CHECK: train.transpose
func.func @heads(
    %a: tensor<2x3x2x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<2x3x2x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<2x2x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64: 0, 2>, rhs_batch = array<i64: 0, 2>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x2x3x3xf32>
  %weighted = train.mul %y, %c : tensor<2x2x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x2x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @two_contracted
// CHECK: return
func.func @two_contracted(
    %a: tensor<2x3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<4x5x3xf32> {train.role = "param", train.name = "b"},
    %c: tensor<2x5xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1, 2>, rhs_contract = array<i64: 2, 0>} : (tensor<2x3x4xf32>, tensor<4x5x3xf32>) -> tensor<2x5xf32>
  %weighted = train.mul %y, %c : tensor<2x5xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @everything
// CHECK: return
func.func @everything(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<f32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_contract = array<i64: 0, 1>} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<f32>
  %weighted = train.mul %y, %c : tensor<f32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64>} : (tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @outer
// CHECK: return
func.func @outer(
    %a: tensor<3xf32> {train.role = "param", train.name = "a"},
    %b: tensor<4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64>, rhs_contract = array<i64>} : (tensor<3xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @lhs_only
// CHECK: train.dot_general %{{.*}}, %arg1 {{.*}}train.backward
// CHECK-NOT: train.dot_general
// CHECK: return
func.func @lhs_only(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<4x5xf32> {train.role = "input", train.name = "b"},
    %c: tensor<3x5xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %weighted = train.mul %y, %c : tensor<3x5xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @rhs_only
// CHECK: train.dot_general %arg0, %{{.*}} {{.*}}train.backward
// CHECK-NOT: train.dot_general
// CHECK: return
func.func @rhs_only(
    %a: tensor<3x4xf32> {train.role = "input", train.name = "a"},
    %b: tensor<4x5xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x5xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %weighted = train.mul %y, %c : tensor<3x5xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
