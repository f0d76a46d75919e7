// On a GPU what is quantised by its blocks for two products is read once. Kernels of the forward and of the backward pass
// stay apart; a value that does not divide into tiles, or two at once, has a kernel for each orientation.
// RUN: tessera-opt %s --fuse=gpu=true | FileCheck %s
// RUN: tessera-opt %s --fuse=gpu=true --outline-kernels | kernel-check --gpu
// RUN: tessera-opt %s --fuse | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: @both
// CHECK: exec.fusion "blocks"
// CHECK-NOT: exec.fusion
// CHECK: return
// CPU-LABEL: @both
// CPU-NOT: exec.fusion "blocks"
// CPU: return
func.func @both(%x: tensor<256x384xbf16>) -> (tensor<256x384xf8E4M3FN>, tensor<256x3xf32>, tensor<384x256xf8E4M3FN>, tensor<2x384xf32>) {
  %wr = train.convert %x : (tensor<256x384xbf16>) -> tensor<256x384xf32>
  %mr = train.abs %wr : tensor<256x384xf32>
  %pr = train.reshape %mr : (tensor<256x384xf32>) -> tensor<256x3x128xf32>
  %rr = train.reduce max, %pr {dimensions = array<i64: 2>} : (tensor<256x3x128xf32>) -> tensor<256x3xf32>
  %sr = train.quantize_scale down, %rr {format = f8E4M3FN} : tensor<256x3xf32>
  %br = train.broadcast %sr {broadcast_dimensions = array<i64: 0, 1>} : (tensor<256x3xf32>) -> tensor<256x3x128xf32>
  %er = train.reshape %br : (tensor<256x3x128xf32>) -> tensor<256x384xf32>
  %vr = train.mul %wr, %er : tensor<256x384xf32>
  %qr = train.convert %vr : (tensor<256x384xf32>) -> tensor<256x384xf8E4M3FN>
  %wc = train.convert %x : (tensor<256x384xbf16>) -> tensor<256x384xf32>
  %mc = train.abs %wc : tensor<256x384xf32>
  %pc = train.reshape %mc : (tensor<256x384xf32>) -> tensor<2x128x384xf32>
  %rc = train.reduce max, %pc {dimensions = array<i64: 1>} : (tensor<2x128x384xf32>) -> tensor<2x384xf32>
  %sc = train.quantize_scale down, %rc {format = f8E4M3FN} : tensor<2x384xf32>
  %bc = train.broadcast %sc {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x384xf32>) -> tensor<2x128x384xf32>
  %ec = train.reshape %bc : (tensor<2x128x384xf32>) -> tensor<256x384xf32>
  %vc = train.mul %wc, %ec : tensor<256x384xf32>
  %tc = train.transpose %vc {permutation = array<i64: 1, 0>} : (tensor<256x384xf32>) -> tensor<384x256xf32>
  %qc = train.convert %tc : (tensor<384x256xf32>) -> tensor<384x256xf8E4M3FN>
  return %qr, %sr, %qc, %sc : tensor<256x384xf8E4M3FN>, tensor<256x3xf32>, tensor<384x256xf8E4M3FN>, tensor<2x384xf32>
}

// Both in the backward pass, in vectors of 32.
// CHECK-LABEL: @backward
// CHECK: exec.fusion "blocks"
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @backward(%x: tensor<96x256xbf16>) -> (tensor<96x256xf8E4M3FN>, tensor<96x8xf32>, tensor<256x96xf8E4M3FN>, tensor<3x256xf32>) {
  %wr = train.convert %x {train.backward}: (tensor<96x256xbf16>) -> tensor<96x256xf32>
  %mr = train.abs %wr {train.backward}: tensor<96x256xf32>
  %pr = train.reshape %mr {train.backward}: (tensor<96x256xf32>) -> tensor<96x8x32xf32>
  %rr = train.reduce max, %pr {dimensions = array<i64: 2>, train.backward} : (tensor<96x8x32xf32>) -> tensor<96x8xf32>
  %sr = train.quantize_scale down, %rr {format = f8E4M3FN, train.backward} : tensor<96x8xf32>
  %br = train.broadcast %sr {broadcast_dimensions = array<i64: 0, 1>, train.backward} : (tensor<96x8xf32>) -> tensor<96x8x32xf32>
  %er = train.reshape %br {train.backward}: (tensor<96x8x32xf32>) -> tensor<96x256xf32>
  %vr = train.mul %wr, %er {train.backward}: tensor<96x256xf32>
  %qr = train.convert %vr {train.backward}: (tensor<96x256xf32>) -> tensor<96x256xf8E4M3FN>
  %wc = train.convert %x {train.backward}: (tensor<96x256xbf16>) -> tensor<96x256xf32>
  %mc = train.abs %wc {train.backward}: tensor<96x256xf32>
  %pc = train.reshape %mc {train.backward}: (tensor<96x256xf32>) -> tensor<3x32x256xf32>
  %rc = train.reduce max, %pc {dimensions = array<i64: 1>, train.backward} : (tensor<3x32x256xf32>) -> tensor<3x256xf32>
  %sc = train.quantize_scale down, %rc {format = f8E4M3FN, train.backward} : tensor<3x256xf32>
  %bc = train.broadcast %sc {broadcast_dimensions = array<i64: 0, 2>, train.backward} : (tensor<3x256xf32>) -> tensor<3x32x256xf32>
  %ec = train.reshape %bc {train.backward}: (tensor<3x32x256xf32>) -> tensor<96x256xf32>
  %vc = train.mul %wc, %ec {train.backward}: tensor<96x256xf32>
  %tc = train.transpose %vc {permutation = array<i64: 1, 0>, train.backward} : (tensor<96x256xf32>) -> tensor<256x96xf32>
  %qc = train.convert %tc {train.backward}: (tensor<256x96xf32>) -> tensor<256x96xf8E4M3FN>
  return %qr, %sr, %qc, %sc : tensor<96x256xf8E4M3FN>, tensor<96x8xf32>, tensor<256x96xf8E4M3FN>, tensor<3x256xf32>
}

// The transpose would be kept from the forward to the backward pass.
// CHECK-LABEL: @two_passes
// CHECK: exec.fusion "row"
// CHECK: exec.fusion "blocks"
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @two_passes(%x: tensor<256x384xbf16>) -> (tensor<256x384xf8E4M3FN>, tensor<256x3xf32>, tensor<384x256xf8E4M3FN>, tensor<2x384xf32>) {
  %wr = train.convert %x : (tensor<256x384xbf16>) -> tensor<256x384xf32>
  %mr = train.abs %wr : tensor<256x384xf32>
  %pr = train.reshape %mr : (tensor<256x384xf32>) -> tensor<256x3x128xf32>
  %rr = train.reduce max, %pr {dimensions = array<i64: 2>} : (tensor<256x3x128xf32>) -> tensor<256x3xf32>
  %sr = train.quantize_scale down, %rr {format = f8E4M3FN} : tensor<256x3xf32>
  %br = train.broadcast %sr {broadcast_dimensions = array<i64: 0, 1>} : (tensor<256x3xf32>) -> tensor<256x3x128xf32>
  %er = train.reshape %br : (tensor<256x3x128xf32>) -> tensor<256x384xf32>
  %vr = train.mul %wr, %er : tensor<256x384xf32>
  %qr = train.convert %vr : (tensor<256x384xf32>) -> tensor<256x384xf8E4M3FN>
  %wc = train.convert %x {train.backward}: (tensor<256x384xbf16>) -> tensor<256x384xf32>
  %mc = train.abs %wc {train.backward}: tensor<256x384xf32>
  %pc = train.reshape %mc {train.backward}: (tensor<256x384xf32>) -> tensor<2x128x384xf32>
  %rc = train.reduce max, %pc {dimensions = array<i64: 1>, train.backward} : (tensor<2x128x384xf32>) -> tensor<2x384xf32>
  %sc = train.quantize_scale down, %rc {format = f8E4M3FN, train.backward} : tensor<2x384xf32>
  %bc = train.broadcast %sc {broadcast_dimensions = array<i64: 0, 2>, train.backward} : (tensor<2x384xf32>) -> tensor<2x128x384xf32>
  %ec = train.reshape %bc {train.backward}: (tensor<2x128x384xf32>) -> tensor<256x384xf32>
  %vc = train.mul %wc, %ec {train.backward}: tensor<256x384xf32>
  %tc = train.transpose %vc {permutation = array<i64: 1, 0>, train.backward} : (tensor<256x384xf32>) -> tensor<384x256xf32>
  %qc = train.convert %tc {train.backward}: (tensor<384x256xf32>) -> tensor<384x256xf8E4M3FN>
  return %qr, %sr, %qc, %sc : tensor<256x384xf8E4M3FN>, tensor<256x3xf32>, tensor<384x256xf8E4M3FN>, tensor<2x384xf32>
}

// A thread holds elements of one value.
// CHECK-LABEL: @two_values
// CHECK-COUNT-2: exec.fusion "blocks"
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @two_values(%x: tensor<256x384xbf16>, %y: tensor<256x384xbf16>) -> (tensor<256x384xf8E4M3FN>, tensor<256x3xf32>, tensor<384x256xf8E4M3FN>, tensor<2x384xf32>, tensor<384x256xf8E4M3FN>, tensor<2x384xf32>, tensor<256x384xf8E4M3FN>, tensor<256x3xf32>) {
  %wr = train.convert %x : (tensor<256x384xbf16>) -> tensor<256x384xf32>
  %mr = train.abs %wr : tensor<256x384xf32>
  %pr = train.reshape %mr : (tensor<256x384xf32>) -> tensor<256x3x128xf32>
  %rr = train.reduce max, %pr {dimensions = array<i64: 2>} : (tensor<256x3x128xf32>) -> tensor<256x3xf32>
  %sr = train.quantize_scale down, %rr {format = f8E4M3FN} : tensor<256x3xf32>
  %br = train.broadcast %sr {broadcast_dimensions = array<i64: 0, 1>} : (tensor<256x3xf32>) -> tensor<256x3x128xf32>
  %er = train.reshape %br : (tensor<256x3x128xf32>) -> tensor<256x384xf32>
  %vr = train.mul %wr, %er : tensor<256x384xf32>
  %qr = train.convert %vr : (tensor<256x384xf32>) -> tensor<256x384xf8E4M3FN>
  %wc = train.convert %y : (tensor<256x384xbf16>) -> tensor<256x384xf32>
  %mc = train.abs %wc : tensor<256x384xf32>
  %pc = train.reshape %mc : (tensor<256x384xf32>) -> tensor<2x128x384xf32>
  %rc = train.reduce max, %pc {dimensions = array<i64: 1>} : (tensor<2x128x384xf32>) -> tensor<2x384xf32>
  %sc = train.quantize_scale down, %rc {format = f8E4M3FN} : tensor<2x384xf32>
  %bc = train.broadcast %sc {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x384xf32>) -> tensor<2x128x384xf32>
  %ec = train.reshape %bc : (tensor<2x128x384xf32>) -> tensor<256x384xf32>
  %vc = train.mul %wc, %ec : tensor<256x384xf32>
  %tc = train.transpose %vc {permutation = array<i64: 1, 0>} : (tensor<256x384xf32>) -> tensor<384x256xf32>
  %qc = train.convert %tc : (tensor<384x256xf32>) -> tensor<384x256xf8E4M3FN>
  %wd = train.convert %x : (tensor<256x384xbf16>) -> tensor<256x384xf32>
  %md = train.abs %wd : tensor<256x384xf32>
  %pd = train.reshape %md : (tensor<256x384xf32>) -> tensor<2x128x384xf32>
  %rd = train.reduce max, %pd {dimensions = array<i64: 1>} : (tensor<2x128x384xf32>) -> tensor<2x384xf32>
  %sd = train.quantize_scale down, %rd {format = f8E4M3FN} : tensor<2x384xf32>
  %bd = train.broadcast %sd {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x384xf32>) -> tensor<2x128x384xf32>
  %ed = train.reshape %bd : (tensor<2x128x384xf32>) -> tensor<256x384xf32>
  %vd = train.mul %wd, %ed : tensor<256x384xf32>
  %td = train.transpose %vd {permutation = array<i64: 1, 0>} : (tensor<256x384xf32>) -> tensor<384x256xf32>
  %qd = train.convert %td : (tensor<384x256xf32>) -> tensor<384x256xf8E4M3FN>
  %ws = train.convert %y : (tensor<256x384xbf16>) -> tensor<256x384xf32>
  %ms = train.abs %ws : tensor<256x384xf32>
  %ps = train.reshape %ms : (tensor<256x384xf32>) -> tensor<256x3x128xf32>
  %rs = train.reduce max, %ps {dimensions = array<i64: 2>} : (tensor<256x3x128xf32>) -> tensor<256x3xf32>
  %ss = train.quantize_scale down, %rs {format = f8E4M3FN} : tensor<256x3xf32>
  %bs = train.broadcast %ss {broadcast_dimensions = array<i64: 0, 1>} : (tensor<256x3xf32>) -> tensor<256x3x128xf32>
  %es = train.reshape %bs : (tensor<256x3x128xf32>) -> tensor<256x384xf32>
  %vs = train.mul %ws, %es : tensor<256x384xf32>
  %qs = train.convert %vs : (tensor<256x384xf32>) -> tensor<256x384xf8E4M3FN>
  return %qr, %sr, %qc, %sc, %qd, %sd, %qs, %ss : tensor<256x384xf8E4M3FN>, tensor<256x3xf32>, tensor<384x256xf8E4M3FN>, tensor<2x384xf32>, tensor<384x256xf8E4M3FN>, tensor<2x384xf32>, tensor<256x384xf8E4M3FN>, tensor<256x3xf32>
}

// 96 columns are no tiles of 128.
// CHECK-LABEL: @narrow
// CHECK-NOT: exec.fusion "blocks"
// CHECK: return
func.func @narrow(%x: tensor<256x96xbf16>) -> (tensor<256x96xf8E4M3FN>, tensor<256x3xf32>, tensor<96x256xf8E4M3FN>, tensor<8x96xf32>) {
  %wr = train.convert %x : (tensor<256x96xbf16>) -> tensor<256x96xf32>
  %mr = train.abs %wr : tensor<256x96xf32>
  %pr = train.reshape %mr : (tensor<256x96xf32>) -> tensor<256x3x32xf32>
  %rr = train.reduce max, %pr {dimensions = array<i64: 2>} : (tensor<256x3x32xf32>) -> tensor<256x3xf32>
  %sr = train.quantize_scale down, %rr {format = f8E4M3FN} : tensor<256x3xf32>
  %br = train.broadcast %sr {broadcast_dimensions = array<i64: 0, 1>} : (tensor<256x3xf32>) -> tensor<256x3x32xf32>
  %er = train.reshape %br : (tensor<256x3x32xf32>) -> tensor<256x96xf32>
  %vr = train.mul %wr, %er : tensor<256x96xf32>
  %qr = train.convert %vr : (tensor<256x96xf32>) -> tensor<256x96xf8E4M3FN>
  %wc = train.convert %x : (tensor<256x96xbf16>) -> tensor<256x96xf32>
  %mc = train.abs %wc : tensor<256x96xf32>
  %pc = train.reshape %mc : (tensor<256x96xf32>) -> tensor<8x32x96xf32>
  %rc = train.reduce max, %pc {dimensions = array<i64: 1>} : (tensor<8x32x96xf32>) -> tensor<8x96xf32>
  %sc = train.quantize_scale down, %rc {format = f8E4M3FN} : tensor<8x96xf32>
  %bc = train.broadcast %sc {broadcast_dimensions = array<i64: 0, 2>} : (tensor<8x96xf32>) -> tensor<8x32x96xf32>
  %ec = train.reshape %bc : (tensor<8x32x96xf32>) -> tensor<256x96xf32>
  %vc = train.mul %wc, %ec : tensor<256x96xf32>
  %tc = train.transpose %vc {permutation = array<i64: 1, 0>} : (tensor<256x96xf32>) -> tensor<96x256xf32>
  %qc = train.convert %tc : (tensor<96x256xf32>) -> tensor<96x256xf8E4M3FN>
  return %qr, %sr, %qc, %sc : tensor<256x96xf8E4M3FN>, tensor<256x3xf32>, tensor<96x256xf8E4M3FN>, tensor<8x96xf32>
}

// Nor are 512 rows.
// CHECK-LABEL: @tall
// CHECK-NOT: exec.fusion "blocks"
// CHECK: return
func.func @tall(%x: tensor<1024x256xbf16>) -> (tensor<1024x256xf8E4M3FN>, tensor<1024x2xf32>, tensor<256x1024xf8E4M3FN>, tensor<2x256xf32>) {
  %wr = train.convert %x : (tensor<1024x256xbf16>) -> tensor<1024x256xf32>
  %mr = train.abs %wr : tensor<1024x256xf32>
  %pr = train.reshape %mr : (tensor<1024x256xf32>) -> tensor<1024x2x128xf32>
  %rr = train.reduce max, %pr {dimensions = array<i64: 2>} : (tensor<1024x2x128xf32>) -> tensor<1024x2xf32>
  %sr = train.quantize_scale down, %rr {format = f8E4M3FN} : tensor<1024x2xf32>
  %br = train.broadcast %sr {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1024x2xf32>) -> tensor<1024x2x128xf32>
  %er = train.reshape %br : (tensor<1024x2x128xf32>) -> tensor<1024x256xf32>
  %vr = train.mul %wr, %er : tensor<1024x256xf32>
  %qr = train.convert %vr : (tensor<1024x256xf32>) -> tensor<1024x256xf8E4M3FN>
  %wc = train.convert %x : (tensor<1024x256xbf16>) -> tensor<1024x256xf32>
  %mc = train.abs %wc : tensor<1024x256xf32>
  %pc = train.reshape %mc : (tensor<1024x256xf32>) -> tensor<2x512x256xf32>
  %rc = train.reduce max, %pc {dimensions = array<i64: 1>} : (tensor<2x512x256xf32>) -> tensor<2x256xf32>
  %sc = train.quantize_scale down, %rc {format = f8E4M3FN} : tensor<2x256xf32>
  %bc = train.broadcast %sc {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x256xf32>) -> tensor<2x512x256xf32>
  %ec = train.reshape %bc : (tensor<2x512x256xf32>) -> tensor<1024x256xf32>
  %vc = train.mul %wc, %ec : tensor<1024x256xf32>
  %tc = train.transpose %vc {permutation = array<i64: 1, 0>} : (tensor<1024x256xf32>) -> tensor<256x1024xf32>
  %qc = train.convert %tc : (tensor<256x1024xf32>) -> tensor<256x1024xf8E4M3FN>
  return %qr, %sr, %qc, %sc : tensor<1024x256xf8E4M3FN>, tensor<1024x2xf32>, tensor<256x1024xf8E4M3FN>, tensor<2x256xf32>
}
