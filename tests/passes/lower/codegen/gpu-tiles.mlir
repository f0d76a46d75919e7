// Elementwise kernels that transpose, on a GPU: a block takes a tile, and what lies in the other orientation goes through
// shared memory. Values against the interpreter, with sizes that tiles do and do not divide.
// RUN: kernel-check --gpu %s | FileCheck %s
// RUN: kernel-check --gpu --gpu-target=sm_80 %s | FileCheck %s
// RUN: kernel-check %s | FileCheck %s
// RUN: kernel-check --ptx=sm_90 %s | FileCheck %s --check-prefix=PTX
// RUN: kernel-check --ptx=sm_80 %s 2>&1 | FileCheck %s --check-prefix=SPILL
// RUN: kernel-check --ptx=sm_90 %s 2>&1 | FileCheck %s --check-prefix=SPILL
// RUN: kernel-check --ptx=sm_100 %s 2>&1 | FileCheck %s --check-prefix=SPILL
// Bytes of an element, and the instructions that an H100 has time for.
// RUN: kernel-check --ptx=sm_90 %s | python3 %S/Inputs/count_ptx.py --elements=24576 --gpu=h100 quantized=3 rows_and_columns=4

// No register is spilled, on any architecture (where ptxas is there to tell).
// SPILL-NOT: spill

// Tiles divide both sides: no branch, 16 bytes a read and 8 a write.
// CHECK: quantized: ok, elementwise
// PTX-LABEL: .entry quantized(
// PTX: .maxntid 256, 1, 1
// PTX-NOT: bra
// PTX-COUNT-2: ld.global.nc.v4.b32
// PTX-NOT: ld.global.{{.*}}b16
// PTX-COUNT-16: st.shared.b16
// PTX: bar.sync
// PTX-COUNT-8: ld.shared.b16
// PTX: st.global.v2.b32
// PTX-COUNT-8: ld.shared.b16
// PTX: st.global.v2.b32
// PTX: ret;
func.func @quantized(%x: tensor<128x192xbf16>, %s: tensor<f32>) -> tensor<192x128xf8E4M3FN> {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<128x192xbf16>) -> tensor<192x128xbf16>
  %w = train.convert %t : (tensor<192x128xbf16>) -> tensor<192x128xf32>
  %b = train.broadcast %s {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<192x128xf32>
  %v = train.mul %w, %b : tensor<192x128xf32>
  %l = train.constant dense<-4.480000e+02> : tensor<192x128xf32>
  %m = train.neg %v : tensor<192x128xf32>
  %n = train.max %m, %l : tensor<192x128xf32>
  %o = train.neg %n : tensor<192x128xf32>
  %c = train.max %o, %l : tensor<192x128xf32>
  %q = train.convert %c : (tensor<192x128xf32>) -> tensor<192x128xf8E4M3FN>
  return %q : tensor<192x128xf8E4M3FN>
}

// One read of x, both orientations: the second result goes through shared memory.
// CHECK: both: ok, elementwise
// PTX-LABEL: .entry both(
// PTX-NOT: bra
// PTX-COUNT-2: ld.global.nc.v4.b32
// PTX-NOT: ld.global
// PTX: bar.sync
// PTX-COUNT-8: ld.shared.b8
// PTX: st.global.v2.b32
// PTX-COUNT-8: ld.shared.b8
// PTX: st.global.v2.b32
// PTX-NEXT: ret;
func.func @both(%x: tensor<192x320xbf16>, %s: tensor<f32>) -> (tensor<192x320xf8E4M3FN>, tensor<320x192xf8E4M3FN>) {
  %w = train.convert %x : (tensor<192x320xbf16>) -> tensor<192x320xf32>
  %b = train.broadcast %s {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<192x320xf32>
  %v = train.mul %w, %b : tensor<192x320xf32>
  %l = train.constant dense<-4.480000e+02> : tensor<192x320xf32>
  %m = train.neg %v : tensor<192x320xf32>
  %n = train.max %m, %l : tensor<192x320xf32>
  %o = train.neg %n : tensor<192x320xf32>
  %c = train.max %o, %l : tensor<192x320xf32>
  %q = train.convert %c : (tensor<192x320xf32>) -> tensor<192x320xf8E4M3FN>
  %t = train.transpose %q {permutation = array<i64: 1, 0>} : (tensor<192x320xf8E4M3FN>) -> tensor<320x192xf8E4M3FN>
  return %q, %t : tensor<192x320xf8E4M3FN>, tensor<320x192xf8E4M3FN>
}

// As two readers of x quantise it: a scale for each row, and one for each column.
// CHECK: rows_and_columns: ok, elementwise
// PTX-LABEL: .entry rows_and_columns(
// PTX-COUNT-2: ld.global.nc.v4.b32
// PTX-NOT: ld.global.nc.b16
// PTX: bar.sync
// PTX: ret;
func.func @rows_and_columns(%x: tensor<128x192xbf16>, %r: tensor<128xf32>, %c: tensor<192xf32>) -> (tensor<192x128xf8E5M2>, tensor<128x192xf8E4M3FN>) {
  %wr = train.convert %x : (tensor<128x192xbf16>) -> tensor<128x192xf32>
  %br = train.broadcast %r {broadcast_dimensions = array<i64: 0>} : (tensor<128xf32>) -> tensor<128x192xf32>
  %vr = train.mul %wr, %br : tensor<128x192xf32>
  %lr = train.constant dense<-4.480000e+02> : tensor<128x192xf32>
  %mr = train.neg %vr : tensor<128x192xf32>
  %nr = train.max %mr, %lr : tensor<128x192xf32>
  %or = train.neg %nr : tensor<128x192xf32>
  %cr = train.max %or, %lr : tensor<128x192xf32>
  %qr = train.convert %cr : (tensor<128x192xf32>) -> tensor<128x192xf8E4M3FN>
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<128x192xbf16>) -> tensor<192x128xbf16>
  %wc = train.convert %t : (tensor<192x128xbf16>) -> tensor<192x128xf32>
  %bc = train.broadcast %c {broadcast_dimensions = array<i64: 0>} : (tensor<192xf32>) -> tensor<192x128xf32>
  %vc = train.mul %wc, %bc : tensor<192x128xf32>
  %lc = train.constant dense<-5.734400e+04> : tensor<192x128xf32>
  %mc = train.neg %vc : tensor<192x128xf32>
  %nc = train.max %mc, %lc : tensor<192x128xf32>
  %oc = train.neg %nc : tensor<192x128xf32>
  %cc = train.max %oc, %lc : tensor<192x128xf32>
  %qc = train.convert %cc : (tensor<192x128xf32>) -> tensor<192x128xf8E5M2>
  return %qc, %qr : tensor<192x128xf8E5M2>, tensor<128x192xf8E4M3FN>
}

// Sizes that no tile divides: odd ones, and those that vectors divide.
// CHECK: odd: ok, elementwise
func.func @odd(%x: tensor<67x131xf32>) -> tensor<131x67xf32> {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<67x131xf32>) -> tensor<131x67xf32>
  %y = train.add %t, %t : tensor<131x67xf32>
  return %y : tensor<131x67xf32>
}
// CHECK: odd_both: ok, elementwise
func.func @odd_both(%x: tensor<67x131xf32>, %s: tensor<67xf32>) -> (tensor<131x67xf8E4M3FN>, tensor<67x131xf8E4M3FN>) {
  %b = train.broadcast %s {broadcast_dimensions = array<i64: 0>} : (tensor<67xf32>) -> tensor<67x131xf32>
  %v = train.mul %x, %b : tensor<67x131xf32>
  %l = train.constant dense<-4.480000e+02> : tensor<67x131xf32>
  %m = train.neg %v : tensor<67x131xf32>
  %n = train.max %m, %l : tensor<67x131xf32>
  %o = train.neg %n : tensor<67x131xf32>
  %c = train.max %o, %l : tensor<67x131xf32>
  %q = train.convert %c : (tensor<67x131xf32>) -> tensor<67x131xf8E4M3FN>
  %t = train.transpose %q {permutation = array<i64: 1, 0>} : (tensor<67x131xf8E4M3FN>) -> tensor<131x67xf8E4M3FN>
  return %t, %q : tensor<131x67xf8E4M3FN>, tensor<67x131xf8E4M3FN>
}
// CHECK: by_eight: ok, elementwise
func.func @by_eight(%x: tensor<72x200xbf16>, %s: tensor<200xf32>) -> (tensor<72x200xf8E4M3FN>, tensor<200x72xf8E4M3FN>) {
  %w = train.convert %x : (tensor<72x200xbf16>) -> tensor<72x200xf32>
  %b = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<200xf32>) -> tensor<72x200xf32>
  %v = train.mul %w, %b : tensor<72x200xf32>
  %l = train.constant dense<-4.480000e+02> : tensor<72x200xf32>
  %m = train.neg %v : tensor<72x200xf32>
  %n = train.max %m, %l : tensor<72x200xf32>
  %o = train.neg %n : tensor<72x200xf32>
  %c = train.max %o, %l : tensor<72x200xf32>
  %q = train.convert %c : (tensor<72x200xf32>) -> tensor<72x200xf8E4M3FN>
  %t = train.transpose %q {permutation = array<i64: 1, 0>} : (tensor<72x200xf8E4M3FN>) -> tensor<200x72xf8E4M3FN>
  return %q, %t : tensor<72x200xf8E4M3FN>, tensor<200x72xf8E4M3FN>
}
// CHECK: smallest: ok, elementwise
func.func @smallest(%x: tensor<32x33xbf16>) -> tensor<33x32xbf16> {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<32x33xbf16>) -> tensor<33x32xbf16>
  %y = train.add %t, %t : tensor<33x32xbf16>
  return %y : tensor<33x32xbf16>
}

// 8 bits in, wide out, and a copy.
// CHECK: widened: ok, elementwise
func.func @widened(%x: tensor<96x160xf8E4M3FN>, %s: tensor<96xf32>) -> tensor<160x96xbf16> {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<96x160xf8E4M3FN>) -> tensor<160x96xf8E4M3FN>
  %w = train.convert %t : (tensor<160x96xf8E4M3FN>) -> tensor<160x96xf32>
  %b = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<96xf32>) -> tensor<160x96xf32>
  %v = train.mul %w, %b : tensor<160x96xf32>
  %y = train.convert %v : (tensor<160x96xf32>) -> tensor<160x96xbf16>
  return %y : tensor<160x96xbf16>
}
// CHECK: copied: ok, elementwise
// PTX-LABEL: .entry copied(
// PTX: ld.global.nc.v2.b32
// PTX: bar.sync
// PTX: st.global.v2.b32
func.func @copied(%x: tensor<96x160xf8E4M3FN>) -> tensor<160x96xf8E4M3FN> {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<96x160xf8E4M3FN>) -> tensor<160x96xf8E4M3FN>
  return %t : tensor<160x96xf8E4M3FN>
}

// Of several matrices, and of dimensions that are merged in one orientation only.
// CHECK: batch: ok, elementwise
func.func @batch(%x: tensor<3x40x136xbf16>, %s: tensor<3xf32>) -> (tensor<3x136x40xf8E4M3FN>, tensor<3x40x136xf8E4M3FN>) {
  %w = train.convert %x : (tensor<3x40x136xbf16>) -> tensor<3x40x136xf32>
  %b = train.broadcast %s {broadcast_dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<3x40x136xf32>
  %v = train.mul %w, %b : tensor<3x40x136xf32>
  %l = train.constant dense<-4.480000e+02> : tensor<3x40x136xf32>
  %m = train.neg %v : tensor<3x40x136xf32>
  %n = train.max %m, %l : tensor<3x40x136xf32>
  %o = train.neg %n : tensor<3x40x136xf32>
  %c = train.max %o, %l : tensor<3x40x136xf32>
  %q = train.convert %c : (tensor<3x40x136xf32>) -> tensor<3x40x136xf8E4M3FN>
  %t = train.transpose %q {permutation = array<i64: 0, 2, 1>} : (tensor<3x40x136xf8E4M3FN>) -> tensor<3x136x40xf8E4M3FN>
  return %t, %q : tensor<3x136x40xf8E4M3FN>, tensor<3x40x136xf8E4M3FN>
}
// CHECK: heads: ok, elementwise
func.func @heads(%x: tensor<2x64x3x48xf32>) -> tensor<2x3x48x64xbf16> {
  %t = train.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x64x3x48xf32>) -> tensor<2x3x48x64xf32>
  %y = train.convert %t : (tensor<2x3x48x64xf32>) -> tensor<2x3x48x64xbf16>
  return %y : tensor<2x3x48x64xbf16>
}
// CHECK: flat: ok, elementwise
func.func @flat(%x: tensor<2x64x144xf32>) -> (tensor<18432xbf16>, tensor<144x128xf32>) {
  %a = train.add %x, %x : tensor<2x64x144xf32>
  %y = train.convert %a : (tensor<2x64x144xf32>) -> tensor<2x64x144xbf16>
  %f = train.reshape %y : (tensor<2x64x144xbf16>) -> tensor<18432xbf16>
  %m = train.reshape %a : (tensor<2x64x144xf32>) -> tensor<128x144xf32>
  %t = train.transpose %m {permutation = array<i64: 1, 0>} : (tensor<128x144xf32>) -> tensor<144x128xf32>
  return %f, %t : tensor<18432xbf16>, tensor<144x128xf32>
}

// Two transposed inputs beside one that a result may overwrite, and results and inputs in both orientations.
// CHECK: sum: ok, elementwise{{.*}} in place 1
func.func @sum(%x: tensor<72x104xf32>, %y: tensor<72x104xbf16>, %z: tensor<104x72xf32>) -> tensor<104x72xf32> {
  %a = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<72x104xf32>) -> tensor<104x72xf32>
  %b0 = train.transpose %y {permutation = array<i64: 1, 0>} : (tensor<72x104xbf16>) -> tensor<104x72xbf16>
  %b = train.convert %b0 : (tensor<104x72xbf16>) -> tensor<104x72xf32>
  %c = train.add %a, %b : tensor<104x72xf32>
  %d = train.mul %c, %z : tensor<104x72xf32>
  return %d : tensor<104x72xf32>
}
// CHECK: crossed: ok, elementwise
func.func @crossed(%x: tensor<72x104xf32>, %y: tensor<104x72xf32>) -> (tensor<72x104xf32>, tensor<104x72xf32>, tensor<104x72xi1>) {
  %a = train.transpose %y {permutation = array<i64: 1, 0>} : (tensor<104x72xf32>) -> tensor<72x104xf32>
  %b = train.mul %x, %a : tensor<72x104xf32>
  %c = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<72x104xf32>) -> tensor<104x72xf32>
  %d = train.sub %c, %y : tensor<104x72xf32>
  %e = train.compare lt, %c, %y : (tensor<104x72xf32>, tensor<104x72xf32>) -> tensor<104x72xi1>
  return %b, %d, %e : tensor<72x104xf32>, tensor<104x72xf32>, tensor<104x72xi1>
}
// CHECK: square: ok, elementwise
func.func @square(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = train.add %x, %a : tensor<64x64xf32>
  return %b : tensor<64x64xf32>
}

// A part of x, and x beside zeros.
// CHECK: sliced: ok, elementwise
func.func @sliced(%x: tensor<80x200xbf16>) -> tensor<128x64xbf16> {
  %a = train.slice %x {starts = array<i64: 8, 16>, limits = array<i64: 72, 144>, strides = array<i64: 1, 1>} : (tensor<80x200xbf16>) -> tensor<64x128xbf16>
  %t = train.transpose %a {permutation = array<i64: 1, 0>} : (tensor<64x128xbf16>) -> tensor<128x64xbf16>
  %y = train.add %t, %t : tensor<128x64xbf16>
  return %y : tensor<128x64xbf16>
}
// CHECK: padded: ok, elementwise
func.func @padded(%x: tensor<60x128xf32>, %z: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %a = train.pad %x {low = array<i64: 2, 0>, high = array<i64: 2, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<60x128xf32>) -> tensor<64x128xf32>
  %t = train.transpose %a {permutation = array<i64: 1, 0>} : (tensor<64x128xf32>) -> tensor<128x64xf32>
  %y = train.add %t, %z : tensor<128x64xf32>
  return %y : tensor<128x64xf32>
}

// Too narrow for tiles.
// CHECK: narrow: ok, elementwise
// PTX-LABEL: .entry narrow(
// PTX-NOT: bar.sync
// PTX: ret;
func.func @narrow(%x: tensor<16x128xf32>) -> (tensor<128x16xf32>, tensor<16x128xbf16>) {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<16x128xf32>) -> tensor<128x16xf32>
  %y = train.add %t, %t : tensor<128x16xf32>
  %z = train.convert %x : (tensor<16x128xf32>) -> tensor<16x128xbf16>
  return %y, %z : tensor<128x16xf32>, tensor<16x128xbf16>
}
