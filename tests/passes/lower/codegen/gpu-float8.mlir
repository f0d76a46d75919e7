// Casts of 8-bit floats by the instructions of a GPU, two at once; what float8.mlir checks by values.
// RUN: kernel-check --gpu %s | FileCheck %s
// RUN: kernel-check --ptx=sm_90 %s | FileCheck %s --check-prefixes=PTX,ARCH90
// RUN: kernel-check --ptx=sm_100 %s | FileCheck %s --check-prefixes=PTX,ARCH100
// RUN: kernel-check --ptx=sm_80 %s | FileCheck %s --check-prefix=ARCH80
// A quantised element is 3 bytes.
// RUN: kernel-check --ptx=sm_90 %s | python3 %S/Inputs/count_ptx.py --elements=16384 --gpu=h100 quantize=3 widen=3

// ARCH90: .version 8.1
// ARCH100: .version 8.6
// ARCH80: .version 8.0
// ARCH80-NOT: e4m3x2

// What train.quantize becomes: clamped by the instruction alone.
// CHECK: quantize: ok
// PTX-LABEL: .entry quantize(
// PTX-NOT: max.
// PTX-NOT: setp.gt.f32
// PTX-COUNT-4: cvt.rn.satfinite.e4m3x2.f32
// PTX-NOT: cvt.rn.satfinite
// PTX: st.global.v2.b32
func.func @quantize(%x: tensor<64x256xbf16>, %s: tensor<f32>) -> tensor<64x256xf8E4M3FN> {
  %w = train.convert %x : (tensor<64x256xbf16>) -> tensor<64x256xf32>
  %b = train.broadcast %s {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<64x256xf32>
  %v = train.mul %w, %b : tensor<64x256xf32>
  %low = train.constant dense<-4.480000e+02> : tensor<64x256xf32>
  %high = train.constant dense<4.480000e+02> : tensor<64x256xf32>
  %minus = train.neg %high : tensor<64x256xf32>
  %m = train.neg %v : tensor<64x256xf32>
  %m1 = train.max %m, %minus : tensor<64x256xf32>
  %m2 = train.neg %m1 : tensor<64x256xf32>
  %c = train.max %m2, %low : tensor<64x256xf32>
  %q = train.convert %c : (tensor<64x256xf32>) -> tensor<64x256xf8E4M3FN>
  return %q : tensor<64x256xf8E4M3FN>
}

// Two formats: neighbours of one format share an instruction. What is too large is looked for.
// CHECK: cast: ok
// PTX-LABEL: .entry cast(
// PTX-COUNT-4: cvt.rn.satfinite.e4m3x2.f32
// PTX: ret;
func.func @cast(%x: tensor<64x256xf32>) -> (tensor<64x256xf8E4M3FN>, tensor<64x256xf8E5M2>) {
  %q = train.convert %x : (tensor<64x256xf32>) -> tensor<64x256xf8E4M3FN>
  %p = train.convert %x : (tensor<64x256xf32>) -> tensor<64x256xf8E5M2>
  return %q, %p : tensor<64x256xf8E4M3FN>, tensor<64x256xf8E5M2>
}

// CHECK: widen: ok
// PTX-LABEL: .entry widen(
// PTX: ld.global.nc.v2.b32
// PTX-NOT: ld.global
// PTX-COUNT-4: cvt.rn.f16x2.e4m3x2
// PTX-NOT: cvt.rn.f16x2
// PTX: st.global.v4.b32
func.func @widen(%x: tensor<64x256xf8E4M3FN>) -> tensor<64x256xbf16> {
  %q = train.convert %x : (tensor<64x256xf8E4M3FN>) -> tensor<64x256xbf16>
  return %q : tensor<64x256xbf16>
}

// An odd number of elements: one cast an instruction.
// CHECK: alone: ok
// PTX-LABEL: .entry alone(
// PTX-COUNT-1: cvt.rn.f16x2.e5m2x2
// PTX-COUNT-1: cvt.rn.satfinite.e5m2x2.f32
// PTX: ret;
func.func @alone(%x: tensor<81xf8E5M2>) -> tensor<81xf8E5M2> {
  %w = train.convert %x : (tensor<81xf8E5M2>) -> tensor<81xf32>
  %v = train.add %w, %w : tensor<81xf32>
  %q = train.convert %v : (tensor<81xf32>) -> tensor<81xf8E5M2>
  return %q : tensor<81xf8E5M2>
}
