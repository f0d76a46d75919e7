// RUN: tessera-opt %s --scaled-products=architecture=sm_90 | FileCheck %s
// RUN: tessera-opt %s --scaled-products=architecture=sm_100 | FileCheck %s --check-prefix=SM100
// RUN: tessera-opt %s --scaled-products=architecture=sm_80 2>&1 | FileCheck %s --check-prefix=SM80
// RUN: tessera-opt %s --scaled-products=architecture=sm_90 -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: tessera-opt %s --scaled-products=architecture=sm_100 -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK100
// The same values, laid out as they are.
// RUN: tessera-opt %s --scaled-products=architecture=sm_90 -o %t.90.mlir
// RUN: tessera-interp %s --compare %t.90.mlir --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-opt %s --scaled-products=architecture=sm_100 -o %t.100.mlir
// RUN: tessera-interp %s --compare %t.100.mlir --rtol=1e-6 --atol=1e-6 --quiet
// And as instructions of a program.
// RUN: tessera-opt %t.90.mlir --decompose=gpu=true --fuse=gpu=true --outline-kernels --to-exec=keep-step=true --plan-memory --verify-exec=values=true -o %t.exec.mlir
// RUN: tessera-interp %s --compare %t.exec.mlir --rtol=1e-5 --atol=1e-5 --quiet
// RUN: FileCheck %s --check-prefix=EXEC --input-file=%t.exec.mlir
// RUN: tessera-opt %t.100.mlir --decompose=gpu=true --fuse=gpu=true --outline-kernels --to-exec=keep-step=true --plan-memory --verify-exec=values=true -o %t.exec100.mlir
// RUN: tessera-interp %s --compare %t.exec100.mlir --rtol=1e-5 --atol=1e-5 --quiet

// One scale for each operand: the same on all GPUs.
// CHECK-LABEL: func.func @tensor
// CHECK:         %[[Y:.*]] = exec.scaled_product %{{[^ ]+}} by %{{[^ ]+}} tensor, %{{[^ ]+}} by %{{[^ ]+}} tensor
// CHECK-SAME:      {fast_accumulation} : (tensor<32x64xf8E5M2>, tensor<f32>, tensor<48x64xf8E4M3FN>, tensor<f32>) -> tensor<32x48xbf16>
// SM100-LABEL: func.func @tensor
// SM100:         exec.scaled_product %{{[^ ]+}} by %{{[^ ]+}} tensor, %{{[^ ]+}} by %{{[^ ]+}} tensor
// SM80-DAG: remark: product of 8-bit floats is computed in bf16 or f32: sm_80 has no products of 8-bit floats
// SM80-LABEL: func.func @tensor
// SM80:         train.scaled_dot
func.func @tensor(%a: tensor<32x64xf32>, %b: tensor<48x64xf32>) -> tensor<32x48xbf16> {
  %s = train.constant dense<4.0> : tensor<f32>
  %i = train.constant dense<0.25> : tensor<f32>
  %qa = train.quantize %a, %s : (tensor<32x64xf32>, tensor<f32>) -> tensor<32x64xf8E5M2>
  %qb = train.quantize %b, %s : (tensor<48x64xf32>, tensor<f32>) -> tensor<48x64xf8E4M3FN>
  %y = train.scaled_dot %qa, %qb scaled %i, %i {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two} : (tensor<32x64xf8E5M2>, tensor<48x64xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<32x48xbf16>
  return %y : tensor<32x48xbf16>
}

// What is contracted becomes innermost. A GPU without scales of rows multiplies them with the result.
// CHECK-LABEL: func.func @rows
// CHECK-SAME:    (%[[A:.*]]: tensor<64x32xf8E4M3FN>, %[[B:.*]]: tensor<64x48xf8E4M3FN>, %[[SA:.*]]: tensor<1x32xf32>, %[[SB:.*]]: tensor<f32>
// CHECK-DAG:     %[[AT:.*]] = train.transpose %[[A]] {permutation = array<i64: 1, 0>} : (tensor<64x32xf8E4M3FN>) -> tensor<32x64xf8E4M3FN>
// CHECK-DAG:     %[[BT:.*]] = train.transpose %[[B]]
// CHECK:         exec.scaled_product %[[AT]] by %{{[^ ]+}} row, %[[BT]] by %{{[^ ]+}} row {fast_accumulation} :
// CHECK-SAME:      (tensor<32x64xf8E4M3FN>, tensor<32xf32>, tensor<48x64xf8E4M3FN>, tensor<48xf32>) -> tensor<32x48xbf16>
// SM100-LABEL: func.func @rows
// SM100:         %[[ONE:.*]] = train.constant dense<1.000000e+00> : tensor<f32>
// SM100:         %[[P:.*]] = exec.scaled_product %{{[^ ]+}} by %[[ONE]] tensor, %{{[^ ]+}} by %[[ONE]] tensor {{.*}} -> tensor<32x48xf32>
// SM100:         train.mul %[[P]]
// EXEC-LABEL: exec.program @rows
// EXEC:         exec.gemm %{{.*}}, %{{.*}} -> %{{.*}} scaled(%{{.*}} : memref<32xf32>, %{{.*}} : memref<48xf32>) {a_scale_mode = #exec<scale_mode row>, b_scale_mode = #exec<scale_mode row>, fast_accumulation}
func.func @rows(%a: tensor<64x32xf8E4M3FN>, %b: tensor<64x48xf8E4M3FN>, %sa: tensor<1x32xf32>, %sb: tensor<f32>) -> tensor<32x48xbf16> {
  %y = train.scaled_dot %a, %b scaled %sa, %sb {lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<64x32xf8E4M3FN>, tensor<64x48xf8E4M3FN>, tensor<1x32xf32>, tensor<f32>) -> tensor<32x48xbf16>
  return %y : tensor<32x48xbf16>
}

// Vectors of 128 lie rows first; blocks of 128 x 128 in groups of 4 along what is contracted.
// CHECK-LABEL: func.func @blocks
// CHECK-SAME:    %[[SA:[^:]*]]: tensor<32x3xf32>, %[[SB:[^:]*]]: tensor<2x3xf32>
// CHECK-DAG:     %[[PA:.*]] = train.transpose %[[SA]]
// CHECK-DAG:     %[[PB:.*]] = train.pad %[[SB]] {{.*}} -> tensor<2x4xf32>
// CHECK:         exec.scaled_product %{{[^ ]+}} by %[[PA]] block128, %{{[^ ]+}} by %[[PB]] block128x128
// CHECK-SAME:      tensor<3x32xf32>, tensor<256x384xf8E4M3FN>, tensor<2x4xf32>
// REMARK100: remark: product of 8-bit floats is computed in bf16 or f32: cuBLASLt has no such scales on sm_100
// SM100-LABEL: func.func @blocks
// SM100:         train.scaled_dot
func.func @blocks(%a: tensor<32x384xf8E4M3FN>, %b: tensor<256x384xf8E4M3FN>, %sa: tensor<32x3xf32>, %sb: tensor<2x3xf32>) -> tensor<32x256xf32> {
  %y = train.scaled_dot %a, %b scaled %sa, %sb {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<32x384xf8E4M3FN>, tensor<256x384xf8E4M3FN>, tensor<32x3xf32>, tensor<2x3xf32>) -> tensor<32x256xf32>
  return %y : tensor<32x256xf32>
}

// Two vectors; a sum that the product adds to, in its place.
// CHECK-LABEL: func.func @vectors
// CHECK:         exec.scaled_product %{{[^ ]+}} by %{{[^ ]+}} block128, %{{[^ ]+}} by %{{[^ ]+}} block128
// EXEC-LABEL: exec.program @vectors
// EXEC:         exec.gemm {{.*}} {a_scale_mode = #exec<scale_mode block128>, b_scale_mode = #exec<scale_mode block128>}
func.func @vectors(%a: tensor<256x32xf8E4M3FN>, %b: tensor<256x48xf8E4M3FN>, %sa: tensor<2x32xf32>, %sb: tensor<2x48xf32>) -> tensor<32x48xf32> {
  %y = train.scaled_dot %a, %b scaled %sa, %sb {lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<256x32xf8E4M3FN>, tensor<256x48xf8E4M3FN>, tensor<2x32xf32>, tensor<2x48xf32>) -> tensor<32x48xf32>
  return %y : tensor<32x48xf32>
}

// Blocks of 32 lie in tiles of 128 rows and 4 blocks, as bytes.
// SM100-LABEL: func.func @micro
// SM100:         train.pad %{{.*}} -> tensor<256x8xf32>
// SM100:         train.transpose %{{.*}} {permutation = array<i64: 0, 3, 2, 1, 4>}
// SM100:         exec.scaled_product %{{[^ ]+}} by %{{[^ ]+}} block32, %{{[^ ]+}} by %{{[^ ]+}} block32
// SM100-SAME:      tensor<2x2x32x4x4xf8E8M0FNU>, tensor<48x160xf8E4M3FN>, tensor<1x2x32x4x4xf8E8M0FNU>
// REMARK: remark: product of 8-bit floats is computed in bf16 or f32: cuBLASLt has no such scales on sm_90
// CHECK-LABEL: func.func @micro
// CHECK:         train.scaled_dot
func.func @micro(%a: tensor<144x160xf8E4M3FN>, %b: tensor<48x160xf8E4M3FN>, %x: tensor<144x5xf32>, %z: tensor<48x5xf32>) -> tensor<144x48xf32> {
  %ax = train.abs %x : tensor<144x5xf32>
  %az = train.abs %z : tensor<48x5xf32>
  %sa = train.quantize_scale e8m0, %ax {format = f8E4M3FN} : tensor<144x5xf32>
  %sb = train.quantize_scale e8m0, %az {format = f8E4M3FN} : tensor<48x5xf32>
  %y = train.scaled_dot %a, %b scaled %sa, %sb {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two} : (tensor<144x160xf8E4M3FN>, tensor<48x160xf8E4M3FN>, tensor<144x5xf32>, tensor<48x5xf32>) -> tensor<144x48xf32>
  return %y : tensor<144x48xf32>
}

// Not applied: 24 is no multiple of 16, and both operands are e5m2.
// REMARK: remark: product of 8-bit floats is computed in bf16 or f32: size 24 is no multiple of 16
// CHECK-LABEL: func.func @odd
// CHECK:         train.scaled_dot
func.func @odd(%a: tensor<24x64xf8E4M3FN>, %b: tensor<48x64xf8E4M3FN>) -> tensor<24x48xbf16> {
  %s = train.constant dense<0.25> : tensor<f32>
  %y = train.scaled_dot %a, %b scaled %s, %s {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two} : (tensor<24x64xf8E4M3FN>, tensor<48x64xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<24x48xbf16>
  return %y : tensor<24x48xbf16>
}
// REMARK: remark: product of 8-bit floats is computed in bf16 or f32: both operands are f8E5M2
// CHECK-LABEL: func.func @wide
// CHECK:         train.scaled_dot
func.func @wide(%a: tensor<32x64xf8E5M2>, %b: tensor<48x64xf8E5M2>) -> tensor<32x48xbf16> {
  %s = train.constant dense<0.25> : tensor<f32>
  %y = train.scaled_dot %a, %b scaled %s, %s {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two} : (tensor<32x64xf8E5M2>, tensor<48x64xf8E5M2>, tensor<f32>, tensor<f32>) -> tensor<32x48xbf16>
  return %y : tensor<32x48xbf16>
}

// One block along what is contracted is a row, also where it is shorter than any block that the GPU has.
// SM100-LABEL: func.func @short
// SM100:         exec.scaled_product %{{[^ ]+}} by %{{[^ ]+}} tensor, %{{[^ ]+}} by %{{[^ ]+}} tensor
// CHECK-LABEL: func.func @short
// CHECK:         exec.scaled_product %{{[^ ]+}} by %{{[^ ]+}} row, %{{[^ ]+}} by %{{[^ ]+}} row
func.func @short(%a: tensor<32x16xf8E4M3FN>, %b: tensor<48x16xf8E4M3FN>) -> tensor<32x48xf32> {
  %sa = train.constant dense<0.25> : tensor<32x1xf32>
  %sb = train.constant dense<0.5> : tensor<48x1xf32>
  %y = train.scaled_dot %a, %b scaled %sa, %sb {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two} : (tensor<32x16xf8E4M3FN>, tensor<48x16xf8E4M3FN>, tensor<32x1xf32>, tensor<48x1xf32>) -> tensor<32x48xf32>
  return %y : tensor<32x48xf32>
}
