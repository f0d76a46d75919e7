// RUN: kernel-check %s | FileCheck %s
// RUN: kernel-check --gpu %s | FileCheck %s

// CHECK: transposed: ok
func.func @transposed(%x: tensor<3x17x5xf32>, %y: tensor<5x3x17xf32>) -> tensor<5x3x17xf32> {
  %t = train.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<3x17x5xf32>) -> tensor<5x3x17xf32>
  %0 = train.add %t, %y : tensor<5x3x17xf32>
  return %0 : tensor<5x3x17xf32>
}
// Boundaries that do not meet: 6 = 2·3 against 4·… needs a division at run time.
// CHECK: reshaped: ok
func.func @reshaped(%x: tensor<4x15xf32>, %v: tensor<6xf32>) -> tensor<10x6xf32> {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x15xf32>) -> tensor<15x4xf32>
  %r = train.reshape %t : (tensor<15x4xf32>) -> tensor<10x6xf32>
  %b = train.broadcast %v {broadcast_dimensions = array<i64: 1>} : (tensor<6xf32>) -> tensor<10x6xf32>
  %0 = train.mul %r, %b : tensor<10x6xf32>
  return %0 : tensor<10x6xf32>
}
// CHECK: sliced: ok
func.func @sliced(%x: tensor<10x20xf32>) -> tensor<3x7xf32> {
  %s = train.slice %x {starts = array<i64: 1, 2>, limits = array<i64: 10, 16>, strides = array<i64: 3, 2>} : (tensor<10x20xf32>) -> tensor<3x7xf32>
  %0 = train.neg %s : tensor<3x7xf32>
  return %0 : tensor<3x7xf32>
}
// CHECK: padded: ok
func.func @padded(%x: tensor<3x4xf32>, %y: tensor<8x11xf32>) -> tensor<8x11xf32> {
  %p = train.pad %x {low = array<i64: 1, 2>, high = array<i64: 2, 2>, interior = array<i64: 1, 1>, value = 2.5 : f64} : (tensor<3x4xf32>) -> tensor<8x11xf32>
  %0 = train.add %p, %y : tensor<8x11xf32>
  return %0 : tensor<8x11xf32>
}
// Parts of unequal size.
// CHECK: joined: ok
func.func @joined(%x: tensor<4x3xf32>, %y: tensor<4x5xf32>, %z: tensor<4x1xf32>) -> tensor<4x9xf32> {
  %n = train.neg %y : tensor<4x5xf32>
  %c = train.concat %x, %n, %z {dim = 1 : i64} : (tensor<4x3xf32>, tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x9xf32>
  %0 = train.exp %c : tensor<4x9xf32>
  return %0 : tensor<4x9xf32>
}
// CHECK: joined_rows: ok
func.func @joined_rows(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<6x4xf32> {
  %c = train.concat %x, %y {dim = 0 : i64} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
  %0 = train.exp %c : tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}
// CHECK: dynamic: ok
func.func @dynamic(%x: tensor<10x6xf32>, %u: tensor<3x2xf32>, %i: tensor<i32>, %j: tensor<i32>) -> (tensor<10x6xf32>, tensor<60xf32>) {
  %d = train.dynamic_update_slice %x, %u[%i, %j] : (tensor<10x6xf32>, tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<10x6xf32>
  %0 = train.neg %d : tensor<10x6xf32>
  %r = train.reshape %0 : (tensor<10x6xf32>) -> tensor<60xf32>
  %1 = train.abs %r : tensor<60xf32>
  return %0, %1 : tensor<10x6xf32>, tensor<60xf32>
}
// CHECK: dynamic_read: ok
func.func @dynamic_read(%x: tensor<10x6xf32>, %i: tensor<i64>, %j: tensor<i64>) -> tensor<3x2xf32> {
  %d = train.dynamic_slice %x[%i, %j] {sizes = array<i64: 3, 2>} : (tensor<10x6xf32>, tensor<i64>, tensor<i64>) -> tensor<3x2xf32>
  %0 = train.neg %d : tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
// Token and position embedding.
// CHECK: embedding: ok
func.func @embedding(%table: tensor<50x24xf32>, %positions: tensor<7x24xf32>, %tokens: tensor<2x7xi32>) -> tensor<2x7x24xf32> {
  %g = train.gather_rows %table, %tokens : (tensor<50x24xf32>, tensor<2x7xi32>) -> tensor<2x7x24xf32>
  %p = train.broadcast %positions {broadcast_dimensions = array<i64: 1, 2>} : (tensor<7x24xf32>) -> tensor<2x7x24xf32>
  %0 = train.add %g, %p : tensor<2x7x24xf32>
  return %0 : tensor<2x7x24xf32>
}
// CHECK: scatter: ok, scatter, extent 24, grain 16, passes 1, in place 1
func.func @scatter(%table: tensor<50x24xf32>, %tokens: tensor<2x70xi32>, %u: tensor<2x70x24xf32>) -> tensor<50x24xf32> {
  %n = train.neg %u : tensor<2x70x24xf32>
  %0 = train.scatter_add_rows %table, %tokens, %n : (tensor<50x24xf32>, tensor<2x70xi32>, tensor<2x70x24xf32>) -> tensor<50x24xf32>
  return %0 : tensor<50x24xf32>
}
// CHECK: scatter_zero: ok, scatter
func.func @scatter_zero(%tokens: tensor<140xi64>, %u: tensor<140x2x3xf32>) -> tensor<50x2x3xf32> {
  %z = train.constant dense<0.0> : tensor<50x2x3xf32>
  %0 = train.scatter_add_rows %z, %tokens, %u : (tensor<50x2x3xf32>, tensor<140xi64>, tensor<140x2x3xf32>) -> tensor<50x2x3xf32>
  return %0 : tensor<50x2x3xf32>
}
// CHECK: counted: ok
func.func @counted(%o: tensor<i64>, %x: tensor<4x9xi32>) -> (tensor<4x9xi32>, tensor<4x9xi64>, tensor<4x9xf32>) {
  %i = train.iota {dim = 1 : i64} : tensor<4x9xi32>
  %j = train.iota offset(%o : tensor<i64>) {dim = 0 : i64} : tensor<4x9xi64>
  %a = train.add %i, %x : tensor<4x9xi32>
  %n = train.neg %j : tensor<4x9xi64>
  %f = train.convert %a : (tensor<4x9xi32>) -> tensor<4x9xf32>
  return %a, %n, %f : tensor<4x9xi32>, tensor<4x9xi64>, tensor<4x9xf32>
}
// Tables known at compile time; two kernels share one.
// CHECK: table: ok
func.func @table(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %c = train.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %m = train.constant dense<[true, false, true, true]> : tensor<4xi1>
  %b = train.broadcast %c {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<3x4xf32>
  %mb = train.broadcast %m {broadcast_dimensions = array<i64: 1>} : (tensor<4xi1>) -> tensor<3x4xi1>
  %s = train.select %mb, %x, %b : tensor<3x4xi1>, tensor<3x4xf32>
  %0 = train.mul %s, %b : tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
// CHECK: table_again: ok
func.func @table_again(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = train.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = train.mul %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// The same numbers as the interpreter's, bit for bit.
// CHECK: random: ok
func.func @random(%seed: tensor<i64>) -> tensor<5x30xf32> {
  %0 = train.rng_uniform %seed {stream = 3 : i64} : (tensor<i64>) -> tensor<5x30xf32>
  %1 = train.neg %0 : tensor<5x30xf32>
  return %1 : tensor<5x30xf32>
}
// CHECK: random_local: ok
func.func @random_local(%seed: tensor<i64>, %i: tensor<i64>, %j: tensor<i64>) -> tensor<5x30xf32> {
  %0 = train.rng_uniform %seed offsets(%i, %j) {stream = 3 : i64, global_shape = array<i64: 100, 60>} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<5x30xf32>
  return %0 : tensor<5x30xf32>
}
// CHECK: resource: ok
func.func @resource(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %c = train.constant dense_resource<table> : tensor<2x2xf32>
  %0 = train.mul %x, %c : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      table: "0x040000000000803F000000400000404000008040"
    }
  }
#-}
