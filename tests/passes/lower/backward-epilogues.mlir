// RUN: tessera-opt %s --fuse-epilogues -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --fuse-epilogues -o %t.mlir
// RUN: tessera-interp %t.mlir --compare=%s --function=split --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=sink --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=late --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=other_readers --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=one_of_two --rtol=1e-6 --atol=1e-6 --quiet

// The gradient of GELU that a product is multiplied by, and sums of the product or of its factors.

// The bias gradient in the two steps that decompose makes of a long sum.
// CHECK-LABEL: func.func @split
// CHECK:         %[[DW:.*]], %[[DB:.*]] = exec.epilogue_product bias_grad_a %arg1, %arg0
// CHECK-SAME:      (tensor<2x4x6xbf16>, tensor<2x4x8xbf16>) -> (tensor<6x8xf32>, tensor<6xf32>)
// CHECK:         return %[[DW]], %[[DB]]
func.func @split(%x: tensor<2x4x8xbf16>, %dy: tensor<2x4x6xbf16>) -> (tensor<6x8xf32>, tensor<6xf32>) {
  %wide = train.convert %dy : (tensor<2x4x6xbf16>) -> tensor<2x4x6xf32>
  %chunks = train.reshape %wide : (tensor<2x4x6xf32>) -> tensor<4x2x6xf32>
  %partial = train.reduce sum, %chunks {dimensions = array<i64: 1>} : (tensor<4x2x6xf32>) -> tensor<4x6xf32>
  %db = train.reduce sum, %partial {dimensions = array<i64: 0>} : (tensor<4x6xf32>) -> tensor<6xf32>
  %dw = train.dot_general %dy, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_contract = array<i64: 0, 1>} : (tensor<2x4x6xbf16>, tensor<2x4x8xbf16>) -> tensor<6x8xf32>
  return %dw, %db : tensor<6x8xf32>, tensor<6xf32>
}

// What adds the sum to another one before the product follows the product.
// CHECK-LABEL: func.func @sink
// CHECK:         %[[DW:.*]], %[[DB:.*]] = exec.epilogue_product bias_grad_b
// CHECK:         %[[ADDED:.*]] = train.add %arg2, %[[DB]]
// CHECK:         return %[[DW]], %[[ADDED]]
func.func @sink(%x: tensor<6x8xf32>, %dy: tensor<6x4xf32>, %acc: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %db = train.reduce sum, %dy {dimensions = array<i64: 0>} : (tensor<6x4xf32>) -> tensor<4xf32>
  %added = train.add %acc, %db : tensor<4xf32>
  %dw = train.dot_general %x, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %dw, %added : tensor<8x4xf32>, tensor<4xf32>
}

// A product sums one factor: the left one, if both are summed.
// CHECK-LABEL: func.func @one_of_two
// CHECK:         %[[DB:.*]] = train.reduce sum, %arg1
// CHECK:         %[[DW:.*]], %[[DA:.*]] = exec.epilogue_product bias_grad_a %arg0, %arg1
// CHECK:         return %[[DW]], %[[DA]], %[[DB]]
func.func @one_of_two(%x: tensor<6x8xf32>, %dy: tensor<6x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>, tensor<4xf32>) {
  %da = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<6x8xf32>) -> tensor<8xf32>
  %db = train.reduce sum, %dy {dimensions = array<i64: 0>} : (tensor<6x4xf32>) -> tensor<4xf32>
  %dw = train.dot_general %x, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %dw, %da, %db : tensor<8x4xf32>, tensor<8xf32>, tensor<4xf32>
}

// Not applied because the sum is over fewer dimensions than the product contracts, or no sum.
// CHECK-LABEL: func.func @other_sums
// CHECK-NOT:     exec.epilogue_product
// CHECK:         return
func.func @other_sums(%x: tensor<2x3x8xf32>, %dy: tensor<2x3x4xf32>) -> (tensor<8x4xf32>, tensor<3x4xf32>, tensor<8xf32>) {
  %db = train.reduce sum, %dy {dimensions = array<i64: 0>} : (tensor<2x3x4xf32>) -> tensor<3x4xf32>
  %most = train.reduce max, %x {dimensions = array<i64: 0, 1>} : (tensor<2x3x8xf32>) -> tensor<8xf32>
  %dw = train.dot_general %x, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_contract = array<i64: 0, 1>} : (tensor<2x3x8xf32>, tensor<2x3x4xf32>) -> tensor<8x4xf32>
  return %dw, %db, %most : tensor<8x4xf32>, tensor<3x4xf32>, tensor<8xf32>
}

// Bias gradients that the product of the weight would round, or that are needed before it.
// CHECK-LABEL: func.func @bias_grads
// CHECK-NOT:     exec.epilogue_product
func.func @bias_grads(%x: tensor<6x8xbf16>, %dy: tensor<6x8xbf16>, %x1: tensor<6x8xf32>) -> (tensor<8x8xbf16>, tensor<8xf32>, tensor<8x8xf32>) {
  %wide = train.convert %dy : (tensor<6x8xbf16>) -> tensor<6x8xf32>
  // expected-remark @below {{bias gradient not fused into the product that contracts its terms: the sum is 'f32', the product writes 'bf16'}}
  %db = train.reduce sum, %wide {dimensions = array<i64: 0>} : (tensor<6x8xf32>) -> tensor<8xf32>
  %dw = train.dot_general %x, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x8xbf16>, tensor<6x8xbf16>) -> tensor<8x8xbf16>
  // expected-remark @below {{bias gradient not fused into the product: it is needed before the product}}
  %early = train.reduce sum, %x1 {dimensions = array<i64: 0>} : (tensor<6x8xf32>) -> tensor<8xf32>
  %back = train.broadcast %early {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<6x8xf32>
  %dw1 = train.dot_general %x1, %back {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<8x8xf32>
  return %dw, %db, %dw1 : tensor<8x8xbf16>, tensor<8xf32>, tensor<8x8xf32>
}

// Recomputation put the product that writes the pre-activation behind the one whose gradient is fused: that one moves.
// CHECK-LABEL: func.func @late
// CHECK-NOT:     train.dot_general %arg0, %arg1
// CHECK:         %[[Z:.*]] = train.dot_general %arg2, %arg1
// CHECK:         exec.epilogue_product gelu_grad %arg0, %arg1 with %[[Z]]
func.func @late(%dy: tensor<4x8xf32>, %w: tensor<8x16xf32>, %x: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %p = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %dz = train.gelu_grad tanh, %p, %z : tensor<4x16xf32>
  return %dz : tensor<4x16xf32>
}

// GELU's gradient: of something that no product has written; with another reader of the product.
// CHECK-LABEL: func.func @gradients
// CHECK-NOT:     exec.epilogue_product gelu
func.func @gradients(%dy: tensor<4x8xf32>, %w: tensor<8x16xf32>, %z: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %p = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  // expected-remark @below {{GELU's gradient not fused into the product: no product writes the pre-activation}}
  %dz = train.gelu_grad tanh, %p, %z : tensor<4x16xf32>
  return %dz : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @other_readers
// CHECK:         exec.epilogue_product gelu_aux
// CHECK-NOT:     exec.epilogue_product gelu_grad
func.func @other_readers(%dy: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
  %z = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %y = train.gelu tanh, %z : tensor<4x16xf32>
  %p = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  // expected-remark @below {{GELU's gradient not fused into the product: the product has other readers}}
  %dz = train.gelu_grad tanh, %p, %z : tensor<4x16xf32>
  return %y, %dz, %p : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}

// Rows of 12 elements of a pre-activation are not aligned.
// CHECK-LABEL: func.func @unaligned
// CHECK-NOT:     exec.epilogue_product
// CHECK:         return
func.func @unaligned(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>, %w: tensor<8x12xf32>) -> tensor<4x12xf32> {
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>
  %p = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>
  // expected-remark @below {{GELU's gradient not fused into the product: the pre-activation is 'tensor<4x12xf32>', the product 'tensor<4x12xf32>' of 12 columns}}
  %dz = train.gelu_grad tanh, %p, %z : tensor<4x12xf32>
  return %dz : tensor<4x12xf32>
}

// Not applied because it is the gradient of the exact GELU, which the forward pass reports, and because the product
// adds to a sum.
// CHECK-LABEL: func.func @exact
// CHECK-NOT:     exec.epilogue_product
// CHECK:         return
func.func @exact(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>, %w: tensor<8x16xf32>, %acc: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %p = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %dz = train.gelu_grad exact, %p, %z : tensor<4x16xf32>
  %q = exec.add_product %acc, %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x16xf32>, tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %dq = train.gelu_grad tanh, %q, %z : tensor<4x16xf32>
  return %dz, %dq : tensor<4x16xf32>, tensor<4x16xf32>
}
