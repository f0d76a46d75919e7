// RUN: tessera-opt %s --fuse-epilogues -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --fuse-epilogues=kinds=bias | FileCheck %s --check-prefix=BIAS
// RUN: tessera-opt %s --fuse-epilogues=kinds=none | FileCheck %s --check-prefix=NONE
// RUN: not tessera-opt %s --fuse-epilogues=kinds=relu 2>&1 | FileCheck %s --check-prefix=INVALID
// RUN: tessera-opt %s --fuse-epilogues -o %t.mlir
// RUN: tessera-interp %t.mlir --compare=%s --function=layer --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=adds --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=late --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=other_readers --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=split --rtol=1e-6 --atol=1e-6 --quiet
// A sum in bf16 is rounded once instead of twice.
// RUN: tessera-interp %t.mlir --compare=%s --function=narrow --rtol=8e-3 --atol=2e-2 --quiet
// RUN: tessera-opt %s --fuse-epilogues --fuse --outline-kernels --to-exec | FileCheck %s --check-prefix=EXEC
// INVALID: fuse-epilogues: kinds is 'relu', not none, bias or all
// NONE-NOT: exec.epilogue_product

// A layer, its GELU, and their gradients, in f32. The bias of the second layer is added by whoever reads it.
// CHECK-LABEL: func.func @layer
// CHECK:         %[[Y:.*]], %[[Z:.*]] = exec.epilogue_product gelu_aux_bias %arg0, %arg1 with %arg2
// CHECK:         %[[D:.*]], %[[DB:.*]] = exec.epilogue_product gelu_grad_bias_grad %arg3, %arg4 with %[[Z]]
// CHECK-SAME:      (tensor<2x3x5xf32>, tensor<5x16xf32>, tensor<2x3x16xf32>) -> (tensor<2x3x16xf32>, tensor<16xf32>)
// CHECK:         %[[DW:.*]], %[[DB2:.*]] = exec.epilogue_product bias_grad_a %arg3, %[[Y]] {{.*}}train.backward
// CHECK-SAME:      -> (tensor<5x16xf32>, tensor<5xf32>)
// CHECK:         return %[[Y]], %[[D]], %[[DB]], %[[DW]], %[[DB2]]
// BIAS-LABEL: func.func @layer
// BIAS:         train.dot_general
// BIAS:         train.gelu tanh
// BIAS:         train.dot_general
// BIAS:         exec.epilogue_product bias_grad_a
// EXEC-LABEL: exec.program @layer
// EXEC:         exec.gemm %{{.*}}, %{{.*}} -> %[[Y:.*]] with(%{{.*}} : memref<16xf32>) giving(%[[Z:.*]] : memref<6x16xf32>) {epilogue = #exec<epilogue gelu_aux_bias>
// EXEC:         exec.gemm {{.*}} with(%{{.*}} : memref<6x16xf32>) giving(%{{.*}} : memref<16xf32>) {epilogue = #exec<epilogue gelu_grad_bias_grad>
// EXEC:         exec.gemm {{.*}} giving(%{{.*}} : memref<5xf32>) {epilogue = #exec<epilogue bias_grad_a>
// EXEC-NOT:     exec.launch
func.func @layer(%x: tensor<2x3x8xf32>, %w: tensor<16x8xf32>, %b: tensor<16xf32>, %dy: tensor<2x3x5xf32>,
                 %w2: tensor<5x16xf32>) -> (tensor<2x3x16xf32>, tensor<2x3x16xf32>, tensor<16xf32>, tensor<5x16xf32>, tensor<5xf32>) {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  %bb = train.broadcast %b {broadcast_dimensions = array<i64: 2>} : (tensor<16xf32>) -> tensor<2x3x16xf32>
  %z = train.add %p, %bb : tensor<2x3x16xf32>
  %y = train.gelu tanh, %z : tensor<2x3x16xf32>
  %dh = train.dot_general %dy, %w2 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>, train.backward} : (tensor<2x3x5xf32>, tensor<5x16xf32>) -> tensor<2x3x16xf32>
  %dw2 = train.dot_general %dy, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_contract = array<i64: 0, 1>, train.backward} : (tensor<2x3x5xf32>, tensor<2x3x16xf32>) -> tensor<5x16xf32>
  %db2 = train.reduce sum, %dy {dimensions = array<i64: 0, 1>} : (tensor<2x3x5xf32>) -> tensor<5xf32>
  %dz = train.gelu_grad tanh, %dh, %z : tensor<2x3x16xf32>
  %db = train.reduce sum, %dz {dimensions = array<i64: 0, 1>} : (tensor<2x3x16xf32>) -> tensor<16xf32>
  return %y, %dz, %db, %dw2, %db2 : tensor<2x3x16xf32>, tensor<2x3x16xf32>, tensor<16xf32>, tensor<5x16xf32>, tensor<5xf32>
}

// In bf16: the bias is a part of a unit that stands behind the product, the library reads the sum through views. The
// gradient of the bias is f32, as that of the weight is.
// CHECK-LABEL: func.func @narrow
// CHECK:         %[[B:.*]] = train.slice %arg2
// CHECK:         %[[Y:.*]] = exec.epilogue_product bias %arg0, %arg1 with %[[B]]
// CHECK:         %[[DW:.*]], %[[DB:.*]] = exec.epilogue_product bias_grad_b %arg0, %arg3 plus %arg4
// CHECK-SAME:      (tensor<6x8xbf16>, tensor<6x12xbf16>, tensor<8x12xf32>) -> (tensor<8x12xf32>, tensor<12xf32>)
// BIAS-LABEL: func.func @narrow
// BIAS:         exec.epilogue_product bias %
// EXEC-LABEL: exec.program @narrow
// EXEC:         exec.gemm {{.*}} with(%{{.*}} : memref<12xbf16>) {epilogue = #exec<epilogue bias>
// EXEC:         exec.gemm {{.*}} giving(%{{.*}} : memref<12xf32>) {beta = 1.000000e+00 : f32, epilogue = #exec<epilogue bias_grad_b>
func.func @narrow(%x: tensor<6x8xbf16>, %w: tensor<8x12xbf16>, %unit: tensor<40xbf16>, %dy: tensor<6x12xbf16>,
                  %acc: tensor<8x12xf32>) -> (tensor<6x6xbf16>, tensor<8x12xf32>, tensor<12xf32>) {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x8xbf16>, tensor<8x12xbf16>) -> tensor<6x12xbf16>
  %b = train.slice %unit {limits = array<i64: 20>, starts = array<i64: 8>, strides = array<i64: 1>} : (tensor<40xbf16>) -> tensor<12xbf16>
  %bb = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<12xbf16>) -> tensor<6x12xbf16>
  %p1 = train.convert %p : (tensor<6x12xbf16>) -> tensor<6x12xf32>
  %b1 = train.convert %bb : (tensor<6x12xbf16>) -> tensor<6x12xf32>
  %s = train.add %p1, %b1 : tensor<6x12xf32>
  %y = train.convert %s : (tensor<6x12xf32>) -> tensor<6x12xbf16>
  %part = train.slice %y {limits = array<i64: 6, 6>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<6x12xbf16>) -> tensor<6x6xbf16>
  %dy1 = train.convert %dy : (tensor<6x12xbf16>) -> tensor<6x12xf32>
  %db = train.reduce sum, %dy1 {dimensions = array<i64: 0>} : (tensor<6x12xf32>) -> tensor<12xf32>
  %dw = exec.add_product %acc, %x, %dy {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<8x12xf32>, tensor<6x8xbf16>, tensor<6x12xbf16>) -> tensor<8x12xf32>
  return %part, %dw, %db : tensor<6x6xbf16>, tensor<8x12xf32>, tensor<12xf32>
}

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

// A kernel adds a bias for nothing; GELU without a bias whose pre-activation nobody else reads needs no second result.
// CHECK-LABEL: func.func @adds
// CHECK:         train.dot_general
// CHECK:         train.add
// CHECK:         train.sin
// CHECK:         exec.epilogue_product gelu %arg0, %arg1
// CHECK-NOT:     train.gelu
func.func @adds(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %bb = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<4x16xf32>
  %s = train.add %p, %bb : tensor<4x16xf32>
  %y = train.sin %s : tensor<4x16xf32>
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %g = train.gelu tanh, %z : tensor<4x16xf32>
  return %y, %g : tensor<4x16xf32>, tensor<4x16xf32>
}

// CHECK-LABEL: func.func @erf
// CHECK-NOT:     exec.epilogue_product
func.func @erf(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  // expected-remark @below {{GELU not fused into the product: it is the exact one, the library has the tanh approximation}}
  %g = train.gelu exact, %z : tensor<4x16xf32>
  return %g : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @odd_columns
// CHECK-NOT:     exec.epilogue_product
func.func @odd_columns(%x: tensor<4x8xf32>, %w: tensor<8x12xf32>) -> tensor<4x12xf32> {
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>
  // expected-remark @below {{GELU not fused into the product: its 12 columns are no multiple of 8}}
  %g = train.gelu tanh, %z : tensor<4x12xf32>
  return %g : tensor<4x12xf32>
}

// A bias per row, one of a wider type, one that is computed later, and a product with other readers.
// CHECK-LABEL: func.func @biases
// CHECK-NOT:     exec.epilogue_product
func.func @biases(%x: tensor<8x8xf32>, %b: tensor<8xf32>, %nx: tensor<8x8xbf16>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xbf16>) {
  %p = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %row = train.broadcast %b {broadcast_dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x8xf32>
  // expected-remark @below {{bias not fused into the product: it does not go along the product's columns}}
  %s = train.add %p, %row : tensor<8x8xf32>
  %column = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<8x8xf32>
  %p2 = train.dot_general %s, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  // expected-remark @below {{bias not fused into the product: the product has other readers}}
  %s2 = train.add %p2, %column : tensor<8x8xf32>
  %p3 = train.dot_general %s2, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %late = train.sin %b : tensor<8xf32>
  %lates = train.broadcast %late {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<8x8xf32>
  // expected-remark @below {{bias not fused into the product: it is computed later, by 'train.sin'}}
  %s3 = train.add %p3, %lates : tensor<8x8xf32>
  %np = train.dot_general %nx, %nx {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %wide = train.convert %np : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  // expected-remark @below {{bias not fused into the product: it is 'f32', the product 'bf16'}}
  %ns = train.add %wide, %column : tensor<8x8xf32>
  %narrow = train.convert %ns : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  return %s, %p2, %s2, %s3, %narrow : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xbf16>
}

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

// GELU's gradient: of something that no product has written; with another reader of the product.
// CHECK-LABEL: func.func @gradients
// CHECK-NOT:     exec.epilogue_product gelu
func.func @gradients(%dy: tensor<4x8xf32>, %w: tensor<8x16xf32>, %z: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %p = train.dot_general %dy, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  // expected-remark @below {{GELU's gradient not fused into the product: no product writes the pre-activation}}
  %dz = train.gelu_grad tanh, %p, %z : tensor<4x16xf32>
  return %dz : tensor<4x16xf32>
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
