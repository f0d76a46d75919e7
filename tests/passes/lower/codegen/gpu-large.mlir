// More elements than 32 bits count: threads take eight at a time, and positions have 64 bits. Code alone is checked, the
// tensors do not fit a test.
// RUN: kernel-check --ptx=sm_90 %s | FileCheck %s

// CHECK-LABEL: .entry large(
// CHECK: ld.global.{{(nc.)?}}v4.b32
// CHECK: // large: 1215488 blocks of 256 x 1
func.func @large(%x: tensor<16384x151936xbf16>) -> tensor<16384x151936xbf16> {
  %0 = train.neg %x : tensor<16384x151936xbf16>
  return %0 : tensor<16384x151936xbf16>
}
