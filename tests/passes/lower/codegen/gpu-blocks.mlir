// Kernels that reduce the rows and the columns of small blocks, on a GPU: a matrix is read once, and what is made of it is
// stored in both orientations. Values against the interpreter.
// RUN: kernel-check --gpu %s | FileCheck %s
// RUN: kernel-check --gpu --gpu-target=sm_80 %s | FileCheck %s
// RUN: kernel-check --ptx=sm_90 %s | FileCheck %s --check-prefix=PTX
// RUN: kernel-check --ptx=sm_80 %s 2>&1 | FileCheck %s --check-prefix=SPILL
// RUN: kernel-check --ptx=sm_90 %s 2>&1 | FileCheck %s --check-prefix=SPILL
// RUN: kernel-check --ptx=sm_100 %s 2>&1 | FileCheck %s --check-prefix=SPILL
// An element is 2 bytes read and 2 written: the instructions that an H100 has time for.
// RUN: kernel-check --ptx=sm_90 %s | python3 %S/Inputs/count_ptx.py --elements=98304 --gpu=h100 counted=4

// No register is spilled, on any architecture (where ptxas is there to tell).
// SPILL-NOT: spill

// Blocks of 128 x 128, as block128 quantises a gradient for both of its products: 8 rows a thread, 16 bytes a read, and two
// blocks a multiprocessor.
// CHECK: both: ok, blocks
// PTX-LABEL: .entry both(
// PTX: .minnctapersm 2
// PTX-COUNT-8: ld.global.nc.v4.b32
// PTX-NOT: ld.global
// PTX-COUNT-16: st.global.v2.b32
// PTX-NOT: st.global.b8
// PTX: ret;
func.func @both(%x: tensor<256x384xbf16>) -> (tensor<256x3xf32>, tensor<256x384xf8E4M3FN>, tensor<2x384xf32>, tensor<384x256xf8E4M3FN>) {
  %w = train.convert %x : (tensor<256x384xbf16>) -> tensor<256x384xf32>
  %m = train.abs %w : tensor<256x384xf32>
  %r0 = train.reshape %m : (tensor<256x384xf32>) -> tensor<256x3x128xf32>
  %r1 = train.reduce max, %r0 {dimensions = array<i64: 2>} : (tensor<256x3x128xf32>) -> tensor<256x3xf32>
  %r2 = train.quantize_scale down, %r1 {format = f8E4M3FN} : tensor<256x3xf32>
  %r3 = train.broadcast %r2 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<256x3xf32>) -> tensor<256x3x128xf32>
  %r4 = train.reshape %r3 : (tensor<256x3x128xf32>) -> tensor<256x384xf32>
  %vr = train.mul %w, %r4 : tensor<256x384xf32>
  %nr = train.neg %vr : tensor<256x384xf32>
  %lr = train.constant dense<-4.480000e+02> : tensor<256x384xf32>
  %ar = train.max %nr, %lr : tensor<256x384xf32>
  %br = train.neg %ar : tensor<256x384xf32>
  %cr = train.max %br, %lr : tensor<256x384xf32>
  %qr = train.convert %cr : (tensor<256x384xf32>) -> tensor<256x384xf8E4M3FN>
  %k0 = train.reshape %m : (tensor<256x384xf32>) -> tensor<2x128x384xf32>
  %k1 = train.reduce max, %k0 {dimensions = array<i64: 1>} : (tensor<2x128x384xf32>) -> tensor<2x384xf32>
  %k2 = train.quantize_scale down, %k1 {format = f8E4M3FN} : tensor<2x384xf32>
  %k3 = train.broadcast %k2 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x384xf32>) -> tensor<2x128x384xf32>
  %k4 = train.reshape %k3 : (tensor<2x128x384xf32>) -> tensor<256x384xf32>
  %one = train.constant dense<1.000000e+00> : tensor<2x384xf32>
  %k5 = train.div %one, %k2 : tensor<2x384xf32>
  %vk = train.mul %w, %k4 : tensor<256x384xf32>
  %nk = train.neg %vk : tensor<256x384xf32>
  %lk = train.constant dense<-4.480000e+02> : tensor<256x384xf32>
  %ak = train.max %nk, %lk : tensor<256x384xf32>
  %bk = train.neg %ak : tensor<256x384xf32>
  %ck = train.max %bk, %lk : tensor<256x384xf32>
  %qk = train.convert %ck : (tensor<256x384xf32>) -> tensor<256x384xf8E4M3FN>
  %tk = train.transpose %qk {permutation = array<i64: 1, 0>} : (tensor<256x384xf8E4M3FN>) -> tensor<384x256xf8E4M3FN>
  return %r2, %qr, %k5, %tk : tensor<256x3xf32>, tensor<256x384xf8E4M3FN>, tensor<2x384xf32>, tensor<384x256xf8E4M3FN>
}


// Vectors of 32 (mxfp8): 4 blocks of a tile.
// CHECK: vectors: ok, blocks
func.func @vectors(%x: tensor<96x256xbf16>) -> (tensor<96x8xf32>, tensor<96x256xf8E4M3FN>, tensor<3x256xf32>, tensor<256x96xf8E4M3FN>) {
  %w = train.convert %x : (tensor<96x256xbf16>) -> tensor<96x256xf32>
  %m = train.abs %w : tensor<96x256xf32>
  %r0 = train.reshape %m : (tensor<96x256xf32>) -> tensor<96x8x32xf32>
  %r1 = train.reduce max, %r0 {dimensions = array<i64: 2>} : (tensor<96x8x32xf32>) -> tensor<96x8xf32>
  %r2 = train.quantize_scale down, %r1 {format = f8E4M3FN} : tensor<96x8xf32>
  %r3 = train.broadcast %r2 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<96x8xf32>) -> tensor<96x8x32xf32>
  %r4 = train.reshape %r3 : (tensor<96x8x32xf32>) -> tensor<96x256xf32>
  %vr = train.mul %w, %r4 : tensor<96x256xf32>
  %nr = train.neg %vr : tensor<96x256xf32>
  %lr = train.constant dense<-4.480000e+02> : tensor<96x256xf32>
  %ar = train.max %nr, %lr : tensor<96x256xf32>
  %br = train.neg %ar : tensor<96x256xf32>
  %cr = train.max %br, %lr : tensor<96x256xf32>
  %qr = train.convert %cr : (tensor<96x256xf32>) -> tensor<96x256xf8E4M3FN>
  %k0 = train.reshape %m : (tensor<96x256xf32>) -> tensor<3x32x256xf32>
  %k1 = train.reduce max, %k0 {dimensions = array<i64: 1>} : (tensor<3x32x256xf32>) -> tensor<3x256xf32>
  %k2 = train.quantize_scale down, %k1 {format = f8E4M3FN} : tensor<3x256xf32>
  %k3 = train.broadcast %k2 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<3x256xf32>) -> tensor<3x32x256xf32>
  %k4 = train.reshape %k3 : (tensor<3x32x256xf32>) -> tensor<96x256xf32>
  %one = train.constant dense<1.000000e+00> : tensor<3x256xf32>
  %k5 = train.div %one, %k2 : tensor<3x256xf32>
  %vk = train.mul %w, %k4 : tensor<96x256xf32>
  %nk = train.neg %vk : tensor<96x256xf32>
  %lk = train.constant dense<-4.480000e+02> : tensor<96x256xf32>
  %ak = train.max %nk, %lk : tensor<96x256xf32>
  %bk = train.neg %ak : tensor<96x256xf32>
  %ck = train.max %bk, %lk : tensor<96x256xf32>
  %qk = train.convert %ck : (tensor<96x256xf32>) -> tensor<96x256xf8E4M3FN>
  %tk = train.transpose %qk {permutation = array<i64: 1, 0>} : (tensor<96x256xf8E4M3FN>) -> tensor<256x96xf8E4M3FN>
  return %r2, %qr, %k5, %tk : tensor<96x8xf32>, tensor<96x256xf8E4M3FN>, tensor<3x256xf32>, tensor<256x96xf8E4M3FN>
}


// Columns alone, of what is stored transposed.
// CHECK: columns: ok, blocks
func.func @columns(%x: tensor<256x256xbf16>) -> (tensor<2x256xf32>, tensor<256x256xf8E4M3FN>) {
  %w = train.convert %x : (tensor<256x256xbf16>) -> tensor<256x256xf32>
  %m = train.abs %w : tensor<256x256xf32>
  %k0 = train.reshape %m : (tensor<256x256xf32>) -> tensor<2x128x256xf32>
  %k1 = train.reduce max, %k0 {dimensions = array<i64: 1>} : (tensor<2x128x256xf32>) -> tensor<2x256xf32>
  %k2 = train.quantize_scale down, %k1 {format = f8E4M3FN} : tensor<2x256xf32>
  %k3 = train.broadcast %k2 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x256xf32>) -> tensor<2x128x256xf32>
  %k4 = train.reshape %k3 : (tensor<2x128x256xf32>) -> tensor<256x256xf32>
  %one = train.constant dense<1.000000e+00> : tensor<2x256xf32>
  %k5 = train.div %one, %k2 : tensor<2x256xf32>
  %vk = train.mul %w, %k4 : tensor<256x256xf32>
  %nk = train.neg %vk : tensor<256x256xf32>
  %lk = train.constant dense<-4.480000e+02> : tensor<256x256xf32>
  %ak = train.max %nk, %lk : tensor<256x256xf32>
  %bk = train.neg %ak : tensor<256x256xf32>
  %ck = train.max %bk, %lk : tensor<256x256xf32>
  %qk = train.convert %ck : (tensor<256x256xf32>) -> tensor<256x256xf8E4M3FN>
  %tk = train.transpose %qk {permutation = array<i64: 1, 0>} : (tensor<256x256xf8E4M3FN>) -> tensor<256x256xf8E4M3FN>
  return %k5, %tk : tensor<2x256xf32>, tensor<256x256xf8E4M3FN>
}


// Blocks that are not square, of f32.
// CHECK: oblong: ok, blocks
func.func @oblong(%x: tensor<64x256xf32>) -> (tensor<64x4xf32>, tensor<64x256xf8E4M3FN>, tensor<4x256xf32>, tensor<256x64xf8E4M3FN>) {
  %w = train.neg %x : tensor<64x256xf32>
  %m = train.abs %w : tensor<64x256xf32>
  %r0 = train.reshape %m : (tensor<64x256xf32>) -> tensor<64x4x64xf32>
  %r1 = train.reduce max, %r0 {dimensions = array<i64: 2>} : (tensor<64x4x64xf32>) -> tensor<64x4xf32>
  %r2 = train.quantize_scale down, %r1 {format = f8E4M3FN} : tensor<64x4xf32>
  %r3 = train.broadcast %r2 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<64x4xf32>) -> tensor<64x4x64xf32>
  %r4 = train.reshape %r3 : (tensor<64x4x64xf32>) -> tensor<64x256xf32>
  %vr = train.mul %w, %r4 : tensor<64x256xf32>
  %nr = train.neg %vr : tensor<64x256xf32>
  %lr = train.constant dense<-4.480000e+02> : tensor<64x256xf32>
  %ar = train.max %nr, %lr : tensor<64x256xf32>
  %br = train.neg %ar : tensor<64x256xf32>
  %cr = train.max %br, %lr : tensor<64x256xf32>
  %qr = train.convert %cr : (tensor<64x256xf32>) -> tensor<64x256xf8E4M3FN>
  %k0 = train.reshape %m : (tensor<64x256xf32>) -> tensor<4x16x256xf32>
  %k1 = train.reduce max, %k0 {dimensions = array<i64: 1>} : (tensor<4x16x256xf32>) -> tensor<4x256xf32>
  %k2 = train.quantize_scale down, %k1 {format = f8E4M3FN} : tensor<4x256xf32>
  %k3 = train.broadcast %k2 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<4x256xf32>) -> tensor<4x16x256xf32>
  %k4 = train.reshape %k3 : (tensor<4x16x256xf32>) -> tensor<64x256xf32>
  %one = train.constant dense<1.000000e+00> : tensor<4x256xf32>
  %k5 = train.div %one, %k2 : tensor<4x256xf32>
  %vk = train.mul %w, %k4 : tensor<64x256xf32>
  %nk = train.neg %vk : tensor<64x256xf32>
  %lk = train.constant dense<-4.480000e+02> : tensor<64x256xf32>
  %ak = train.max %nk, %lk : tensor<64x256xf32>
  %bk = train.neg %ak : tensor<64x256xf32>
  %ck = train.max %bk, %lk : tensor<64x256xf32>
  %qk = train.convert %ck : (tensor<64x256xf32>) -> tensor<64x256xf8E4M3FN>
  %tk = train.transpose %qk {permutation = array<i64: 1, 0>} : (tensor<64x256xf8E4M3FN>) -> tensor<256x64xf8E4M3FN>
  return %r2, %qr, %k5, %tk : tensor<64x4xf32>, tensor<64x256xf8E4M3FN>, tensor<4x256xf32>, tensor<256x64xf8E4M3FN>
}


// No scales are stored.
// CHECK: no_scales: ok, blocks
func.func @no_scales(%x: tensor<128x512xbf16>) -> (tensor<128x512xf8E4M3FN>, tensor<512x128xf8E4M3FN>) {
  %w = train.convert %x : (tensor<128x512xbf16>) -> tensor<128x512xf32>
  %m = train.abs %w : tensor<128x512xf32>
  %r0 = train.reshape %m : (tensor<128x512xf32>) -> tensor<128x4x128xf32>
  %r1 = train.reduce max, %r0 {dimensions = array<i64: 2>} : (tensor<128x4x128xf32>) -> tensor<128x4xf32>
  %r2 = train.quantize_scale down, %r1 {format = f8E4M3FN} : tensor<128x4xf32>
  %r3 = train.broadcast %r2 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<128x4xf32>) -> tensor<128x4x128xf32>
  %r4 = train.reshape %r3 : (tensor<128x4x128xf32>) -> tensor<128x512xf32>
  %vr = train.mul %w, %r4 : tensor<128x512xf32>
  %nr = train.neg %vr : tensor<128x512xf32>
  %lr = train.constant dense<-4.480000e+02> : tensor<128x512xf32>
  %ar = train.max %nr, %lr : tensor<128x512xf32>
  %br = train.neg %ar : tensor<128x512xf32>
  %cr = train.max %br, %lr : tensor<128x512xf32>
  %qr = train.convert %cr : (tensor<128x512xf32>) -> tensor<128x512xf8E4M3FN>
  %k0 = train.reshape %m : (tensor<128x512xf32>) -> tensor<1x128x512xf32>
  %k1 = train.reduce max, %k0 {dimensions = array<i64: 1>} : (tensor<1x128x512xf32>) -> tensor<1x512xf32>
  %k2 = train.quantize_scale down, %k1 {format = f8E4M3FN} : tensor<1x512xf32>
  %k3 = train.broadcast %k2 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<1x512xf32>) -> tensor<1x128x512xf32>
  %k4 = train.reshape %k3 : (tensor<1x128x512xf32>) -> tensor<128x512xf32>
  %vk = train.mul %w, %k4 : tensor<128x512xf32>
  %nk = train.neg %vk : tensor<128x512xf32>
  %lk = train.constant dense<-4.480000e+02> : tensor<128x512xf32>
  %ak = train.max %nk, %lk : tensor<128x512xf32>
  %bk = train.neg %ak : tensor<128x512xf32>
  %ck = train.max %bk, %lk : tensor<128x512xf32>
  %qk = train.convert %ck : (tensor<128x512xf32>) -> tensor<128x512xf8E4M3FN>
  %tk = train.transpose %qk {permutation = array<i64: 1, 0>} : (tensor<128x512xf8E4M3FN>) -> tensor<512x128xf8E4M3FN>
  return %qr, %tk : tensor<128x512xf8E4M3FN>, tensor<512x128xf8E4M3FN>
}


// The heads of an attention's gradient, of 64 columns, whose blocks are of two heads.
// CHECK: heads: ok, blocks
func.func @heads(%x: tensor<1x4x128x64xbf16>) -> (tensor<128x2xf32>, tensor<256x128xf8E4M3FN>, tensor<1x256xf32>) {
  %h = train.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x4x128x64xbf16>) -> tensor<1x128x4x64xbf16>
  %m = train.reshape %h : (tensor<1x128x4x64xbf16>) -> tensor<128x256xbf16>
  %w = train.convert %m : (tensor<128x256xbf16>) -> tensor<128x256xf32>
  %r0 = train.reshape %w : (tensor<128x256xf32>) -> tensor<128x2x128xf32>
  %r = train.reduce max, %r0 {dimensions = array<i64: 2>} : (tensor<128x2x128xf32>) -> tensor<128x2xf32>
  %c0 = train.reshape %w : (tensor<128x256xf32>) -> tensor<1x128x256xf32>
  %c = train.reduce max, %c0 {dimensions = array<i64: 1>} : (tensor<1x128x256xf32>) -> tensor<1x256xf32>
  %b0 = train.broadcast %c {broadcast_dimensions = array<i64: 0, 2>} : (tensor<1x256xf32>) -> tensor<1x128x256xf32>
  %b = train.reshape %b0 : (tensor<1x128x256xf32>) -> tensor<128x256xf32>
  %v = train.mul %w, %b : tensor<128x256xf32>
  %t = train.transpose %v {permutation = array<i64: 1, 0>} : (tensor<128x256xf32>) -> tensor<256x128xf32>
  %q = train.convert %t : (tensor<256x128xf32>) -> tensor<256x128xf8E4M3FN>
  return %r, %q, %c : tensor<128x2xf32>, tensor<256x128xf8E4M3FN>, tensor<1x256xf32>
}

// Without the divisions of scales.
// CHECK: counted: ok, blocks
func.func @counted(%x: tensor<256x384xbf16>) -> (tensor<256x384xf8E4M3FN>, tensor<384x256xf8E4M3FN>) {
  %w = train.convert %x : (tensor<256x384xbf16>) -> tensor<256x384xf32>
  %m = train.abs %w : tensor<256x384xf32>
  %r0 = train.reshape %m : (tensor<256x384xf32>) -> tensor<256x3x128xf32>
  %r1 = train.reduce max, %r0 {dimensions = array<i64: 2>} : (tensor<256x3x128xf32>) -> tensor<256x3xf32>
  %r2 = train.broadcast %r1 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<256x3xf32>) -> tensor<256x3x128xf32>
  %r3 = train.reshape %r2 : (tensor<256x3x128xf32>) -> tensor<256x384xf32>
  %rv = train.mul %w, %r3 : tensor<256x384xf32>
  %rq = train.convert %rv : (tensor<256x384xf32>) -> tensor<256x384xf8E4M3FN>
  %c0 = train.reshape %m : (tensor<256x384xf32>) -> tensor<2x128x384xf32>
  %c1 = train.reduce max, %c0 {dimensions = array<i64: 1>} : (tensor<2x128x384xf32>) -> tensor<2x384xf32>
  %c2 = train.broadcast %c1 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x384xf32>) -> tensor<2x128x384xf32>
  %c3 = train.reshape %c2 : (tensor<2x128x384xf32>) -> tensor<256x384xf32>
  %cv = train.mul %w, %c3 : tensor<256x384xf32>
  %cq = train.convert %cv : (tensor<256x384xf32>) -> tensor<256x384xf8E4M3FN>
  %ct = train.transpose %cq {permutation = array<i64: 1, 0>} : (tensor<256x384xf8E4M3FN>) -> tensor<384x256xf8E4M3FN>
  return %rq, %ct : tensor<256x384xf8E4M3FN>, tensor<384x256xf8E4M3FN>
}
