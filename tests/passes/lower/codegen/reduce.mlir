// RUN: kernel-check %s --atol=1e-5 | FileCheck %s
// RUN: kernel-check %s --atol=1e-5 --target-cpu=x86-64-v3 | FileCheck %s
// RUN: kernel-check --gpu %s --atol=1e-5 | FileCheck %s

// CHECK: rows: ok, row, extent 17
func.func @rows(%x: tensor<17x1003xf32>) -> (tensor<17xf32>, tensor<17xf32>, tensor<17xf32>) {
  %s = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<17x1003xf32>) -> tensor<17xf32>
  %m = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<17x1003xf32>) -> tensor<17xf32>
  %n = train.reduce min, %x {dimensions = array<i64: 1>} : (tensor<17x1003xf32>) -> tensor<17xf32>
  return %s, %m, %n : tensor<17xf32>, tensor<17xf32>, tensor<17xf32>
}
// CHECK: columns: ok, column, extent 1003
func.func @columns(%x: tensor<5x17x1003xf32>) -> (tensor<1003xf32>, tensor<1003xf32>, tensor<5x17x1003xf32>) {
  %e = train.exp %x : tensor<5x17x1003xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 0, 1>} : (tensor<5x17x1003xf32>) -> tensor<1003xf32>
  %m = train.reduce max, %x {dimensions = array<i64: 0, 1>} : (tensor<5x17x1003xf32>) -> tensor<1003xf32>
  return %s, %m, %e : tensor<1003xf32>, tensor<1003xf32>, tensor<5x17x1003xf32>
}
// CHECK: all: ok, reduce_all, extent 1
func.func @all(%x: tensor<3x7x11xf32>) -> tensor<f32> {
  %s = train.reduce sum, %x {dimensions = array<i64: 0, 1, 2>} : (tensor<3x7x11xf32>) -> tensor<f32>
  return %s : tensor<f32>
}
// Kept between reduced dimensions, as in the bias gradient of a convolution.
// CHECK: between: ok, row, extent 5
func.func @between(%x: tensor<4x5x6x7xf32>) -> tensor<5xf32> {
  %s = train.reduce sum, %x {dimensions = array<i64: 0, 2, 3>} : (tensor<4x5x6x7xf32>) -> tensor<5xf32>
  return %s : tensor<5xf32>
}
// CHECK: middle: ok, column, extent 4
func.func @middle(%x: tensor<4x600x7xf32>) -> tensor<4x7xf32> {
  %s = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<4x600x7xf32>) -> tensor<4x7xf32>
  return %s : tensor<4x7xf32>
}
// CHECK: softmax: ok, row, extent 12, grain 41, passes 3
func.func @softmax(%x: tensor<3x4x197xf32>) -> tensor<3x4x197xf32> {
  %m = train.reduce max, %x {dimensions = array<i64: 2>} : (tensor<3x4x197xf32>) -> tensor<3x4xf32>
  %mb = train.broadcast %m {broadcast_dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<3x4x197xf32>
  %d = train.sub %x, %mb : tensor<3x4x197xf32>
  %e = train.exp %d : tensor<3x4x197xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 2>} : (tensor<3x4x197xf32>) -> tensor<3x4xf32>
  %sb = train.broadcast %s {broadcast_dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<3x4x197xf32>
  %r = train.div %e, %sb : tensor<3x4x197xf32>
  return %r : tensor<3x4x197xf32>
}
// Along the first dimension it is a column kernel of three passes.
// CHECK: softmax_columns: ok, column, extent 33, grain 16, passes 3
func.func @softmax_columns(%x: tensor<40x33xf32>) -> tensor<40x33xf32> {
  %m = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<40x33xf32>) -> tensor<33xf32>
  %mb = train.broadcast %m {broadcast_dimensions = array<i64: 1>} : (tensor<33xf32>) -> tensor<40x33xf32>
  %d = train.sub %x, %mb : tensor<40x33xf32>
  %e = train.exp %d : tensor<40x33xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 0>} : (tensor<40x33xf32>) -> tensor<33xf32>
  %sb = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<33xf32>) -> tensor<40x33xf32>
  %r = train.div %e, %sb : tensor<40x33xf32>
  return %r : tensor<40x33xf32>
}
// CHECK: argmax: ok, row, extent 9
func.func @argmax(%x: tensor<9x100xf32>) -> (tensor<9xi32>, tensor<9xi64>) {
  %i = train.argmax %x {dim = 1 : i64} : (tensor<9x100xf32>) -> tensor<9xi32>
  %j = train.argmax %x {dim = 1 : i64} : (tensor<9x100xf32>) -> tensor<9xi64>
  return %i, %j : tensor<9xi32>, tensor<9xi64>
}
// CHECK: argmax_columns: ok, column
func.func @argmax_columns(%x: tensor<9x100xf32>) -> tensor<100xi32> {
  %i = train.argmax %x {dim = 0 : i64} : (tensor<9x100xf32>) -> tensor<100xi32>
  return %i : tensor<100xi32>
}
// Sums of bf16 are kept in f32.
// CHECK: bf16_rows: ok
func.func @bf16_rows(%x: tensor<5x1000xbf16>) -> (tensor<5xbf16>, tensor<5xbf16>) {
  %s = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<5x1000xbf16>) -> tensor<5xbf16>
  %m = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<5x1000xbf16>) -> tensor<5xbf16>
  return %s, %m : tensor<5xbf16>, tensor<5xbf16>
}
// CHECK: integer_rows: ok
func.func @integer_rows(%x: tensor<5x100xi32>) -> (tensor<5xi32>, tensor<5xi32>, tensor<5xi32>) {
  %s = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<5x100xi32>) -> tensor<5xi32>
  %m = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<5x100xi32>) -> tensor<5xi32>
  %n = train.reduce min, %x {dimensions = array<i64: 1>} : (tensor<5x100xi32>) -> tensor<5xi32>
  return %s, %m, %n : tensor<5xi32>, tensor<5xi32>, tensor<5xi32>
}
// CHECK: f64_rows: ok
func.func @f64_rows(%x: tensor<3x50xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %s = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<3x50xf64>) -> tensor<3xf64>
  %p = train.reduce mul, %x {dimensions = array<i64: 1>} : (tensor<3x50xf64>) -> tensor<3xf64>
  return %s, %p : tensor<3xf64>, tensor<3xf64>
}
// A row of one element.
// CHECK: unit_rows: ok
func.func @unit_rows(%x: tensor<19x1xf32>) -> tensor<19xf32> {
  %s = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<19x1xf32>) -> tensor<19xf32>
  return %s : tensor<19xf32>
}

// What a step keeps of indices that may lie outside of their table.
// CHECK: index_check: ok, row, extent 4
func.func @index_check(%x: tensor<4x50xi64>) -> tensor<4xi64> {
  %low = train.reduce min, %x {dimensions = array<i64: 1>} : (tensor<4x50xi64>) -> tensor<4xi64>
  %high = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<4x50xi64>) -> tensor<4xi64>
  %zero = train.constant dense<0> : tensor<4xi64>
  %below = train.compare lt, %low, %zero : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
  %worst = train.select %below, %low, %high : tensor<4xi1>, tensor<4xi64>
  return %worst : tensor<4xi64>
}

// A product that no library computes.
// CHECK: product_of_f64: ok, row, extent 15
func.func @product_of_f64(%x: tensor<3x7xf64>, %y: tensor<7x5xf64>) -> tensor<3x5xf64> {
  %a = train.broadcast %x {broadcast_dimensions = array<i64: 0, 2>} : (tensor<3x7xf64>) -> tensor<3x5x7xf64>
  %t = train.transpose %y {permutation = array<i64: 1, 0>} : (tensor<7x5xf64>) -> tensor<5x7xf64>
  %b = train.broadcast %t {broadcast_dimensions = array<i64: 1, 2>} : (tensor<5x7xf64>) -> tensor<3x5x7xf64>
  %p = train.mul %a, %b : tensor<3x5x7xf64>
  %s = train.reduce sum, %p {dimensions = array<i64: 2>} : (tensor<3x5x7xf64>) -> tensor<3x5xf64>
  return %s : tensor<3x5xf64>
}
// Unsigned numbers above 127, which are negative with a sign, and booleans.
// CHECK: unsigned: ok
func.func @unsigned(%x: tensor<9x256xui8>) -> (tensor<9xui8>, tensor<9xui8>) {
  %i = train.iota {dim = 1 : i64} : tensor<9x256xi64>
  %u = train.convert %i : (tensor<9x256xi64>) -> tensor<9x256xui8>
  %z = train.max %u, %x : tensor<9x256xui8>
  %top = train.reduce max, %z {dimensions = array<i64: 1>} : (tensor<9x256xui8>) -> tensor<9xui8>
  %low = train.reduce min, %z {dimensions = array<i64: 1>} : (tensor<9x256xui8>) -> tensor<9xui8>
  return %top, %low : tensor<9xui8>, tensor<9xui8>
}
// CHECK: unsigned_argmax: ok
func.func @unsigned_argmax(%x: tensor<9x256xui8>) -> tensor<9xi64> {
  %i = train.iota {dim = 1 : i64} : tensor<9x256xi64>
  %u = train.convert %i : (tensor<9x256xi64>) -> tensor<9x256xui8>
  %z = train.max %u, %x : tensor<9x256xui8>
  %at = train.argmax %z {dim = 1 : i64} : (tensor<9x256xui8>) -> tensor<9xi64>
  return %at : tensor<9xi64>
}
// Where documents begin: running maxima of integers, within blocks, behind what the blocks before gave.
// CHECK: running: ok
func.func @running(%x: tensor<2x4x64xi64>, %before: tensor<2x4xi64>) -> tensor<2x4x64xi64> {
  %from = train.iota {dim = 0 : i64} : tensor<64x64xi64>
  %to = train.iota {dim = 1 : i64} : tensor<64x64xi64>
  %le = train.compare le, %from, %to : (tensor<64x64xi64>, tensor<64x64xi64>) -> tensor<64x64xi1>
  %takes = train.broadcast %le {broadcast_dimensions = array<i64: 2, 3>} : (tensor<64x64xi1>) -> tensor<2x4x64x64xi1>
  %wide = train.broadcast %x {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xi64>) -> tensor<2x4x64x64xi64>
  %none = train.constant dense<0> : tensor<2x4x64x64xi64>
  %terms = train.select %takes, %wide, %none : tensor<2x4x64x64xi1>, tensor<2x4x64x64xi64>
  %within = train.reduce max, %terms {dimensions = array<i64: 2>} : (tensor<2x4x64x64xi64>) -> tensor<2x4x64xi64>
  %repeated = train.broadcast %before {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x4xi64>) -> tensor<2x4x64xi64>
  %all = train.max %within, %repeated : tensor<2x4x64xi64>
  return %all : tensor<2x4x64xi64>
}
