// What is no row-column kernel, each with its reason.
// RUN: rm -rf %t && split-file %s %t
// RUN: not kernel-check --gpu %t/used.mlir 2>&1 | FileCheck %s --check-prefix=USED
// RUN: not kernel-check --gpu %t/long.mlir 2>&1 | FileCheck %s --check-prefix=LONG
// RUN: not kernel-check --gpu %t/many.mlir 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not kernel-check --gpu %t/other.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not kernel-check --gpu %t/index.mlir 2>&1 | FileCheck %s --check-prefix=INDEX

// USED: error: cannot generate a kernel: a reduction of columns is used in the kernel that reduces rows
//--- used.mlir
func.func @used(%x: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<64xf32>) {
  %r = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<8x64xf32>) -> tensor<8xf32>
  %c = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8x64xf32>) -> tensor<64xf32>
  %n = train.neg %c : tensor<64xf32>
  return %r, %n : tensor<8xf32>, tensor<64xf32>
}
// LONG: error: cannot generate a kernel: the sums of a row's columns, 1 x 8193, do not fit the registers
//--- long.mlir
func.func @long(%x: tensor<8x8193xf32>) -> (tensor<8xf32>, tensor<8193xf32>) {
  %r = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<8x8193xf32>) -> tensor<8xf32>
  %c = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8x8193xf32>) -> tensor<8193xf32>
  return %r, %c : tensor<8xf32>, tensor<8193xf32>
}
// MANY: error: cannot generate a kernel: the sums of a row's columns, 3 x 8192, do not fit the registers
//--- many.mlir
func.func @many(%x: tensor<8x8192xf32>) -> (tensor<8xf32>, tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>) {
  %r = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<8x8192xf32>) -> tensor<8xf32>
  %c = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8x8192xf32>) -> tensor<8192xf32>
  %m = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<8x8192xf32>) -> tensor<8192xf32>
  %n = train.reduce min, %x {dimensions = array<i64: 0>} : (tensor<8x8192xf32>) -> tensor<8192xf32>
  return %r, %c, %m, %n : tensor<8xf32>, tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>
}
// Columns of other rows than those that are reduced.
// OTHER: error: cannot generate a kernel: reductions over different dimensions
//--- other.mlir
func.func @other(%x: tensor<8x64xf32>) -> (tensor<16xf32>, tensor<64xf32>) {
  %h = train.reshape %x : (tensor<8x64xf32>) -> tensor<16x32xf32>
  %r = train.reduce sum, %h {dimensions = array<i64: 1>} : (tensor<16x32xf32>) -> tensor<16xf32>
  %c = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8x64xf32>) -> tensor<64xf32>
  return %r, %c : tensor<16xf32>, tensor<64xf32>
}
// INDEX: error: cannot generate a kernel: reductions over different dimensions
//--- index.mlir
func.func @index(%x: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<64xi64>) {
  %r = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<8x64xf32>) -> tensor<8xf32>
  %i = train.argmax %x {dim = 0 : i64} : (tensor<8x64xf32>) -> tensor<64xi64>
  return %r, %i : tensor<8xf32>, tensor<64xi64>
}
