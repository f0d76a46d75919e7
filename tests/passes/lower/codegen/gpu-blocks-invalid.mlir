// What are no kernels of blocks, each with its reason.
// RUN: rm -rf %t && split-file %s %t
// RUN: not kernel-check --gpu %t/many.mlir 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not kernel-check --gpu %t/values.mlir 2>&1 | FileCheck %s --check-prefix=VALUES
// RUN: not kernel-check --gpu %t/across.mlir 2>&1 | FileCheck %s --check-prefix=ACROSS
// RUN: not kernel-check --gpu %t/twice.mlir 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not kernel-check %t/values.mlir 2>&1 | FileCheck %s --check-prefix=CPU

// CPU: error: cannot generate a kernel: reductions over different dimensions

// Four sums of columns and two transposes.
// MANY: error: cannot generate a kernel: blocks need 49408 bytes of shared memory, of 49152
//--- many.mlir
func.func @many(%x: tensor<256x256xf32>) -> (tensor<256x256xf8E4M3FN>, tensor<256x256xf8E5M2>) {
  %m = train.abs %x : tensor<256x256xf32>
  %kx = train.reshape %x : (tensor<256x256xf32>) -> tensor<2x128x256xf32>
  %r0 = train.reduce max, %kx {dimensions = array<i64: 1>} : (tensor<2x128x256xf32>) -> tensor<2x256xf32>
  %r1 = train.reduce sum, %kx {dimensions = array<i64: 1>} : (tensor<2x128x256xf32>) -> tensor<2x256xf32>
  %km = train.reshape %m : (tensor<256x256xf32>) -> tensor<2x128x256xf32>
  %r2 = train.reduce max, %km {dimensions = array<i64: 1>} : (tensor<2x128x256xf32>) -> tensor<2x256xf32>
  %r3 = train.reduce sum, %km {dimensions = array<i64: 1>} : (tensor<2x128x256xf32>) -> tensor<2x256xf32>
  %a0 = train.add %r0, %r1 : tensor<2x256xf32>
  %a1 = train.add %a0, %r2 : tensor<2x256xf32>
  %a2 = train.add %a1, %r3 : tensor<2x256xf32>
  %b = train.broadcast %a2 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x256xf32>) -> tensor<2x128x256xf32>
  %c = train.reshape %b : (tensor<2x128x256xf32>) -> tensor<256x256xf32>
  %v = train.mul %x, %c : tensor<256x256xf32>
  %q = train.convert %v : (tensor<256x256xf32>) -> tensor<256x256xf8E4M3FN>
  %q2 = train.convert %v : (tensor<256x256xf32>) -> tensor<256x256xf8E5M2>
  %t = train.transpose %q {permutation = array<i64: 1, 0>} : (tensor<256x256xf8E4M3FN>) -> tensor<256x256xf8E4M3FN>
  %t2 = train.transpose %q2 {permutation = array<i64: 1, 0>} : (tensor<256x256xf8E5M2>) -> tensor<256x256xf8E5M2>
  return %t, %t2 : tensor<256x256xf8E4M3FN>, tensor<256x256xf8E5M2>
}

// VALUES: error: cannot generate a kernel: blocks of several values do not fit the registers
//--- values.mlir
func.func @values(%x: tensor<256x256xf32>, %y: tensor<256x256xf32>) -> (tensor<256x2xf32>, tensor<2x256xf32>) {
  %r0 = train.reshape %x : (tensor<256x256xf32>) -> tensor<256x2x128xf32>
  %r = train.reduce max, %r0 {dimensions = array<i64: 2>} : (tensor<256x2x128xf32>) -> tensor<256x2xf32>
  %c0 = train.reshape %y : (tensor<256x256xf32>) -> tensor<2x128x256xf32>
  %c = train.reduce max, %c0 {dimensions = array<i64: 1>} : (tensor<2x128x256xf32>) -> tensor<2x256xf32>
  return %r, %c : tensor<256x2xf32>, tensor<2x256xf32>
}

// ACROSS: error: cannot generate a kernel: an input lies across the blocks
//--- across.mlir
func.func @across(%x: tensor<256x256xf32>) -> (tensor<256x2xf32>, tensor<2x256xf32>) {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %r0 = train.reshape %t : (tensor<256x256xf32>) -> tensor<256x2x128xf32>
  %r = train.reduce max, %r0 {dimensions = array<i64: 2>} : (tensor<256x2x128xf32>) -> tensor<256x2xf32>
  %c0 = train.reshape %t : (tensor<256x256xf32>) -> tensor<2x128x256xf32>
  %c = train.reduce max, %c0 {dimensions = array<i64: 1>} : (tensor<2x128x256xf32>) -> tensor<2x256xf32>
  return %r, %c : tensor<256x2xf32>, tensor<2x256xf32>
}

// TWICE: error: cannot generate a kernel: a reduction of blocks of what is reduced
//--- twice.mlir
func.func @twice(%x: tensor<256x256xf32>) -> (tensor<256x2xf32>, tensor<2x256xf32>) {
  %r0 = train.reshape %x : (tensor<256x256xf32>) -> tensor<256x2x128xf32>
  %r = train.reduce max, %r0 {dimensions = array<i64: 2>} : (tensor<256x2x128xf32>) -> tensor<256x2xf32>
  %b = train.broadcast %r {broadcast_dimensions = array<i64: 0, 1>} : (tensor<256x2xf32>) -> tensor<256x2x128xf32>
  %s = train.mul %r0, %b : tensor<256x2x128xf32>
  %c0 = train.reshape %s : (tensor<256x2x128xf32>) -> tensor<2x128x256xf32>
  %c = train.reduce max, %c0 {dimensions = array<i64: 1>} : (tensor<2x128x256xf32>) -> tensor<2x256xf32>
  return %r, %c : tensor<256x2xf32>, tensor<2x256xf32>
}
