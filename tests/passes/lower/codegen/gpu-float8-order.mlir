// RUN: kernel-check --ptx=sm_90 %s | FileCheck %s
// RUN: kernel-check --gpu %s | FileCheck %s --check-prefix=OK
// A kernel that reads 8-bit floats, and writes others in another order: what is moved for a pair of casts must not end up
// behind its uses.

// CHECK: .visible .entry {{.*}}read_and_write
// CHECK: cvt.rn.f16x2.e4m3x2
// CHECK: cvt.rn.satfinite.e4m3x2.f32
// OK: read_and_write: ok
func.func @read_and_write(%a: tensor<64x128xf8E4M3FN>) -> (tensor<64x128xf32>, tensor<128x64xf8E4M3FN>) {
  %t = train.transpose %a {permutation = array<i64: 1, 0>} : (tensor<64x128xf8E4M3FN>) -> tensor<128x64xf8E4M3FN>
  %x = train.convert %t : (tensor<128x64xf8E4M3FN>) -> tensor<128x64xf32>
  %n = train.neg %x : tensor<128x64xf32>
  %r = train.transpose %n {permutation = array<i64: 1, 0>} : (tensor<128x64xf32>) -> tensor<64x128xf32>
  %q = train.convert %x : (tensor<128x64xf32>) -> tensor<128x64xf8E4M3FN>
  return %r, %q : tensor<64x128xf32>, tensor<128x64xf8E4M3FN>
}
