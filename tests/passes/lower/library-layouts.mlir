// What library calls read and write in place, and what is copied for them.
// RUN: tessera-opt %s -to-exec -split-input-file | FileCheck %s
// RUN: tessera-opt %s -to-exec -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// A product reads and writes matrices that have stride 1 in one dimension: columns of a wider matrix, its transpose.
// CHECK-LABEL: exec.program @matrices
// CHECK-NOT: exec.copy
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %{{.*}} : memref<4x3xf32, strided<[6, 1]>>, memref<3x4xf32, strided<[1, 6]>> -> memref<4x4xf32>
func.func @matrices(%x: tensor<4x6xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %l = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 4, 3>, strides = array<i64: 1, 1>} : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %r = train.slice %x {starts = array<i64: 0, 3>, limits = array<i64: 4, 6>, strides = array<i64: 1, 1>} : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %t = train.transpose %r {permutation = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %y = train.dot_general %l, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// Not applied: every second column has stride 1 nowhere.
// CHECK-LABEL: exec.program @no_unit_stride
// CHECK: exec.copy %{{.*}} -> %{{.*}} : memref<4x3xf32, strided<[6, 2]>> -> memref<4x3xf32>
// CHECK: exec.gemm
// REMARK: is copied: operand is a strided view that its reader cannot use
func.func @no_unit_stride(%x: tensor<4x6xf32> {train.role = "input", train.name = "x"}, %w: tensor<3x5xf32> {train.role = "param", train.name = "w"}) -> (tensor<4x5xf32> {train.role = "output"}) {
  %s = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 4, 6>, strides = array<i64: 1, 2>} : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %y = train.dot_general %s, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

// Rows of two dimensions are one dimension of the matrix if they lie as in one.
// CHECK-LABEL: exec.program @merged_rows
// CHECK-NOT: exec.copy
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %{{.*}} : memref<8x3xf32, strided<[6, 1]>>, memref<3x5xf32> -> memref<8x5xf32>
func.func @merged_rows(%x: tensor<2x4x6xf32> {train.role = "input", train.name = "x"}, %w: tensor<3x5xf32> {train.role = "param", train.name = "w"}) -> (tensor<2x4x5xf32> {train.role = "output"}) {
  %s = train.slice %x {starts = array<i64: 0, 0, 3>, limits = array<i64: 2, 4, 6>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x3xf32>
  %y = train.dot_general %s, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<2x4x3xf32>, tensor<3x5xf32>) -> tensor<2x4x5xf32>
  return %y : tensor<2x4x5xf32>
}

// -----

// Not applied: of four rows of each matrix three are read, so that those of both are no rows of one.
// CHECK-LABEL: exec.program @apart
// CHECK: exec.copy %{{.*}} -> %{{.*}} : memref<2x3x6xf32, strided<[24, 6, 1]>> -> memref<2x3x6xf32>
// CHECK: exec.gemm
func.func @apart(%x: tensor<2x4x6xf32> {train.role = "input", train.name = "x"}, %w: tensor<6x5xf32> {train.role = "param", train.name = "w"}) -> (tensor<2x3x5xf32> {train.role = "output"}) {
  %s = train.slice %x {starts = array<i64: 0, 1, 0>, limits = array<i64: 2, 4, 6>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x3x6xf32>
  %y = train.dot_general %s, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<2x3x6xf32>, tensor<6x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// -----

// Heads that attention reads are strided views of one product, and what it writes is the next product's rows.
// CHECK-LABEL: exec.program @heads
// CHECK-DAG: %[[HEADS:.+]] = exec.buffer %[[P:.+]] + 0 : memref<256xi8> to memref<1x2x4x8xf32, strided<[16, 8, 16, 1]>>
// CHECK: exec.attention %[[HEADS]], %[[HEADS]], %[[HEADS]] -> %[[OUT:[^ ,]+]], %{{.*}} memref<1x2x4x8xf32, strided<[16, 8, 16, 1]>>
// CHECK: exec.gemm
// CHECK-NOT: exec.copy
func.func @heads(%x: tensor<4x16xf32> {train.role = "input", train.name = "x"}, %w: tensor<16x16xf32> {train.role = "param", train.name = "w"}) -> (tensor<4x16xf32> {train.role = "output"}) {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %r = train.reshape %p : (tensor<4x16xf32>) -> tensor<1x4x2x8xf32>
  %h = train.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x4x2x8xf32>) -> tensor<1x2x4x8xf32>
  %o, %lse = train.attention %h, %h, %h {causal, scale = 0.5 : f64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  %t = train.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x2x4x8xf32>) -> tensor<1x4x2x8xf32>
  %m = train.reshape %t : (tensor<1x4x2x8xf32>) -> tensor<4x16xf32>
  %y = train.dot_general %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

// Not applied because a kernel reads its operands row by row: it gets a copy of a transposed value.
// CHECK-LABEL: exec.program @kernel_reads_transposed
// CHECK: exec.copy %[[FROM:.+]] -> %[[TO:.+]] : memref<4x2xf32, strided<[1, 4]>> -> memref<4x2xf32>
// CHECK: exec.launch @k0(%[[TO]])
// REMARK: is copied: operand is a strided view that its reader cannot use
func.func @kernel_reads_transposed(%x: tensor<2x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x2xf32> {train.role = "output"}) {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %z = exec.fusion "elementwise" @k0(%t) {extent = 8 : i64, grain = 8 : i64, inplace = array<i64: -1>} : (tensor<4x2xf32>) -> tensor<4x2xf32> {
  ^bb0(%a: tensor<4x2xf32>):
    exec.yield %a : tensor<4x2xf32>
  }
  return %z : tensor<4x2xf32>
}
