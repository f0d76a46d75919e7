// RUN: tessera-opt %s --decompose | FileCheck %s
// RUN: tessera-opt %s --decompose -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --rtol=2e-3 --atol=1e-3 --quiet
// RUN: tessera-opt %s --decompose --fuse --outline-kernels --to-exec | FileCheck %s --check-prefix=EXEC
// f16 is rounded to 11 bits: once by the op, once more where it is computed in f32.

// Rows or columns with the summed dimension between them are transposed; the summed ones come first.
// CHECK-LABEL: func.func @experts
// CHECK:         %[[W:.*]] = train.transpose %arg1 {permutation = array<i64: 1, 0, 2>} : (tensor<3x4x5xf32>) -> tensor<4x3x5xf32>
// CHECK:         train.dot_general %arg0, %[[W]] {lhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<2x6x4xf32>, tensor<4x3x5xf32>) -> tensor<2x6x3x5xf32>
// EXEC-LABEL: exec.program @experts
// EXEC:         exec.copy
// EXEC-NEXT:    exec.gemm
func.func @experts(%x: tensor<2x6x4xf32>, %w: tensor<3x4x5xf32>) -> tensor<2x6x3x5xf32> {
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x6x4xf32>, tensor<3x4x5xf32>) -> tensor<2x6x3x5xf32>
  return %0 : tensor<2x6x3x5xf32>
}

// A batch that is innermost on both sides, of an op of the backward pass.
// CHECK-LABEL: func.func @inner_batch
// CHECK:         %[[X:.*]] = train.transpose %arg0 {permutation = array<i64: 2, 1, 0>, train.backward}
// CHECK:         %[[Y:.*]] = train.transpose %arg1 {permutation = array<i64: 2, 0, 1>, train.backward}
// CHECK:         train.dot_general %[[X]], %[[Y]] {lhs_batch = array<i64: 0>, lhs_contract = array<i64: 1>, rhs_batch = array<i64: 0>, rhs_contract = array<i64: 1>, train.backward}
// EXEC-LABEL: exec.program @inner_batch
// EXEC:         exec.gemm
func.func @inner_batch(%x: tensor<3x4x5xf32>, %y: tensor<4x6x5xf32>) -> tensor<5x3x6xf32> {
  %0 = train.dot_general %x, %y {lhs_batch = array<i64: 2>, rhs_batch = array<i64: 2>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, train.backward} : (tensor<3x4x5xf32>, tensor<4x6x5xf32>) -> tensor<5x3x6xf32>
  return %0 : tensor<5x3x6xf32>
}

// Not applied: rows and columns are where a library reads them.
// CHECK-LABEL: func.func @plain
// CHECK-NEXT:    %0 = train.dot_general
// CHECK-NEXT:    return
func.func @plain(%x: tensor<2x6x4xf32>, %w: tensor<5x4xf32>) -> tensor<2x6x5xf32> {
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x6x4xf32>, tensor<5x4xf32>) -> tensor<2x6x5xf32>
  return %0 : tensor<2x6x5xf32>
}

// No library multiplies these: one kernel adds up the products.
// CHECK-LABEL: func.func @sums
// CHECK-NOT:     train.dot_general
// CHECK:         train.reduce sum, %{{.*}} {dimensions = array<i64: 3>} : (tensor<2x3x5x4xf64>) -> tensor<2x3x5xf64>
// CHECK:         train.reduce sum, %{{.*}} {dimensions = array<i64: 2, 3>} : (tensor<2x3x5x4xi64>) -> tensor<2x3xi64>
// EXEC-LABEL: exec.program @sums
// EXEC-NOT:     exec.gemm
// EXEC:         exec.launch
func.func @sums(%x: tensor<2x3x4xf64>, %y: tensor<5x4x2xf64>, %i: tensor<4x2x5xi64>, %j: tensor<3x5x4xi64>) -> (tensor<2x3x5xf64>, tensor<2x3xi64>) {
  %0 = train.dot_general %x, %y {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 2>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x3x4xf64>, tensor<5x4x2xf64>) -> tensor<2x3x5xf64>
  %1 = train.dot_general %i, %j {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2, 0>, rhs_contract = array<i64: 1, 2>} : (tensor<4x2x5xi64>, tensor<3x5x4xi64>) -> tensor<2x3xi64>
  return %0, %1 : tensor<2x3x5xf64>, tensor<2x3xi64>
}

// A sum of no products.
// CHECK-LABEL: func.func @nothing
// CHECK:         train.constant dense<0.000000e+00> : tensor<2x3xf32>
func.func @nothing(%a: tensor<2x4xf32>, %b: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %x = train.slice %a {limits = array<i64: 2, 1>, starts = array<i64: 0, 1>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<2x0xf32>
  %y = train.slice %b {limits = array<i64: 1, 3>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<4x3xf32>) -> tensor<0x3xf32>
  %0 = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x0xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// f16, and bf16 where it is convolved, is computed in f32.
// CHECK-LABEL: func.func @narrow
// CHECK:         train.dot_general {{.*}} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    train.convert {{.*}} : (tensor<2x3xf32>) -> tensor<2x3xf16>
// CHECK:         train.conv2d {{.*}} : (tensor<1x2x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x4x4xf32>
// CHECK-NEXT:    train.convert {{.*}} : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xbf16>
// CHECK:         train.dot_general {{.*}} : (tensor<2x4xbf16>, tensor<4x3xbf16>) -> tensor<2x3xbf16>
func.func @narrow(%x: tensor<2x4xf16>, %y: tensor<4x3xf16>, %i: tensor<1x2x4x4xbf16>, %f: tensor<3x2x3x3xbf16>, %a: tensor<2x4xbf16>, %b: tensor<4x3xbf16>) -> (tensor<2x3xf16>, tensor<1x3x4x4xbf16>, tensor<2x3xbf16>) {
  %0 = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf16>, tensor<4x3xf16>) -> tensor<2x3xf16>
  %1 = train.conv2d %i, %f {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xbf16>, tensor<3x2x3x3xbf16>) -> tensor<1x3x4x4xbf16>
  %2 = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xbf16>, tensor<4x3xbf16>) -> tensor<2x3xbf16>
  return %0, %1, %2 : tensor<2x3xf16>, tensor<1x3x4x4xbf16>, tensor<2x3xbf16>
}
