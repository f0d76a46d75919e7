// RUN: tessera-opt %s --fuse-epilogues -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --fuse-epilogues=kinds=bias | FileCheck %s --check-prefix=BIAS
// RUN: tessera-opt %s --fuse-epilogues=kinds=none | FileCheck %s --check-prefix=NONE
// RUN: not tessera-opt %s --fuse-epilogues=kinds=relu 2>&1 | FileCheck %s --check-prefix=INVALID
// RUN: tessera-opt %s --fuse-epilogues -o %t.mlir
// RUN: tessera-interp %t.mlir --compare=%s --function=layer --rtol=1e-6 --atol=1e-6 --quiet
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
