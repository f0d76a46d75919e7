// RUN: tessera-opt %s --fuse-epilogues -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --fuse-epilogues -o %t.mlir
// RUN: tessera-interp %t.mlir --compare=%s --function=shapes --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=kept --rtol=1e-6 --atol=1e-6 --quiet
// A product has one epilogue: the second run finds none that is free.
// RUN: tessera-opt %t.mlir --fuse-epilogues -o %t.twice.mlir
// RUN: diff %t.mlir %t.twice.mlir

// What counts as a product that can take an epilogue, and what as a reader of it.

// In bf16 GELU is computed in f32 between products.
// CHECK-LABEL: func.func @narrow_gelu
// CHECK:         %[[Y:.*]], %[[Z:.*]] = exec.epilogue_product gelu_aux %arg0, %arg1
// CHECK:         exec.epilogue_product gelu_grad %arg2, %arg1 with %[[Z]]
// CHECK-NOT:     train.gelu
func.func @narrow_gelu(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %dy: tensor<4x8xbf16>) -> (tensor<4x16xbf16>, tensor<4x16xbf16>) {
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xbf16>
  %wide = train.convert %z : (tensor<4x16xbf16>) -> tensor<4x16xf32>
  %g = train.gelu tanh, %wide : tensor<4x16xf32>
  %y = train.convert %g : (tensor<4x16xf32>) -> tensor<4x16xbf16>
  %p = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xbf16>
  %wide_p = train.convert %p : (tensor<4x16xbf16>) -> tensor<4x16xf32>
  %again = train.convert %z : (tensor<4x16xbf16>) -> tensor<4x16xf32>
  %d = train.gelu_grad tanh, %wide_p, %again : tensor<4x16xf32>
  %dz = train.convert %d : (tensor<4x16xf32>) -> tensor<4x16xbf16>
  return %y, %dz : tensor<4x16xbf16>, tensor<4x16xbf16>
}

// Rows and columns may be of several dimensions: a sum has those of its side.
// CHECK-LABEL: func.func @shapes
// CHECK:         exec.epilogue_product bias_grad_a %arg0, %arg1
// CHECK-SAME:      -> (tensor<2x3x4x5xf32>, tensor<2x3xf32>)
// CHECK:         exec.epilogue_product bias_grad_b %arg2, %arg1
// CHECK-SAME:      -> (tensor<8x4x5xf32>, tensor<4x5xf32>)
func.func @shapes(%x: tensor<6x2x3xf32>, %dy: tensor<6x4x5xf32>, %z: tensor<6x8xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3xf32>, tensor<8x4x5xf32>, tensor<4x5xf32>) {
  %da = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<6x2x3xf32>) -> tensor<2x3xf32>
  %dw = train.dot_general %x, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x2x3xf32>, tensor<6x4x5xf32>) -> tensor<2x3x4x5xf32>
  %db = train.reduce sum, %dy {dimensions = array<i64: 0>} : (tensor<6x4x5xf32>) -> tensor<4x5xf32>
  %dv = train.dot_general %z, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x8xf32>, tensor<6x4x5xf32>) -> tensor<8x4x5xf32>
  return %dw, %da, %dv, %db : tensor<2x3x4x5xf32>, tensor<2x3xf32>, tensor<8x4x5xf32>, tensor<4x5xf32>
}

// What is kept for the backward pass is the same value behind a barrier.
// CHECK-LABEL: func.func @kept
// CHECK:         %[[Y:.*]], %[[Z:.*]] = exec.epilogue_product gelu_aux %arg0, %arg1
// CHECK:         exec.epilogue_product gelu_grad %arg2, %arg1 with %[[Z]]
func.func @kept(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %dy: tensor<4x8xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %y = train.gelu tanh, %z : tensor<4x16xf32>
  %back = train.barrier %z : tensor<4x16xf32>
  %p = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %dz = train.gelu_grad tanh, %p, %back : tensor<4x16xf32>
  return %y, %dz : tensor<4x16xf32>, tensor<4x16xf32>
}

// Not applied because the library has no epilogue for a batch of products.
// CHECK-LABEL: func.func @batch
// CHECK-NOT:     exec.epilogue_product
// CHECK:         return
func.func @batch(%x: tensor<2x4x8xf32>, %w: tensor<2x8x16xf32>) -> tensor<2x4x16xf32> {
  %z = train.dot_general %x, %w {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x4x8xf32>, tensor<2x8x16xf32>) -> tensor<2x4x16xf32>
  %y = train.gelu tanh, %z : tensor<2x4x16xf32>
  return %y : tensor<2x4x16xf32>
}

// Nor is a conversion to integers a way to read the product: GELU is not of it then.
// CHECK-LABEL: func.func @integers
// CHECK-NOT:     exec.epilogue_product
// CHECK:         return
func.func @integers(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %whole = train.convert %z : (tensor<4x16xf32>) -> tensor<4x16xi32>
  %back = train.convert %whole : (tensor<4x16xi32>) -> tensor<4x16xf32>
  %y = train.gelu tanh, %back : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
