// Rows and columns of blocks are reduced by one kernel (gpu-blocks.mlir has more), which stores a value in both orientations,
// one in the place of an operand. On a CPU, which has no such kernels, it is refused.
// RUN: kernel-check --gpu %s --atol=1e-5 | FileCheck %s
// RUN: kernel-check --ptx=sm_90 %s | FileCheck %s --check-prefix=PTX
// RUN: not kernel-check %s 2>&1 | FileCheck %s --check-prefix=CPU

// PTX-LABEL: .entry blocks(
// CPU: error: cannot generate a kernel: reductions over different dimensions
// CHECK: blocks: ok, blocks{{.*}} in place 1
func.func @blocks(%x: tensor<128x256xbf16>, %y: tensor<128x256xbf16>)
    -> (tensor<128x256xbf16>, tensor<128x8xf32>, tensor<4x256xf32>, tensor<256x128xbf16>) {
  %xw = train.convert %x : (tensor<128x256xbf16>) -> tensor<128x256xf32>
  %yw = train.convert %y : (tensor<128x256xbf16>) -> tensor<128x256xf32>
  %s = train.abs %xw : tensor<128x256xf32>
  %p = train.mul %s, %yw : tensor<128x256xf32>
  %n = train.convert %p : (tensor<128x256xf32>) -> tensor<128x256xbf16>
  %w = train.convert %n : (tensor<128x256xbf16>) -> tensor<128x256xf32>
  %r0 = train.reshape %w : (tensor<128x256xf32>) -> tensor<128x8x32xf32>
  %r = train.reduce sum, %r0 {dimensions = array<i64: 2>} : (tensor<128x8x32xf32>) -> tensor<128x8xf32>
  %c0 = train.reshape %w : (tensor<128x256xf32>) -> tensor<4x32x256xf32>
  %c = train.reduce min, %c0 {dimensions = array<i64: 1>} : (tensor<4x32x256xf32>) -> tensor<4x256xf32>
  %t = train.transpose %n {permutation = array<i64: 1, 0>} : (tensor<128x256xbf16>) -> tensor<256x128xbf16>
  return %n, %r, %c, %t : tensor<128x256xbf16>, tensor<128x8xf32>, tensor<4x256xf32>, tensor<256x128xbf16>
}
